"""Garbage collection: expiring snapshots, and removing files that no kept snapshot needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lancepart.commit import manifest_changes, writers
from lancepart.commit.floors import highest
from lancepart.errors import InvalidInputError, TableVersionNotFoundError, UnsupportedOperationError
from lancepart.format.names import OLDEST, TABLE_VERSION, is_key, split_version_id, version_id
from lancepart.layout import create
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import STRONG, TableMetadata
from lancepart.maintain.collector_run import Collecting
from lancepart.maintain.kept import leaves_at
from lancepart.maintain.leaf_maintenance import MaintenanceResult
from lancepart.maintain.local import LOCAL
from lancepart.plan import planner
from lancepart.read.engine import Executor
from lancepart.storage import history
from lancepart.storage.files import Files
from lancepart.storage.manifest import NAME, Manifest
from lancepart.storage.manifest_rows import Change
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import storage_errors

SAFE_AGE = timedelta(hours=1)
CONFLICTS_AGE = timedelta(days=1)

_TRIES = 4


def moment(older_than: timedelta | datetime, now: datetime | None = None) -> datetime:
    """The moment before which things are old, which is never in the future."""
    present = datetime.now(UTC) if now is None else now
    if isinstance(older_than, timedelta) and older_than < timedelta(0):
        raise InvalidInputError(f"older_than is {older_than!r}, which is in the future: give an age from 0 up")
    if isinstance(older_than, timedelta):
        return min(present - older_than, present)
    if isinstance(older_than, datetime):
        return min(older_than.astimezone(UTC), present)
    raise InvalidInputError(f"older_than is {older_than!r}: give a timedelta or a datetime")


def expire(
    manifest: Manifest,
    older_than: timedelta | datetime,
    *,
    safe_age: timedelta = SAFE_AGE,
    executor: Executor = LOCAL,
    progress: bool = True,
) -> MaintenanceResult:
    """Expire old snapshots, and remove the versions and files of leaves that no kept snapshot needs.

    Snapshots younger than ``safe_age`` are always kept. Their versions of the manifest stay for a day in any case,
    without their files: a delayed writer still finds its conflicts by them.
    """
    moment(older_than)

    def run() -> MaintenanceResult:
        _strong(manifest)
        now = _clock(manifest)
        cutoff = min(moment(older_than, now), now - safe_age)
        bounds = _bounds(manifest, now, cutoff)
        return _expire(manifest, bounds, min(cutoff, now - CONFLICTS_AGE), executor=executor, progress=progress)

    return _beside_others(run)


def _expire(
    manifest: Manifest, bounds: Bounds, forgotten: datetime, *, executor: Executor, progress: bool
) -> MaintenanceResult:
    metadata, cutoff = _strong(manifest), bounds.cutoff
    oldest = _oldest_kept(manifest, bounds.latest, cutoff, history.oldest(manifest.snapshot()))
    named = set(history.tags(manifest).values())
    expired = [number for number in history.versions(manifest) if number < oldest and number not in named]
    dropped = _drop_rows(manifest, oldest, metadata, bounds.given_up)
    run = Collecting(
        manifest=manifest, metadata=metadata, oldest=oldest, cutoff=cutoff, executor=executor, progress=progress
    )
    found = run.protect(run.look())
    _clean(manifest, oldest, forgotten)
    return run.remove(found, MaintenanceResult(action="expire", changed=len(expired) + dropped))


def _clean(manifest: Manifest, oldest: int, before: datetime) -> None:
    """Remove the versions of the manifest that expired and are older than a moment, but for those that tags name."""
    named = set(history.tags(manifest).values())
    stored = history.stored(manifest)
    doomed = [number for number, taken in stored if number < oldest and taken < before and number not in named]
    handle = manifest.snapshot().handle
    if doomed and handle is not None:
        with storage_errors("clean __manifest", manifest.root):
            handle.cleanup_old_versions(versions=doomed)


def remove_orphans(
    manifest: Manifest,
    older_than: timedelta | datetime,
    *,
    dry_run: bool = False,
    executor: Executor = LOCAL,
    progress: bool = True,
) -> MaintenanceResult:
    """Remove what writers that failed left behind: directories and files that no kept snapshot names.

    A dry run writes nothing, so it uses this machine's clock instead of the store's.
    """
    moment(older_than)
    _strong(manifest)
    now = datetime.now(UTC) if dry_run else _clock(manifest)
    cutoff = _bounds(manifest, now, moment(older_than, now)).cutoff
    return _beside_others(
        lambda: _remove_orphans(manifest, cutoff, dry_run=dry_run, executor=executor, progress=progress)
    )


def _remove_orphans(
    manifest: Manifest, cutoff: datetime, *, dry_run: bool, executor: Executor, progress: bool
) -> MaintenanceResult:
    metadata = _strong(manifest)
    marked = history.oldest(manifest.snapshot())
    oldest = next(number for number in history.versions(manifest) if number >= marked)
    run = Collecting(
        manifest=manifest, metadata=metadata, oldest=oldest, cutoff=cutoff, executor=executor, progress=progress
    )
    found, report = run.look(unnamed=True), MaintenanceResult(action="remove_orphans")
    return run.counted(found, report) if dry_run else run.remove(run.protect(found), report)


def _beside_others(run: Callable[[], MaintenanceResult]) -> MaintenanceResult:
    """Begin again if another collector forgets a snapshot that this one is looking at."""
    for _ in range(_TRIES):
        try:
            return run()
        except TableVersionNotFoundError:
            continue
    return run()


def _strong(manifest: Manifest) -> TableMetadata:
    metadata = create.load(manifest.snapshot())
    if metadata.transactions != STRONG:
        raise UnsupportedOperationError("collecting garbage needs a table with transactions='strong'")
    return metadata


def _clock(manifest: Manifest) -> datetime:
    return Files(manifest.root).clock(f"{NAME}/_transactions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of a collector: files before a moment, snapshots before a version.

    Both are lowered for long writers that registered themselves; ``given_up`` are the entries that are too old to be
    waited for.
    """

    cutoff: datetime
    latest: int
    given_up: tuple[str, ...]


def _bounds(manifest: Manifest, now: datetime, cutoff: datetime) -> Bounds:
    snapshot, stored = manifest.snapshot(), history.stored(manifest)
    found = writers.entered(snapshot)
    active = [writer for writer in found if writer.entered_at(stored) > now - writers.PROTECTED]
    return Bounds(
        cutoff=min([cutoff, *(writer.began_at(stored) for writer in active)]),
        latest=min([snapshot.version, *(writer.since for writer in active)]),
        given_up=tuple(writer.object_id for writer in found if writer not in active),
    )


def _oldest_kept(manifest: Manifest, latest: int, cutoff: datetime, marked: int) -> int:
    """The version that was the latest at a moment: a writer that started then may still use it.

    What is older than an earlier mark is kept for a tag at most.
    """
    stored = [(number, taken) for number, taken in history.stored(manifest) if number >= marked]
    before = [number for number, taken in stored if number <= latest and taken < cutoff]
    return before[-1] if before else stored[0][0]


def _drop_rows(manifest: Manifest, oldest: int, metadata: TableMetadata, given_up: Sequence[str]) -> int:
    """Remove the rows of leaf versions that are older than what the oldest kept snapshot reads.

    The same commit marks what is kept before any file is removed: a client that tags an older snapshot, or rolls back
    to one, either did so before the mark, and its snapshot is live, or sees the mark. The floor of a leaf whose row is
    removed becomes that of the fence, and so that of a writer that recreates the leaf.
    """
    first = history.versions(manifest)[0]
    then = {leaf.object_id: leaf for leaf in leaves_at(manifest, oldest)}

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, int]:
        now = {leaf.object_id: leaf for leaf in planner.plan(snapshot, create.load(snapshot), None).leaves}
        empty = [key for key, leaf in now.items() if _is_empty(leaf) and then.get(key) == leaf]
        old = [*_old_versions(snapshot, then, now), *empty]
        floored = snapshot.rows([manifest_changes.fence_id(metadata), *empty]) if empty else {}
        mark = highest(row.metadata for row in floored.values())
        if first < oldest and history.oldest(snapshot) < oldest:
            mark = {**mark, OLDEST: oldest}
        change = Change(deletes=(*old, *snapshot.rows(given_up)))
        return (manifest_changes.with_mark(change, snapshot, metadata, mark) if mark else change), len(old)

    return manifest.transact(plan)


def _is_empty(leaf: Leaf) -> bool:
    return leaf.stats is not None and leaf.stats.rows == 0


def _old_versions(snapshot: Snapshot, then: Mapping[str, Leaf], now: Mapping[str, Leaf]) -> list[str]:
    """The rows of versions that no kept snapshot reads; the highest of a leaf is kept, so that numbers go on."""
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
