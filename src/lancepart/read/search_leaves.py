"""The leaves of a search: each opened once at its version and searched on threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lancepart.layout.columns import to_table_columns
from lancepart.layout.declared_indices import declared
from lancepart.layout.leaves import Leaf
from lancepart.model.aliases import JsonObject
from lancepart.model.nested import path_of, project
from lancepart.model.schema import field_id
from lancepart.read import leaf as reading
from lancepart.read.hits import Hits
from lancepart.read.leaf import LeafTask, OpenLeaf
from lancepart.read.prefetch import THREADS
from lancepart.read.scan import Scan
from lancepart.read.search_union import SearchUnion, union_of
from lancepart.read.union import matching_partly
from lancepart.storage import search as storage
from lancepart.storage.cache import cache, handle_size
from lancepart.storage.dataset import Dataset
from lancepart.storage.leaf_data import Addresses
from lancepart.storage.translate import storage_errors

Result = TypeVar("Result")
_FEW_LEAVES = 2
_SMALL_BYTES = 4 << 20
"""Leaves no larger than that have the columns that searches show kept in memory."""
_LEAST_CAPACITY = 16 * _SMALL_BYTES


class SearchLeaves:
    """The leaves of a scan's plan; ``at`` is a leaf's place among them, in an order that all plans agree on."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.leaves, self._partly = _planned(scan)
        self._open: dict[int, OpenLeaf | None] = {}
        self._lock = threading.Lock()
        self._union: SearchUnion | None = None

    def over(self, places: Sequence[int], action: Callable[[int], Result]) -> list[Result]:
        """Do something for leaves on threads; the results in their order."""
        if len(places) < 2:
            return [action(at) for at in places]
        with ThreadPoolExecutor(min(THREADS, len(places))) as pool:
            return list(pool.map(action, places))

    @property
    def places(self) -> range:
        """The places of all leaves."""
        return range(len(self.leaves))

    def opened(self, at: int) -> OpenLeaf | None:
        """A leaf at one version for as long as the search lasts; None if it can't hold a matching row."""
        with self._lock:
            if at in self._open:
                return self._open[at]
        task = self.scan.task_of(self.leaves[at])
        found = reading.opened(replace(task, predicate=None) if self.is_whole(at) else task, kept_open)
        with self._lock:
            return self._open.setdefault(at, found)

    def is_whole(self, at: int) -> bool:
        """Whether all rows of a leaf are known to match."""
        return self.leaves[at].object_id not in self._partly

    def union(self) -> SearchUnion | None:
        """All leaves as one dataset; None if they can't be."""
        if self._union is None:
            scan = self.scan
            self._union = union_of(scan.root, scan.metadata, self.leaves, kept_open, declared(scan.snapshot))
        return self._union

    def restriction(self, opened: OpenLeaf) -> JsonObject:
        """What lets only matching rows of a leaf count: a filter that Lance answers, or the rows' addresses."""
        if opened.residual is None:
            return {"where": opened.pushed}
        return {"allowed": reading.matching_addresses(opened.task)}

    def union_restriction(self, made: SearchUnion) -> JsonObject:
        """The same for all leaves as one dataset."""
        predicate = self.scan.predicate
        if predicate is None or all(map(self.is_whole, self.places)):
            return {}
        if (where := made.pushed(predicate, self.scan.metadata)) is not None:
            return {"where": where}
        parts = self.over(self.places, self._all_matching)
        places = np.concatenate([np.full(len(part), at) for at, part in enumerate(parts)])
        return {"allowed": made.joined(places, np.concatenate(parts))}

    def _all_matching(self, at: int) -> Addresses:
        opened = self.opened(at)
        return np.array([], dtype=np.uint64) if opened is None else reading.matching_addresses(opened.task)

    def matching_addresses(self, at: int) -> Addresses | None:
        """Where the matching rows of a leaf stand; None if all rows match."""
        if self.is_whole(at):
            return None
        opened = self.opened(at)
        if opened is None:
            return np.array([], dtype=np.uint64)
        return None if opened.task.predicate is None else reading.matching_addresses(opened.task)

    def rows(self, hits: Hits, columns: Sequence[str]) -> pa.Table:
        """The rows of hits in their order, in some of the table's columns or fields inside them."""
        plain = self.scan.metadata.plain_schema
        tops = tuple(dict.fromkeys((path_of(name, plain) or (name,))[0] for name in columns))
        schema = pa.schema([plain.field(name) for name in tops])
        ordered = self._ordered_rows(hits, tops, schema)
        if tops == tuple(columns):
            return ordered
        batches = ordered.to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]
        return pa.Table.from_batches([project(batch, columns) for batch in batches])

    def _ordered_rows(self, hits: Hits, tops: Sequence[str], schema: pa.Schema) -> pa.Table:
        places = [int(at) for at in np.unique(hits.leaf)]
        small = all(self._has_small_rows(at, tops) for at in places)
        made = None if small or len(places) <= _FEW_LEAVES else self.union()
        if made is not None:
            return pa.Table.from_batches([self._rows_of_union(made, hits, tops)], schema=schema)
        ask = partial(self._rows_at, hits, tops)
        parts = [ask(at) for at in places] if small else self.over(places, ask)
        whole = pa.Table.from_batches(parts, schema=schema)
        if len(places) == 1:
            return whole
        stood = np.concatenate([np.flatnonzero(hits.leaf == at) for at in places] or [np.array([], dtype=np.int64)])
        return whole.take(pa.array(np.argsort(stood))).combine_chunks()

    def _rows_at(self, hits: Hits, tops: Sequence[str], at: int) -> pa.RecordBatch:
        return self._rows(at, hits.address[hits.leaf == at], tops)

    def _has_small_rows(self, at: int, tops: Sequence[str]) -> bool:
        """Whether the rows of a leaf are kept in memory, or are in no union."""
        if self.leaves[at].read_version is None:
            return True
        types = [self.scan.metadata.plain_schema.field(name).type for name in tops]
        return _is_small(self.leaves[at], types)

    def _shown_fields(self, columns: Sequence[str]) -> list[pa.Field]:
        schema = self.scan.metadata.schema
        return [schema.field(schema.get_field_index(name)) for name in columns]

    def _rows_of_union(self, made: SearchUnion, hits: Hits, columns: Sequence[str]) -> pa.RecordBatch:
        shown = self._shown_fields(columns)
        names = [made.matching.names[field_id(field) or 0] for field in shown]
        with storage_errors("read rows of leaves", self.scan.root):
            found = storage.rows_at(made.handle, names, made.joined(hits.leaf, hits.address))
        return made.shown(found.to_batches()[0] if found.num_rows else _empty(found, 0), shown)

    def _rows(self, at: int, addresses: Addresses, columns: Sequence[str]) -> pa.RecordBatch:
        opened = self.opened(at)
        assert opened is not None
        shown = self._shown_fields(columns)
        names = [name for field in shown if (name := opened.matching.names.get(field_id(field) or 0)) is not None]
        with storage_errors(f"read the leaf at {opened.task.leaf.location!r}", opened.task.root):
            found = self._taken(at, opened, names, addresses)
        batch = found.to_batches()[0] if names and found.num_rows else _empty(found, len(addresses))
        return to_table_columns(batch, shown, opened.matching)

    def _taken(self, at: int, opened: OpenLeaf, names: list[str], addresses: Addresses) -> pa.Table:
        """Columns of the rows at some addresses; those of small leaves are kept in memory."""
        key = leaf_key(self.scan.task_of(self.leaves[at]))
        types = [opened.handle.schema.field(name).type for name in names]
        if key is None or not names or not _is_small(self.leaves[at], types):
            return storage.rows_at(opened.handle, names, addresses)

        def read() -> tuple[pa.Table, Addresses]:
            held = storage.all_rows(opened.handle, names)
            return held.drop_columns([storage.ADDRESS]), held.column(storage.ADDRESS).to_numpy()

        rows, known = cache.get(("rows", key, tuple(names)), read, lambda made: int(made[0].nbytes + made[1].nbytes))
        return rows.take(pa.array(storage.positions(known, addresses))).combine_chunks()


def _planned(scan: Scan) -> tuple[tuple[Leaf, ...], frozenset[str]]:
    """The leaves of a scan in order, and those of which some rows may not match; known for as long as the snapshot."""

    def make() -> tuple[tuple[Leaf, ...], frozenset[str]]:
        return tuple(sorted(scan.plan().leaves, key=lambda leaf: leaf.object_id)), matching_partly(scan)

    if scan.planned is not None:
        return make()
    return scan.snapshot.derived(("search", scan.where, scan.metadata.plain_schema.serialize().to_pybytes()), make)


def _is_small(leaf: Leaf, types: Sequence[pa.DataType]) -> bool:
    """Whether columns of a leaf take so little memory that they are kept there."""
    if leaf.stats is None or cache.capacity < _LEAST_CAPACITY:
        return False
    if leaf.stats.bytes <= _SMALL_BYTES:
        return True
    fixed = all(pa.types.is_primitive(kind) for kind in types)
    return fixed and leaf.stats.rows * sum(max(8, kind.bit_width) // 8 for kind in types) <= _SMALL_BYTES


def _empty(found: pa.Table, rows: int) -> pa.RecordBatch:
    """A batch of rows without any column; no rows keep their columns."""
    if not rows:
        return pa.RecordBatch.from_pylist([], schema=found.schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


def leaf_key(task: LeafTask) -> tuple[Hashable, ...] | None:
    """What a leaf at its version is kept under between searches; None if it may change."""
    root, leaf = task.root, task.leaf
    if leaf.read_version is None:
        return None
    return root.uri, tuple(sorted(root.storage_options.items())), leaf.location, leaf.read_version


def kept_open(task: LeafTask) -> Dataset:
    """The leaf of a task, kept open between searches if its version never changes."""
    key = leaf_key(task)
    if key is None:
        return reading.open_leaf(task)
    found: Dataset = cache.get(("leaf", *key), lambda: reading.open_leaf(task, session=cache.session), handle_size)
    return found
