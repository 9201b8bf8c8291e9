"""One run of a collector: list files, write floors, find again what is kept, and remove the rest.

Floors are written to the rows of the leaves that are collected, with which every writer of them conflicts. The store's
clock decides what is old; that no file which a commit needs is removed does not depend on any clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from lancepart.commit import manifest_changes
from lancepart.commit.floors import Floor
from lancepart.errors import ConcurrentModificationError
from lancepart.format.names import FLOORS, METADATA
from lancepart.format.rows import dump_metadata
from lancepart.layout.metadata import TableMetadata, requiring
from lancepart.maintain import index_files, sweep
from lancepart.maintain.index_files import OldPart
from lancepart.maintain.kept import KeptVersions, kept
from lancepart.maintain.leaf_maintenance import MaintenanceResult
from lancepart.maintain.local import LOCAL
from lancepart.maintain.progress import track
from lancepart.maintain.sweep import Found, Looking, Member, Removing
from lancepart.read.engine import Executor
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import Change, RowUpdate
from lancepart.storage.removal import LEAF_DIRECTORY
from lancepart.storage.snapshot import Snapshot

_TOGETHER = 256


@dataclass(slots=True, kw_only=True)
class Collecting:
    """What a collector found, and why it left some of it alone."""

    manifest: Manifest
    metadata: TableMetadata
    oldest: int
    cutoff: datetime
    executor: Executor = LOCAL
    progress: bool = True
    before: KeptVersions = field(default_factory=KeptVersions)
    notes: list[str] = field(default_factory=list)
    parts: list[OldPart] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)

    def look(self, *, unnamed: bool = False) -> list[Found]:
        """Files of leaves that no snapshot needs and, with ``unnamed``, directories that no snapshot names."""
        self.before = kept(self.manifest, self.oldest)
        tasks = [self._task(top, members) for top, members in self.before.directories(self.manifest).items()]
        found: list[Found] = self.executor.map(sweep.look, tasks, "looking", progress=self.progress)
        if unnamed:
            named = self.before.tops
            names = [name for name in Files(self.manifest.root).children()[0] if _is_unnamed(name, named)]
            orphans = [sweep.look(self._task(name)) for name in track(names, "sweeping", show=self.progress)]
            self.bare = [each.top for each in orphans if not (each.garbage or each.unknown or each.broken)]
            found += orphans
        self.parts, unknown = index_files.unreferenced(self.manifest, self.oldest, self.cutoff)
        self.notes += unknown
        self.notes += [f"the tag {name!r} names a snapshot that is gone" for name in self.before.lost_tags]
        self.notes += [f"{each.top}: {each.broken}" for each in found if each.broken is not None]
        self.notes += [path for each in found for path in each.unknown]
        return [each for each in found if each.garbage]

    def _task(self, top: str, members: tuple[Member, ...] = ()) -> Looking:
        return Looking(root=self.manifest.root, top=top, members=members, cutoff=self.cutoff)

    def protect(self, found: Sequence[Found]) -> list[Found]:
        """Write floors, so that no writer publishes files about to be removed; those without a floor are kept."""
        needed = requiring(self.manifest.snapshot().properties, FLOORS) if found else {}
        if needed:
            self.manifest.set_properties(needed)
        owners: dict[str, set[str]] = defaultdict(set)
        for location, owner in self.before.owners.items():
            owners[location].add(owner)
            owners[location.partition("/tree/")[0]].add(owner)
        done: list[Found] = []
        for start in range(0, len(found), _TOGETHER):
            batch = found[start : start + _TOGETHER]
            ids = sorted({owner for each in batch for owner in owners[each.top]})
            try:
                self.manifest.transact(partial(self._floors, ids, any(not owners[each.top] for each in batch)))
                done += batch
            except ConcurrentModificationError as error:
                self.notes += [f"{each.top}: {error}" for each in batch]
        return done

    def _floors(self, ids: Sequence[str], fence: bool, snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        """The rows of leaves, and of the fence for directories that no row names, with this run's floor in them."""
        floor = Floor(version=snapshot.version, time=self.cutoff)
        updates = [
            RowUpdate(
                object_id=row.object_id,
                values={METADATA: dump_metadata({**(row.metadata or {}), **floor.raised(row.metadata)})},
            )
            for row in snapshot.rows(ids).values()
        ]
        change = Change(updates=tuple(updates))
        if fence:
            row = snapshot.row(manifest_changes.fence_id(self.metadata))
            mark = floor.raised(None if row is None else row.metadata)
            change = manifest_changes.with_mark(change, snapshot, self.metadata, mark)
        return change, None

    def remove(self, found: Sequence[Found], report: MaintenanceResult) -> MaintenanceResult:
        """Remove the files that were found and have a floor, except those that are needed by now."""
        tasks = list(self._doomed(found)) if found else []
        done = self.executor.map(sweep.remove, tasks, "collecting", progress=self.progress)
        self.notes += [f"{task.top}: {each.broken}" for task, each in zip(tasks, done, strict=True) if each.broken]
        named = self.before.tops
        gone = tuple(task.top for task in tasks if _is_unnamed(task.top, named))
        parts = index_files.remove(self.manifest, self.parts)
        for top in self.bare:
            Files(self.manifest.root).prune(top, before=self.cutoff)
        return self._summarized(report, gone, sum(each.files for each in done), sum(each.bytes for each in done), parts)

    def _doomed(self, found: Sequence[Found]) -> Iterator[Removing]:
        after = kept(self.manifest, self.oldest)
        before_named, after_named = self.before.tops, after.tops
        for each in found:
            if not _is_unnamed(each.top, before_named) or _is_unnamed(each.top, after_named):
                newer = after.newer_than(self.before, each.top)
                yield Removing(root=self.manifest.root, top=each.top, garbage=each.garbage, newer=newer)

    def counted(self, found: Sequence[Found], report: MaintenanceResult) -> MaintenanceResult:
        """What would go, if nothing changed meanwhile."""
        named = self.before.tops
        gone = tuple(each.top for each in found if _is_unnamed(each.top, named))
        garbage = [item for each in found for item in each.garbage]
        return self._summarized(report, gone, len(garbage), sum(item.size for item in garbage), self.parts)

    def _summarized(
        self, report: MaintenanceResult, gone: tuple[str, ...], files: int, size: int, parts: Sequence[OldPart]
    ) -> MaintenanceResult:
        locations = (*gone, *(part.location for part in parts))
        return replace(
            report,
            changed=report.changed + len(locations),
            removed_files=files + sum(len(part.files) for part in parts),
            freed_bytes=size + sum(part.bytes for part in parts),
            locations=locations,
            kept=tuple(self.notes),
        )


def _is_unnamed(name: str, named: Collection[str]) -> bool:
    """Whether a directory is that of a leaf which is not among those that kept snapshots name."""
    return LEAF_DIRECTORY.match(name) is not None and name not in named
