"""Floors: how collectors of garbage and writers meet in the manifest, whatever their clocks say.

A collector lists files, then writes into the row of each leaf that it collects the time before which it may remove
files that nothing needs. A writer publishes by a compare-and-swap on that same row. So one that publishes after the
floor was written sees it; what such a writer staged before the list was made must be younger than the floor, and what
it staged later is not on the list. The times compared are those that the store gave to files, on both sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lancepart.commit.conflicts import StaleReadError
from lancepart.commit.leaf_changes import LeafChanges
from lancepart.errors import InvalidTableStateError
from lancepart.format.names import FLOOR, READ_VERSION, TABLE_VERSION
from lancepart.format.rows import Row
from lancepart.model.aliases import JsonMapping, JsonObject
from lancepart.storage import leaf_files
from lancepart.storage.files import Files
from lancepart.storage.leaf_files import Kind
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import UnreadableError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CollectedError(StaleReadError):
    """Files that a write had staged were old enough for a collector to remove them; nothing of it is visible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Files older than ``time`` that nothing needed may be gone for writers that began at ``version`` or before."""

    version: int
    time: datetime

    @classmethod
    def of(cls, metadata: JsonMapping | None) -> Floor | None:
        """The floor that a row of the manifest holds."""
        stored = (metadata or {}).get(FLOOR)
        if stored is None:
            return None
        try:
            version, micros = map(int, stored)
            return cls(version=version, time=_EPOCH + timedelta(microseconds=micros))
        except (TypeError, ValueError, OverflowError):
            raise InvalidTableStateError(f"{FLOOR} of a row of __manifest is not understood: {stored!r}") from None

    def raised(self, *others: JsonMapping | None) -> JsonObject:
        """What a row holds for this floor and those of other rows: it rises and never falls."""
        known = [self, *(floor for floor in map(Floor.of, others) if floor is not None)]
        micros = max((floor.time - _EPOCH) // timedelta(microseconds=1) for floor in known)
        return {FLOOR: [max(floor.version for floor in known), micros]}


def highest(metadata: Iterable[JsonMapping | None]) -> JsonObject:
    """The highest floor of some rows, as a row holds it; nothing if there is none."""
    found = list(metadata)
    first = next(filter(None, map(Floor.of, found)), None)
    return {} if first is None else first.raised(*found)


def carried(row: Row | None) -> JsonObject:
    """The floor of a row, to be copied to another row."""
    return {key: value for key, value in ((row.metadata if row is not None else None) or {}).items() if key == FLOOR}


def refuse_collected(snapshot: Snapshot, since: int, works: Sequence[LeafChanges], fence: Floor | None) -> None:
    """Refuse to publish what a collector may have removed: staged at a snapshot before a floor, and older than it.

    Directories that no row names have no row of their own for a floor: theirs is the ``fence``'s.
    """
    rows = snapshot.rows(work.object_id for work in works)
    for work in works:
        row = rows.get(work.object_id)
        floors = [None if row is None else Floor.of(row.metadata), fence if work.is_unnamed else None]
        times = [floor.time for floor in floors if floor is not None and since <= floor.version]
        if times and _may_be_lost(snapshot, work, max(times)):
            raise CollectedError(collected(work.object_id), partitions=(work.object_id,))


def collected(partition: str) -> str:
    """The error message of a writer that is refused."""
    return (
        f"partition {partition!r}: what was written for it is older than what expire or remove_orphans kept, so that "
        "it may be gone; nothing was changed: run it again, and let upkeep keep files longer than the longest write"
    )


def _may_be_lost(snapshot: Snapshot, work: LeafChanges, floor: datetime) -> bool:
    """Whether a file that only this transaction needs is older than a floor, or gone.

    A data file vouches for its blobs, which a collector leaves alone as long as it is not old itself.
    """
    if work.head is None or work.head in _recorded(snapshot, work.object_id):
        return False
    try:
        wanted = _own_files(work)
        sizes = leaf_files.index_sizes(work.root, work.location, work.head)
    except (UnreadableError, FileNotFoundError):
        return True
    found: Counter[str] = Counter()
    for info in Files(work.root).walk(work.location):
        file = leaf_files.parse(info.path[len(work.location) + 1 :])
        if file is None or file.member or file.key not in wanted or file.kind is Kind.BLOB:
            continue
        if info.modified < floor:
            return True
        found[file.key] += info.size
    return any(found[key] < max(sizes.get(key, 0), 1) for key in wanted)


def _own_files(work: LeafChanges) -> set[str]:
    """The keys of the files that are the transaction's own: what is published needs none of them."""
    assert work.head is not None
    wanted = leaf_files.needed(work.root, work.location, work.head)
    for version in {version for pair in work.moved for version in pair}:
        wanted |= leaf_files.needed(work.root, work.location, version)
    if not work.is_unnamed and work.leaf is not None:
        wanted -= leaf_files.needed(work.root, work.leaf.location, work.leaf.read_version)
    return {key for key in wanted if not key.startswith("_transactions/")}


def _recorded(snapshot: Snapshot, identifier: str) -> set[int]:
    """The versions of a leaf that are published and kept."""
    return {int(row.columns.get(READ_VERSION.name) or 0) for row in snapshot.below(identifier, TABLE_VERSION)}
