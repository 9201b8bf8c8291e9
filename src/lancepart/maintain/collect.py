"""Garbage: snapshots that expire, and files that no kept snapshot needs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from lancepart.commit import rows
from lancepart.commit.once import is_key
from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.format.names import OLDEST, READ_VERSION, TABLE_VERSION, split_version_id, version_id
from lancepart.format.records import HAS_MOVED, VersionRecord
from lancepart.format.rows import Row
from lancepart.layout import create
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import STRONG, TableMetadata
from lancepart.maintain.elsewhere import over
from lancepart.maintain.progress import track
from lancepart.maintain.upkeep import Report
from lancepart.plan import planner
from lancepart.storage import history, leafdata
from lancepart.storage.files import FileInfo, Files, is_unfinished
from lancepart.storage.manifest import Manifest
from lancepart.storage.removal import LEAF_DIRECTORY
from lancepart.storage.root import Root
from lancepart.storage.rows import Change
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import storage_errors

SAFE_AGE = timedelta(hours=1)
_DETACHED = re.compile(r"^_versions/d(\d+)\.manifest$")


def moment(older_than: timedelta | datetime) -> datetime:
    """The moment before which things are old."""
    if isinstance(older_than, timedelta):
        return datetime.now(UTC) - older_than
    if isinstance(older_than, datetime):
        return older_than.astimezone(UTC)
    raise InvalidInputError(f"older_than is {older_than!r}: give a timedelta or a datetime")


def expire(
    manifest: Manifest,
    older_than: timedelta | datetime,
    *,
    safe_age: timedelta = SAFE_AGE,
    spark: Any = None,
    progress: bool = True,
) -> Report:
    """Forget old snapshots, and remove the versions and files of leaves that no kept one needs.

    Snapshots younger than ``safe_age`` stay whatever is asked: writers that began then still find conflicts by them.
    """
    cutoff = min(moment(older_than), datetime.now(UTC) - safe_age)
    snapshot = manifest.snapshot()
    metadata = _strong(manifest, snapshot)
    oldest = _oldest_kept(manifest, snapshot.version, cutoff)
    dropped = _drop_rows(manifest, oldest, metadata)
    live = _live_versions(manifest, manifest.snapshot(), metadata, oldest)
    with storage_errors("clean __manifest", manifest.root):
        handle = manifest.snapshot().handle
        assert handle is not None
        doomed = [number for number in history.versions(manifest) if number < oldest]
        kept = set(history.tags(manifest).values())
        doomed = [number for number in doomed if number not in kept]
        if doomed:
            handle.cleanup_old_versions(versions=doomed)
    files, size = _collect_leaves(manifest, live, cutoff, dry_run=False, spark=spark, progress=progress)
    return Report(action="expire", changed=len(doomed) + dropped, removed_files=files, freed_bytes=size)


def remove_orphans(
    manifest: Manifest,
    older_than: timedelta | datetime,
    *,
    dry_run: bool = False,
    spark: Any = None,
    progress: bool = True,
) -> Report:
    """Remove what writers that failed left behind: directories and files that no kept snapshot names."""
    cutoff = moment(older_than)
    snapshot = manifest.snapshot()
    metadata = _strong(manifest, snapshot)
    oldest = history.versions(manifest)[0]
    live = _live_versions(manifest, snapshot, metadata, oldest)
    files, size = _collect_leaves(manifest, live, cutoff, dry_run=dry_run, spark=spark, progress=progress)
    store = Files(manifest.root)
    names, _ = store.children()
    found: list[str] = []
    used = {location.partition("/")[0] for location in live}
    for name in track([n for n in names if LEAF_DIRECTORY.match(n) and n not in used], "sweeping", show=progress):
        inside = list(store.walk(name))
        if any(info.modified > cutoff for info in inside):
            continue
        found.append(name)
        files, size = files + len(inside), size + sum(info.size for info in inside)
        if not dry_run:
            store.delete_directory(name)
    return Report(
        action="remove_orphans", changed=len(found), removed_files=files, freed_bytes=size, locations=tuple(found)
    )


def _strong(manifest: Manifest, snapshot: Snapshot) -> TableMetadata:
    metadata = create.load(manifest, snapshot)
    if metadata.transactions != STRONG:
        raise UnsupportedOperationError("collecting garbage needs a table with transactions='strong'")
    return metadata


def _oldest_kept(manifest: Manifest, latest: int, cutoff: datetime) -> int:
    """The version that was the latest one at a moment: who began then may still be at work on it."""
    kept = [number for number in history.versions(manifest) if number <= latest]
    low, high = 0, len(kept) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if history.timestamp(manifest, kept[middle]) >= cutoff:
            high = middle - 1
        else:
            low = middle
    return kept[low]


def _live_versions(manifest: Manifest, snapshot: Snapshot, metadata: TableMetadata, oldest: int) -> dict[str, set[int]]:
    """For each leaf's directory the versions that a kept snapshot may read."""
    live: dict[str, set[int]] = defaultdict(set)
    places: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for leaf in _leaves(manifest, oldest):
        numbers[leaf.object_id] = leaf.number
        live[leaf.location].add(leaf.read_version or 1)
    for leaf in planner.plan(snapshot, metadata, None).leaves:
        places[leaf.object_id] = leaf.location
        live[leaf.location].add(leaf.read_version or 1)
    for version in history.tags(manifest).values():
        for leaf in _leaves(manifest, version):
            live[leaf.location].add(leaf.read_version or 1)
    found = snapshot.scan(f"object_type = '{TABLE_VERSION}'", columns=["object_id", READ_VERSION.name])
    assert found is not None
    for item, version in zip(
        found.column("object_id").to_pylist(), found.column(READ_VERSION.name).to_pylist(), strict=True
    ):
        named = split_version_id(item)
        if named is not None and version is not None and named[0] in places and named[1] >= numbers.get(named[0], 0):
            live[places[named[0]]].add(version)
    for owner, versions in _moved(snapshot):
        if owner in places:
            live[places[owner]] |= versions
    return live


def _moved(snapshot: Snapshot) -> Iterator[tuple[str, set[int]]]:
    """The versions between which a commit wrote a leaf's rows anew: what came and went is found by them."""
    found = snapshot.scan(f"object_type = '{TABLE_VERSION}' AND {HAS_MOVED}")
    assert found is not None
    for item in found.to_pylist():
        record = VersionRecord.from_row(Row.read(item))
        if record is not None:
            yield record.leaf, {version for pair in record.moved for version in pair}


def _leaves(manifest: Manifest, version: int) -> Sequence[Leaf]:
    snapshot = history.at(manifest, version)
    properties = snapshot.properties
    if not any(key.startswith("partition_spec_v") for key in properties):
        return ()
    return planner.plan(snapshot, create.load(manifest, snapshot), None).leaves


def _drop_rows(manifest: Manifest, oldest: int, metadata: TableMetadata) -> int:
    """Remove the rows of leaf versions that are older than what the oldest kept snapshot reads.

    The same commit marks what is kept, before any file goes: who tags an older snapshot or goes back to one either
    came before the mark, and is counted as live, or sees it.
    """
    first = history.versions(manifest)[0]
    then = {leaf.object_id: leaf for leaf in _leaves(manifest, oldest)}

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, int]:
        now = {leaf.object_id: leaf for leaf in planner.plan(snapshot, metadata, None).leaves}
        empty = [key for key, leaf in now.items() if _is_empty(leaf) and then.get(key) == leaf]
        old = [*_old_versions(snapshot, then, now), *empty]
        change = Change(deletes=tuple(old))
        if first < oldest and rows.oldest(snapshot, metadata) < oldest:
            change = rows.with_mark(change, snapshot, metadata, {OLDEST: oldest})
        return change, len(old)

    return manifest.transact(plan)


def _is_empty(leaf: Leaf) -> bool:
    return leaf.stats is not None and leaf.stats.rows == 0


def _old_versions(snapshot: Snapshot, then: Mapping[str, Leaf], now: Mapping[str, Leaf]) -> list[str]:
    """The rows of versions that no kept snapshot reads; the highest of a leaf always stays, or it would count anew."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for item in snapshot.ids("", TABLE_VERSION):
        named = split_version_id(item)
        if named is not None and not is_key(item):
            numbers[named[0]].append(named[1])
    old = []
    for owner, found in numbers.items():
        gone = owner not in then and owner not in now
        least = max(found) if gone else then[owner].number if owner in then else 0
        old += [version_id(owner, number) for number in found if number < least]
    return old


@dataclass(frozen=True, slots=True, kw_only=True)
class Collecting:
    """A leaf's directory, and the versions of it that must stay."""

    root: Root
    location: str
    versions: frozenset[int]
    cutoff: datetime
    dry_run: bool


def _collect_leaves(
    manifest: Manifest, live: dict[str, set[int]], cutoff: datetime, *, dry_run: bool, spark: Any, progress: bool
) -> tuple[int, int]:
    tasks = [
        Collecting(
            root=manifest.root, location=location, versions=frozenset(live[location]), cutoff=cutoff, dry_run=dry_run
        )
        for location in sorted(live)
    ]
    found = over(spark, collect_leaf, tasks, "collecting", progress=progress)
    return sum(count for count, _ in found), sum(size for _, size in found)


def collect_leaf(task: Collecting) -> tuple[int, int]:
    """Remove what a leaf needs no more; how many files, and how many bytes."""
    store = Files(task.root)
    doomed = _doomed(task.root, store, task.location, task.versions, task.cutoff)
    if not task.dry_run:
        for info in doomed:
            store.delete(info.path)
    return len(doomed), sum(info.size for info in doomed)


def _doomed(root: Root, store: Files, location: str, versions: Iterable[int], cutoff: datetime) -> list[FileInfo]:
    """The files of a leaf that no version of it needs any more: manifests first, then what only they named."""
    wanted = set(versions)
    needed: set[str] = set()
    for version in [*wanted, None]:
        handle: Any = leafdata.open_leaf(root, location, version)
        needed |= leafdata.live_files(handle) | leafdata.live_indices(handle)
    manifests, rest = [], []
    for info in store.walk(location):
        path = info.path[len(location) + 1 :]
        if info.modified > cutoff:
            continue
        detached = _DETACHED.match(path)
        if detached:
            if int(detached.group(1)) not in wanted:
                manifests.append(info)
        elif _is_doomed(path, needed):
            rest.append(info)
    return [*manifests, *rest]


def _is_doomed(path: str, needed: set[str]) -> bool:
    if is_unfinished(path):
        return True
    if path.startswith("_indices/"):
        return "/".join(path.split("/")[:2]) not in needed
    return path.startswith(("data/", "_deletions/")) and path not in needed
