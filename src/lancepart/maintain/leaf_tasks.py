"""Maintenance tasks on one leaf, which create detached versions, here or on an executor."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lancepart.commit import distributed_write
from lancepart.commit.distributed_write import WriteJob
from lancepart.errors import InvalidInputError
from lancepart.layout.declared_indices import TEXT_KIND, Index
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.maintain import indices
from lancepart.model.predicate import Predicate
from lancepart.read import leaf as reading
from lancepart.read.leaf import ADDRESS, LeafTask
from lancepart.storage import leaf_compaction, leaf_data, leaf_handle, leaf_index, leaf_numbers, leaf_record
from lancepart.storage.leaf_handle import Addresses
from lancepart.storage.leaf_index import RecordedPart
from lancepart.storage.root import Root
from lancepart.storage.translate import UnreadableError, UntrainedError

Work = TypeVar("Work")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafPlace:
    """One leaf of a table, at the version that upkeep found it at."""

    root: Root
    metadata: TableMetadata
    leaf: Leaf

    def task(self, columns: tuple[str, ...] = (), predicate: Predicate | None = None) -> LeafTask:
        """What to read of it."""
        return LeafTask(root=self.root, metadata=self.metadata, leaf=self.leaf, columns=columns, predicate=predicate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacting:
    """A leaf to compact, and whose indices are then rebuilt."""

    place: LeafPlace
    target_rows: int
    indices: tuple[Index, ...]


MOST_SEGMENTS = 4
"""How many parts an index of a leaf may have before they are made one."""

UNREADABLE = 0
"""In place of a version: the leaf can't be read, and stays as it is."""


def _if_readable(action: Callable[[Work], int | None]) -> Callable[[Work], int | None]:
    """An action that leaves out a leaf whose files are gone or damaged, so that it does not stop the others."""

    @wraps(action)
    def act(work: Work) -> int | None:
        try:
            return action(work)
        except UnreadableError:
            return UNREADABLE

    return act


@_if_readable
def compact(work: Compacting) -> int | None:
    """The compacted version, None if there is nothing to do; a leaf too small for an index gets none.

    Its indices follow: their parts over fragments that stay as they are serve on, beside new ones over the others.
    """
    place = work.place
    version = place.leaf.read_version
    assert version is not None
    names = {index.name for index in work.indices}
    parts: Sequence[RecordedPart] = []
    if names:
        before = leaf_handle.open_leaf(place.root, place.leaf.location, version)
        parts = leaf_index.recorded(place.root, place.leaf.location, before, names)
    newer = leaf_compaction.compact(
        place.root,
        place.leaf.location,
        base=version,
        target_rows=work.target_rows,
        rebuilt=names,
    )
    if newer is None:
        return None
    for index in work.indices:
        with contextlib.suppress(InvalidInputError):
            at = Indexing(place=replace(place, leaf=place.leaf.at(newer)), index=index)
            newer = _followed(at, [part for part in parts if part.name == index.name]) or newer
    return newer


def _followed(work: Indexing, parts: Sequence[RecordedPart]) -> int | None:
    """The version in which an index covers a leaf's rows after some of them moved.

    An index of texts counts the rows that moved twice, unless it is built again.
    """
    place, index = work.place, work.index
    root, location, version = place.root, place.leaf.location, place.leaf.read_version
    assert version is not None
    handle = leaf_handle.open_leaf(root, location, version)
    now = {int(item.fragment_id) for item in handle.get_fragments()}
    kept = [part for part in parts if part.is_as_declared(index.kind, index.params) and part.numbers & now]
    if index.kind == TEXT_KIND or not 0 < len(kept) < MOST_SEGMENTS:
        return _build_index(work)
    newer = leaf_index.with_parts(root, location, kept, base=version)
    at = replace(work, place=replace(place, leaf=place.leaf.at(newer)))
    left = leaf_index.coverage(root, location, index.name, base=newer).uncovered
    return (_build_index(at, left) if left else None) or newer


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexing:
    """A leaf to index over all its rows, unless the index is not ``wanted`` there.

    If it ``replaces`` one, a leaf that does not get it loses what it has under its name.
    """

    place: LeafPlace
    index: Index
    wanted: bool = True
    replaces: bool = False


@_if_readable
def build_index(work: Indexing) -> int | None:
    """The version with the index, None if the leaf has no rows or no such column."""
    built = _build_index(work) if work.wanted else None
    return _drop_index(work) if built is None and work.replaces else built


def _build_index(work: Indexing, fragments: Mapping[int, int] | None = None) -> int | None:
    """The version with an index over all rows, or over those of some fragments; None if there are too few for one.

    A leaf of another client may hold a column in an encoding that the kind can't index: it is read without one.
    """
    leaf, index = work.place.leaf, work.index
    if leaf.read_version is None or (leaf.stats is not None and leaf.stats.rows == 0):
        return None
    rows = sum(fragments.values()) if fragments is not None else _rows(work.place)
    params = indices.fitted(index, rows, in_leaf=True)
    physical = None if params is None else reading.physical_column(work.place.task(), index.column)
    if params is None or physical is None or not indices.fits(index.kind, physical.type):
        return None
    base = leaf.read_version if fragments is not None else _by_table(work.place, index.name)
    try:
        return leaf_index.build_index(
            work.place.root,
            leaf.location,
            physical.name,
            index.kind,
            index.name,
            base=base,
            fragments=fragments,
            declared=index.params,
            **params,
        )
    except UntrainedError:
        return None


def _by_table(place: LeafPlace, replaced: str) -> int:
    """A version in which the leaf's fragments have their numbers in the table, so that unions use its indices too.

    The same version where they have them already, where another index of the leaf than the one to be replaced would
    lose them, and where its next fragment would get a number that another one had: its last ones were deleted.
    """
    leaf, root = place.leaf, place.root
    version, blocks = leaf.read_version, leaf.numbers
    assert version is not None
    handle = leaf_handle.open_leaf(root, leaf.location, version)
    own = [int(item.fragment_id) for item in handle.get_fragments()]
    numbers = {each: number for each in own if blocks is not None and (number := blocks.of(each)) is not None}
    if blocks is None or not own or len(numbers) < len(own) or all(each == numbers[each] for each in own):
        return version
    others = any(index.name != replaced for index in handle.describe_indices())
    later = blocks.renumbered(list(numbers.values()))
    in_last = later.first == later.starts[0] == blocks.starts[-1]
    if others or not in_last or leaf_record.describe(handle) is None:
        return version
    if leaf_numbers.next_number(root, leaf.location, base=version) != max(own) + 1:
        return version
    return leaf_numbers.renumbered(root, leaf.location, numbers, base=version)


def _rows(place: LeafPlace) -> int:
    if place.leaf.stats is not None:
        return place.leaf.stats.rows
    return leaf_handle.measure(leaf_handle.open_leaf(place.root, place.leaf.location, place.leaf.read_version))[0]


@_if_readable
def optimize_index(work: Indexing) -> int | None:
    """The version whose index covers rows added since; None if it already does, or if they are too few.

    They get a segment of their own; several segments are replaced by one over all rows.
    """
    leaf = work.place.leaf
    if leaf.read_version is None:
        return None
    found = leaf_index.coverage(work.place.root, leaf.location, work.index.name, base=leaf.read_version)
    if not found.segments or (found.uncovered and found.segments >= MOST_SEGMENTS):
        return _build_index(work)
    return _build_index(work, found.uncovered) if found.uncovered else None


@_if_readable
def drop_index(work: Indexing) -> int | None:
    """The version without an index; None if there is none."""
    return _drop_index(work)


def _drop_index(work: Indexing) -> int | None:
    leaf = work.place.leaf
    if leaf.read_version is None:
        return None
    return leaf_index.drop_index(work.place.root, leaf.location, work.index.name, base=leaf.read_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """A leaf of an older spec whose rows move to partitions of the newest."""

    place: LeafPlace
    predicate: Predicate | None
    job: WriteJob


def rewrite(work: Rewriting) -> tuple[Addresses, distributed_write.WriteResult] | None:
    """The addresses of the rows that move, and what was written to their new partitions; None if none does."""
    columns = tuple(work.place.metadata.schema.names)
    found = list(reading.with_addresses(work.place.task(columns, work.predicate)))
    if not found:
        return None
    rows = pa.Table.from_batches(found)
    report = distributed_write.write(work.job, rows.drop_columns([ADDRESS]))
    return np.asarray(rows.column(ADDRESS).to_numpy()), report


@dataclass(frozen=True, slots=True, kw_only=True)
class GoingBack:
    """A leaf that returns to an older version of its own."""

    place: LeafPlace
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WayBack:
    """What keeps a leaf from returning, if anything does; how many rows come and go, if both versions can be read."""

    obstacle: str | None = None
    rows: tuple[int, int] | None = None


def way_back(work: GoingBack) -> WayBack:
    """Look whether a leaf can return, and what that changes."""
    root, location = work.place.root, work.place.leaf.location
    try:
        gone = leaf_handle.missing_files(root, location, leaf_handle.open_leaf(root, location, work.version))
    except UnreadableError as error:
        return WayBack(obstacle=str(error))
    if gone:
        return WayBack(obstacle=f"{gone[0]!r} is missing")
    try:
        return WayBack(rows=_difference(work))
    except UnreadableError:
        return WayBack()


def _difference(work: GoingBack) -> tuple[int, int]:
    """How many rows are added and removed between the published version and the older one."""
    root, leaf = work.place.root, work.place.leaf
    assert leaf.read_version is not None
    found = leaf_data.difference(root, leaf.location, leaf.read_version, work.version)
    old = leaf_handle.open_leaf(root, leaf.location, leaf.read_version)
    whole = sum(len(leaf_handle.live_offsets(old, number)) for number in found.removed)
    added = sum(map(len, found.restored.values())) + sum(int(item.num_rows) for item in found.added)
    return added, sum(map(len, found.deleted.values())) + whole
