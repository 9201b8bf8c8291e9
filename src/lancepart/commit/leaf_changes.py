"""The changes of a transaction to one leaf, made in detached versions that no reader sees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.commit import conflicts
from lancepart.commit.conflicts import LeafEffect, StaleReadError
from lancepart.commit.leaf_schema import prepared, stage_new_rows
from lancepart.commit.upsert_keys import KeyIndex
from lancepart.errors import CommitConflictError
from lancepart.format.records import Stats
from lancepart.layout.columns import AS_BYTES, leaf_schema, to_leaf_columns, to_table_columns
from lancepart.layout.leaves import Leaf
from lancepart.layout.matching import Matching
from lancepart.layout.metadata import TableMetadata
from lancepart.storage import leaf_data
from lancepart.storage.leaf_data import Difference, Fragment, Fragments, LeafShape, NativeIds
from lancepart.storage.root import Root
from lancepart.storage.translate import UnreadableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """Rows written for a leaf, perhaps by another process, and not yet part of any version.

    They follow the columns of the version ``base``, made from ``source`` if that could not take them.
    """

    fragments: Fragments
    schema: pa.Schema
    ids: tuple[NativeIds, ...]
    source: int | None
    base: int | None
    moved: tuple[tuple[int, int], ...] = ()

    def has_columns_of(self, other: Staged) -> bool:
        """Whether both have the same columns under the same ids."""
        return self.ids == other.ids and bool(self.schema.equals(other.schema, check_metadata=True))


@dataclass
class LeafChanges:
    """One leaf in a transaction; it changes by its own methods only.

    ``leaf`` is what was published when the transaction began, ``None`` for a partition that it creates; ``head`` is the
    private version that holds its changes, ``None`` while there is none; ``keys`` are those of upserts, none of which
    another writer may have added meanwhile; ``moved`` are pairs of versions with the same rows, the second one written
    anew; ``anew`` is where the leaf is made again if its rows are to go and it can't be opened.
    """

    root: Root
    metadata: TableMetadata
    object_id: str
    spec_id: int
    key: tuple[str, ...]
    values: tuple[pa.Scalar, ...]
    location: str
    leaf: Leaf | None
    head: int | None
    stats: Stats
    weak: bool = False
    replaced: bool = False
    added: int = 0
    deleted: int = 0
    pending: tuple[Fragment, ...] = ()
    ids: tuple[NativeIds, ...] = ()
    schema: pa.Schema = None
    keys: tuple[tuple[tuple[str, ...], KeyIndex], ...] = ()
    moved: tuple[tuple[int, int], ...] = ()
    anew: str | None = None

    @property
    def is_new(self) -> bool:
        """Whether the transaction creates the leaf."""
        return self.leaf is None

    @property
    def is_unnamed(self) -> bool:
        """Whether the leaf's directory is one that no row names before this transaction is published."""
        return self.is_new or self.is_relocated

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to publish."""
        return self.is_new or self.is_relocated or bool(self.added or self.deleted or self.replaced)

    @property
    def is_relocated(self) -> bool:
        """Whether the transaction made a leaf that exists anew elsewhere."""
        return self.leaf is not None and self.location != self.leaf.location

    @property
    def effect(self) -> LeafEffect:
        """What it does, as far as conflicts depend on it."""
        had_rows = self.leaf is not None and (self.leaf.stats is None or self.leaf.stats.rows > 0)
        return LeafEffect(
            adds=self.added > 0,
            deletes=self.deleted > 0,
            replaces=self.replaced,
            empties=self.replaced and had_rows,
            relocates=self.is_relocated,
            can_recreate=bool(self.values),
        )

    def know_values(self, values: tuple[Any, ...]) -> None:
        """Take the partition's values from rows that belong there: with them it can be made anew."""
        self.values = values

    def guard(self, on: Sequence[str], index: KeyIndex) -> None:
        """Let no other writer have added one of the keys when the transaction commits."""
        self.keys = (*self.keys, (tuple(on), index))

    def claim_all(self) -> None:
        """Take rows that others add meanwhile for a conflict: those of the transaction are to be all."""
        self.replaced = True

    def take_version(self, version: int) -> None:
        """Let a version of the leaf that exists be the transaction's own, whatever others add meanwhile."""
        self.head = version
        self.stats = self.measured()
        self.claim_all()

    def record_counts(self, *, added: int, deleted: int) -> None:
        """Say how many rows come and go, where that does not follow from the operations."""
        self.added, self.deleted = added, deleted

    def start_anew(self) -> None:
        """Go on as if the partition did not exist, in a directory of its own."""
        self.relocate()
        self.leaf = None

    def as_leaf(self) -> Leaf:
        """The leaf as the transaction itself reads it."""
        return Leaf(
            object_id=self.object_id,
            spec_id=self.spec_id,
            location=self.location,
            key=self.key,
            values=self.leaf.values if self.leaf is not None else tuple(_text(value) for value in self.values),
            read_version=None if self.weak else self.head,
            number=self.leaf.number if self.leaf is not None else 0,
            stats=None if self.weak else self.stats,
        )

    def append(self, rows: list[pa.Table]) -> None:
        """Add rows, given as tables in the table's schema."""
        staged = self.stage(rows)
        if staged is not None:
            self.add([staged])

    def stage(self, rows: list[pa.Table]) -> Staged | None:
        """Write rows into the leaf's directory, part of no version yet."""
        fragments, schema = None, None
        ids: tuple[NativeIds, ...] = ()
        base, source = self._base, self._base
        if self.head is None and self.is_new:
            for table in rows:
                schema, staged = stage_new_rows(self.root, self.metadata, self.location, table)
                fragments = staged if fragments is None else fragments + staged
        else:
            base, shape = self._prepared()
            schema, ids = shape.schema, shape.ids
            matching = Matching.of(shape, self.metadata, self.object_id)
            for table in rows:
                fitted = to_leaf_columns(table, self.metadata.schema, shape.schema, matching)
                staged = leaf_data.stage(self.root, self.location, fitted, base=base if base is not None else "latest")
                fragments = staged if fragments is None else fragments + staged
        if fragments is None:
            return None
        return Staged(fragments=fragments, schema=schema, ids=ids, source=source, base=base, moved=self.moved)

    def add(self, staged: Sequence[Staged]) -> None:
        """Make staged rows part of the transaction's own version, whichever process wrote them."""
        first, items = staged[0], tuple(item for each in staged for item in each.fragments.items)
        if self.head is None and self.is_new:
            self.head = leaf_data.create_leaf(self.root, self.location, first.schema, items)
        else:
            self._add_to_leaf(first, items, alike=all(each.has_columns_of(first) for each in staged))
        self.pending = (*self.pending, *items)
        self._grow(
            sum(each.fragments.rows for each in staged), sum(each.fragments.bytes for each in staged), len(items)
        )

    def _add_to_leaf(self, first: Staged, items: tuple[Fragment, ...], *, alike: bool) -> None:
        """Append fragments to the leaf as the transaction has it, which they must have the columns of."""
        base, shape = first.base, LeafShape(schema=first.schema, ids=first.ids)
        if first.source == self._base:
            self.moved = first.moved
        else:
            base, shape = self._prepared()
        same = not first.ids or (shape.ids == first.ids and shape.schema.equals(first.schema, check_metadata=True))
        self._refuse(conflicts.with_columns(alike=alike, current=same))
        self.ids, self.schema = shape.ids, shape.schema
        self.head = leaf_data.append(self.root, self.location, items, base=base)

    def read_staged(self, location: str, staged: Staged) -> pa.Table:
        """Rows that were written for another leaf's directory, in the table's columns."""
        handle = leaf_data.as_dataset(self.root, location, staged.schema, staged.fragments.items, base=staged.base)
        return _in_table_columns(handle, self.metadata)

    def _prepared(self) -> tuple[int | None, LeafShape]:
        """A version that can take the table's rows, noted if that meant writing those anew that are there."""
        base, shape, anew = prepared(self.root, self.metadata, self.location, self._base)
        if anew and self.head is not None and base is not None:
            self.moved = (*self.moved, (self.head, base))
        return base, shape

    def delete(self, addresses: npt.NDArray[np.uint64]) -> None:
        """Remove the rows at some places."""
        if not len(addresses):
            return
        rows = leaf_data.split_addresses(addresses)
        self.head, gone = leaf_data.delete_rows(self.root, self.location, rows, base=self._base)
        self.deleted += len(addresses)
        self.stats = Stats(
            rows=self.stats.rows - len(addresses), bytes=self.stats.bytes, fragments=self.stats.fragments - gone
        )

    def replace(self) -> None:
        """Remove all rows, those that others add meanwhile too: that is a conflict."""
        self.clear()
        self.replaced = True

    def clear(self) -> None:
        """Remove all rows, by metadata only; a leaf that can't be opened is made again without rows."""
        try:
            self.head = leaf_data.clear(self.root, self.location, base=self._base)
        except UnreadableError:
            self.relocate()
            schema = leaf_schema(self.metadata.schema)
            self.head = leaf_data.create_leaf(self.root, self.location, schema, ())
        self.deleted += self.stats.rows
        self.stats = Stats(rows=0, bytes=0, fragments=0)

    def relocate(self) -> None:
        """Let what is written from now on stand in a directory of its own, and nothing be there yet."""
        if not self.weak:
            assert self.anew is not None
            self.location = self.anew
        self.head, self.pending, self.moved, self.ids, self.schema = None, (), (), (), None

    @property
    def _base(self) -> int | None:
        return None if self.weak else self.head

    def _grow(self, rows: int, size: int, fragments: int) -> None:
        self.added += rows
        self.stats = Stats(
            rows=self.stats.rows + rows, bytes=self.stats.bytes + size, fragments=self.stats.fragments + fragments
        )

    def rebase(self, current: Leaf | None) -> None:
        """Put the changes on top of the leaf as it is published now, or say that they do not go together."""
        if self.leaf is not None and (current is None or current.location != self.leaf.location):
            self._leave(self.leaf)
        if current is None:
            return
        if self.leaf is not None and current.read_version == self.leaf.read_version:
            self.leaf = current
            return
        if self.leaf is None:
            self._move_into(current)
        else:
            self._redo_on(current)

    def _leave(self, leaf: Leaf) -> None:
        """The leaf was removed, as empty ones are: rows that were only added to it make the partition anew."""
        self._refuse(conflicts.with_removal(self.effect))
        rows = self._own_rows(self._own_difference())
        self.leaf, self.added, self.stats = None, 0, Stats(rows=0, bytes=0, fragments=0)
        self.relocate()
        self.append([rows])

    def _move_into(self, winner: Leaf) -> None:
        """Another writer created the partition first: its leaf takes our rows."""
        if not self.weak:
            self._refuse(conflicts.with_creation(self.effect))
        self._refuse_same_keys(winner)
        rows = _rows(self.root, self.metadata, self.location, self.head)
        self.leaf, self.location, self.head, self.object_id = (
            winner,
            winner.location,
            winner.read_version,
            winner.object_id,
        )
        self.added, self.pending = 0, ()
        self.stats = self.measured()
        if self.replaced:
            self.replace()
        self.append([rows])

    def _redo_on(self, current: Leaf) -> None:
        self._refuse(conflicts.with_new_version(self.effect))
        assert self.leaf is not None
        assert self.leaf.read_version is not None
        assert self.head is not None
        assert current.read_version is not None
        ours = self._own_difference()
        theirs = leaf_data.difference(self.root, self.location, self.leaf.read_version, current.read_version)
        self._refuse_same_keys(current, theirs)
        self._refuse(conflicts.with_rows(ours, theirs))
        again = self._reusable(ours)
        mine = None if again else self._own_rows(ours)
        deletions = dict(ours.deleted) | {key: self._all_of(key) for key in ours.removed}
        counts = self.added, self.deleted
        self.leaf, self.head, self.moved = current, current.read_version, ()
        if deletions:
            self.head, _ = leaf_data.delete_rows(self.root, self.location, deletions, base=self.head)
        self._add_again(again, mine)
        self.added, self.deleted = counts
        self.stats = self.measured()

    def _own_difference(self) -> Difference:
        """What the transaction did to the rows that it found, and what it added."""
        assert self.leaf is not None
        assert self.leaf.read_version is not None
        assert self.head is not None
        if not self.moved:
            return leaf_data.difference(self.root, self.location, self.leaf.read_version, self.head)
        before = leaf_data.difference(self.root, self.location, self.leaf.read_version, self.moved[0][0])
        after = leaf_data.difference(self.root, self.location, self.moved[-1][1], self.head)
        self._refuse(conflicts.with_own_rewrite(len(self.moved), before, after))
        return replace(before, added=after.added)

    def _reusable(self, ours: Difference) -> bool:
        """Whether the fragments as they were first written are still all that the transaction added."""
        files = {file.path for item in self.pending for file in item.files}
        added = {file.path for item in ours.added for file in item.files}
        return files == added and all(item.deletion_file is None for item in ours.added)

    def _add_again(self, again: bool, mine: pa.Table | None) -> None:
        """Add the transaction's rows to a newer version: the same fragments, if its columns are still the same."""
        if again and self.pending:
            base, shape = self._prepared()
            if shape.ids == self.ids and shape.schema.equals(self.schema, check_metadata=True):
                self.head = leaf_data.append(self.root, self.location, self.pending, base=base)
                return
            source = leaf_data.as_dataset(self.root, self.location, self.schema, self.pending, base=self.head)
            mine = _in_table_columns(source, self.metadata)
        if mine is not None and mine.num_rows:
            self.pending = ()
            self.append([mine])

    def _refuse_same_keys(self, current: Leaf, theirs: Difference | None = None) -> None:
        """An upsert of a key that another writer added since does not know that row."""
        if not self.keys:
            return
        handle = leaf_data.open_leaf(self.root, current.location, current.read_version)
        found = (
            None
            if theirs is None
            else chain(
                leaf_data.rows_of(handle, theirs.added) if theirs.added else (),
                leaf_data.rows_at(handle, theirs.restored),
            )
        )
        rows = _in_table_columns(handle, self.metadata, found)
        self._refuse(conflicts.with_keys(index.contains(rows.select(list(on))) for on, index in self.keys))

    def _all_of(self, number: int) -> npt.NDArray[np.int64]:
        assert self.leaf is not None
        handle = leaf_data.open_leaf(self.root, self.location, self.leaf.read_version)
        return leaf_data.live_offsets(handle, number)

    def _own_rows(self, ours: Difference) -> pa.Table | None:
        """The rows that the transaction added, read back in the table's columns."""
        if not ours.added:
            return None
        handle = leaf_data.open_leaf(self.root, self.location, self.head)
        return _in_table_columns(handle, self.metadata, leaf_data.rows_of(handle, ours.added))

    def measured(self) -> Stats:
        """How much the transaction's own version holds."""
        rows, size, fragments = leaf_data.measure(leaf_data.open_leaf(self.root, self.location, self._base))
        return Stats(rows=rows, bytes=size, fragments=fragments)

    def _refuse(self, reason: str | None) -> None:
        """Raise a conflict if a rule gives a reason for one; an upsert can be done again."""
        if reason is not None:
            kind = StaleReadError if self.keys else CommitConflictError
            raise kind(f"partition {self.object_id!r} {reason}", partitions=(self.object_id,))


def _text(value: pa.Scalar) -> str | None:
    return None if value.as_py() is None else str(value)


def _rows(root: Root, metadata: TableMetadata, location: str, version: int | None) -> pa.Table:
    return _in_table_columns(leaf_data.open_leaf(root, location, version), metadata)


def _in_table_columns(
    handle: Any, metadata: TableMetadata, batches: Iterable[pa.RecordBatch] | None = None
) -> pa.Table:
    """The rows of an open leaf as the table shows them."""
    shape = leaf_data.shape_of(handle)
    matching = Matching.of(shape, metadata, handle.uri.rsplit("/", 1)[-1])
    found = handle.to_batches(**AS_BYTES) if batches is None else batches
    shown = [to_table_columns(batch, metadata.schema, matching) for batch in found]
    return pa.Table.from_batches(shown, schema=metadata.plain_schema.remove_metadata())
