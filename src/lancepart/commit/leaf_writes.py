"""The rows that a transaction adds to one leaf and removes from it, in detached versions that no reader sees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.commit import conflicts
from lancepart.commit.conflicts import LeafEffect, StaleReadError
from lancepart.commit.leaf_schema import Prepared, as_it_is, create_with_rows, prepared, stage_new_rows
from lancepart.commit.upsert_keys import KeyIndex
from lancepart.errors import CommitConflictError
from lancepart.format.records import Stats
from lancepart.layout.columns import AS_BYTES, leaf_schema, to_leaf_columns, to_table_columns
from lancepart.layout.leaves import Leaf
from lancepart.layout.matching import Matching
from lancepart.layout.metadata import TableMetadata
from lancepart.storage import leaf_data, leaf_handle, leaf_record
from lancepart.storage.leaf_data import Fragments
from lancepart.storage.leaf_handle import Fragment, LeafHandle, LeafShape, NativeIds
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
class LeafWrites:
    """What a transaction has written to one leaf; it changes by its own methods only.

    ``leaf`` is what was published when the transaction began, ``None`` for a partition that it creates; ``head`` is the
    private version that holds its changes, ``None`` while there is none; ``keys`` are those of upserts, none of which
    another writer may have added meanwhile; ``moved`` are pairs of versions with the same rows, the second one
    rewritten; ``new_location`` is where the leaf is recreated if it is cleared and can't be opened.
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
    new_location: str | None = None

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
        """Whether the transaction recreated an existing leaf in another directory."""
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

    def know_values(self, values: tuple[pa.Scalar, ...]) -> None:
        """Take the partition's values from its rows: with them it can be recreated."""
        self.values = values

    def guard(self, on: Sequence[str], index: KeyIndex) -> None:
        """Fail the commit if another writer added one of the keys meanwhile."""
        self.keys = (*self.keys, (tuple(on), index))

    def claim_all(self) -> None:
        """Treat rows that others add meanwhile as a conflict: the transaction replaces all rows."""
        self.replaced = True

    def take_version(self, version: int) -> None:
        """Take an existing version of the leaf as the transaction's own, whatever others add meanwhile."""
        self.head = version
        self.stats = self.measured()
        self.claim_all()

    def record_counts(self, *, added: int, deleted: int) -> None:
        """Record how many rows are added and removed, where that does not follow from the operations."""
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
            numbering=() if self.leaf is None or self.is_relocated else self.leaf.numbering,
        )

    def append(self, rows: list[pa.Table]) -> None:
        """Add rows, given as tables in the table's schema."""
        self.exchange(np.array([], dtype=np.uint64), rows)

    def exchange(self, addresses: npt.NDArray[np.uint64], rows: list[pa.Table]) -> None:
        """Remove the rows at some addresses and add others: in one version, if the leaf takes them as it is."""
        ready = None
        if rows and self._base is not None:
            ready = as_it_is(self.root, self.metadata, self.location, self._base)
        if ready is None:
            self.delete(addresses)
            if not self._created_with(rows) and (staged := self.stage(rows)) is not None:
                self.add([staged])
            return
        staged = self.stage(rows, ready=ready)
        assert staged is not None
        items = staged.fragments.items
        if len(addresses):
            self._delete(addresses, adding=items, handle=ready.handle)
        else:
            self.head = leaf_data.append(self.root, self.location, items, base=self._base, handle=ready.handle)
        self.ids, self.schema = staged.ids, staged.schema
        self.pending = (*self.pending, *items)
        self._grow(staged.fragments.rows, staged.fragments.bytes, len(items))

    def _created_with(self, rows: list[pa.Table]) -> bool:
        """Make the first version of a new leaf out of its rows at once, if they are one table."""
        made = None
        if self.head is None and self.is_new and len(rows) == 1:
            made = create_with_rows(self.root, self.metadata, self.location, rows[0])
        if made is None:
            return False
        self.head, fragments = made
        self.pending = (*self.pending, *fragments.items)
        self._grow(fragments.rows, fragments.bytes, len(fragments.items))
        return True

    def stage(
        self, rows: list[pa.Table], *, file_bytes: int | None = None, ready: Prepared | None = None
    ) -> Staged | None:
        """Write rows into the leaf's directory, part of no version yet, in files of at most about a size.

        ``ready`` is the version that takes them, if it is known.
        """
        fragments, schema = None, None
        ids: tuple[NativeIds, ...] = ()
        base, source = self._base, self._base
        if self.head is None and self.is_new:
            for table in rows:
                schema, staged = stage_new_rows(self.root, self.metadata, self.location, table, file_bytes)
                fragments = staged if fragments is None else fragments + staged
        else:
            ready = ready or self._prepared()
            base, shape = ready.version, ready.columns.shape
            schema, ids = shape.schema, shape.ids
            for table in rows:
                fitted = to_leaf_columns(table, self.metadata.schema, shape.schema, ready.columns.matching)
                follows = base if base is not None else "latest"
                staged = leaf_data.stage(
                    self.root, self.location, fitted, base=follows, handle=ready.handle, file_bytes=file_bytes
                )
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
            ready = self._prepared()
            base, shape = ready.version, ready.columns.shape
        same = not first.ids or (shape.ids == first.ids and shape.schema.equals(first.schema, check_metadata=True))
        self._refuse(conflicts.with_columns(alike=alike, current=same))
        self.ids, self.schema = shape.ids, shape.schema
        self.head = leaf_data.append(self.root, self.location, items, base=base)

    def read_staged(self, location: str, staged: Staged) -> pa.Table:
        """Rows that were written for another leaf's directory, in the table's columns."""
        handle = leaf_data.as_dataset(self.root, location, staged.schema, staged.fragments.items, base=staged.base)
        return in_table_columns(handle, self.metadata)

    def _prepared(self) -> Prepared:
        """A version that can take the table's rows, recorded if existing rows had to be rewritten."""
        ready = prepared(self.root, self.metadata, self.location, self._base)
        if ready.rewritten and self.head is not None and ready.version is not None:
            self.moved = (*self.moved, (self.head, ready.version))
        return ready

    def delete(self, addresses: npt.NDArray[np.uint64]) -> None:
        """Remove the rows at some addresses."""
        if len(addresses):
            self._delete(addresses)

    def _delete(
        self,
        addresses: npt.NDArray[np.uint64],
        *,
        adding: Sequence[Fragment] = (),
        handle: LeafHandle | None = None,
    ) -> None:
        """Make the version without some rows, and with those of fragments that are counted elsewhere."""
        rows = leaf_handle.split_addresses(addresses)
        self.head, gone = leaf_data.delete_rows(
            self.root, self.location, rows, base=self._base, adding=adding, handle=handle
        )
        self.deleted += len(addresses)
        self.stats = Stats(
            rows=self.stats.rows - len(addresses),
            bytes=max(0, self.stats.bytes - sum(gone)),
            fragments=self.stats.fragments - len(gone),
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
        """Write from now on to a new directory, with no rows yet."""
        if not self.weak:
            assert self.new_location is not None
            self.location = self.new_location
        self.head, self.pending, self.moved, self.ids, self.schema = None, (), (), (), None

    @property
    def _base(self) -> int | None:
        return None if self.weak else self.head

    def _grow(self, rows: int, size: int, fragments: int) -> None:
        self.added += rows
        self.stats = Stats(
            rows=self.stats.rows + rows, bytes=self.stats.bytes + size, fragments=self.stats.fragments + fragments
        )

    def measured(self) -> Stats:
        """How much the transaction's own version holds."""
        known = leaf_record.noted_size(self.root, self.location, self._base)
        if known is not None:
            return Stats(rows=known[0], bytes=known[1], fragments=known[2])
        handle = leaf_handle.open_leaf(self.root, self.location, self._base)
        leaf_record.note(self.root, self.location, handle)
        rows, size, fragments = leaf_handle.measure(handle)
        return Stats(rows=rows, bytes=size, fragments=fragments)

    def _refuse(self, reason: str | None) -> None:
        """Raise a conflict if a rule gives a reason for one; an upsert can be done again."""
        if reason is not None:
            kind = StaleReadError if self.keys else CommitConflictError
            raise kind(f"partition {self.object_id!r} {reason}", partitions=(self.object_id,))


def _text(value: pa.Scalar) -> str | None:
    return None if value.as_py() is None else str(value)


def in_table_columns(
    handle: LeafHandle, metadata: TableMetadata, batches: Iterable[pa.RecordBatch] | None = None
) -> pa.Table:
    """The rows of an open leaf as the table shows them."""
    shape = leaf_handle.shape_of(handle)
    matching = Matching.of(shape, metadata, handle.uri.rsplit("/", 1)[-1])
    found = handle.scanner(**AS_BYTES).to_batches() if batches is None else batches
    shown = [to_table_columns(batch, metadata.schema, matching) for batch in found]
    return pa.Table.from_batches(shown, schema=metadata.plain_schema.remove_metadata())
