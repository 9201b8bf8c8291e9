"""The leaves of a search: each opened once at its version and searched on threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.layout.columns import to_table_columns
from lancepart.layout.leaves import Leaf
from lancepart.layout.matching import Matching
from lancepart.model.aliases import JsonObject
from lancepart.model.config import config
from lancepart.model.nested import path_of, project
from lancepart.model.schema import field_id
from lancepart.read import leaf as reading
from lancepart.read.hits import Hits
from lancepart.read.leaf import LeafTask, OpenLeaf
from lancepart.read.leaf_memory import LeafKey, is_kept, keep, kept, leaf_key
from lancepart.read.scan import Scan
from lancepart.read.search_plan import planned
from lancepart.read.search_union import SearchUnion, union_of
from lancepart.storage import search as storage
from lancepart.storage.cache import cache
from lancepart.storage.leaf_handle import Addresses, LeafHandle
from lancepart.storage.translate import storage_errors

Result = TypeVar("Result")
KeptRows: TypeAlias = tuple[pa.RecordBatch, npt.NDArray[np.int64], Addresses]
"""Rows, their order by address, and the addresses in that order."""
_FEW_LEAVES, _PLACE_BYTES, _MATCHING_BYTES = 2, 16, 4 << 10
_SMALL_BYTES = 4 << 20
"""Leaves no larger than that have the columns that searches show kept in memory."""
_LEAST_CAPACITY = 16 * _SMALL_BYTES
_TOGETHER_BYTES, _OFTEN = 64 << 20, 4
"""Columns of all leaves together are kept as one block if they take no more, once so many searches needed them.

To put those of 1,000 leaves together takes 12 ms of CPU if they are kept already.
"""


class SearchLeaves:
    """The leaves of a scan's plan; ``at`` is a leaf's place among them, in an order that all plans agree on.

    Leaves without snapshots are read as those ``beside`` them are.
    """

    def __init__(self, scan: Scan, beside: SearchLeaves | None = None) -> None:
        self.scan, self._beside = scan, beside
        self.plan = planned(scan)
        self.leaves = self.plan.leaves
        self._open: dict[int, OpenLeaf | None] = {}
        self._lock = threading.Lock()
        self._union: SearchUnion | None = None

    def over(self, positions: Sequence[int], action: Callable[[int], Result]) -> list[Result]:
        """Do something for leaves on threads; the results in their order."""
        if len(positions) < 2:
            return [action(at) for at in positions]
        with ThreadPoolExecutor(min(config.threads, len(positions))) as pool:
            return list(pool.map(action, positions))

    @property
    def positions(self) -> range:
        """The positions of all leaves."""
        return range(len(self.leaves))

    def opened(self, at: int) -> OpenLeaf | None:
        """A leaf at one version for as long as the search lasts; None if it can't hold a matching row."""
        with self._lock:
            if at in self._open:
                return self._open[at]
        task = LeafTask(
            root=self.scan.root,
            metadata=self.scan.metadata,
            leaf=self.leaves[at],
            columns=tuple(self.scan.schema.names),
            predicate=None if self.is_whole(at) else self.scan.predicate,
        )
        other = None if self._beside is None else self._beside.floating(task.leaf)
        found = reading.opened(task, reading.kept_open if other is None else other.reopen, self._matched)
        with self._lock:
            return self._open.setdefault(at, found)

    def floating(self, leaf: Leaf) -> OpenLeaf | None:
        """A leaf whose version is not fixed, at that at which it is read; None for others."""
        at = None if leaf.read_version is not None else self._places.get(leaf.object_id)
        return None if at is None else self.opened(at)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {leaf.object_id: at for at, leaf in enumerate(self.leaves)}

    def _matched(self, task: LeafTask, handle: LeafHandle) -> Matching:
        """How the columns of a leaf match the table's; kept between searches if the leaf's version never changes."""
        key = leaf_key(task.root, task.leaf)
        if key is None:
            return reading.matched(task, handle)
        own = ("matching", self.plan.definition_key, *key)
        return cache.get(own, lambda: reading.matched(task, handle), lambda _: _MATCHING_BYTES)

    def is_whole(self, at: int) -> bool:
        """Whether all rows of a leaf are known to match."""
        return self.leaves[at].object_id not in self.plan.partly

    def union(self) -> SearchUnion | None:
        """All leaves as one dataset; None if they can't be."""
        if self._union is None:
            self._union = union_of(self.plan, reading.kept_open, self.scan.snapshot)
        return self._union

    def restriction(self, opened: OpenLeaf) -> JsonObject:
        """The restriction of a leaf to matching rows: a filter for Lance, or the rows' addresses."""
        if opened.residual is None:
            return {"where": opened.pushed}
        return {"allowed": reading.matching_addresses(opened.task, opened.reopen)}

    def union_restriction(self, made: SearchUnion) -> JsonObject:
        """The same for all leaves as one dataset."""
        predicate = self.scan.predicate
        if predicate is None or self.plan.are_whole:
            return {}
        if (where := made.pushed(predicate, self.scan.metadata)) is not None:
            return {"where": where}
        parts = self.over(self.positions, self._all_matching)
        positions = np.concatenate([np.full(len(part), at) for at, part in enumerate(parts)])
        return {"allowed": made.joined(positions, np.concatenate(parts))}

    def _all_matching(self, at: int) -> Addresses:
        opened = self.opened(at)
        return (
            np.array([], dtype=np.uint64) if opened is None else reading.matching_addresses(opened.task, opened.reopen)
        )

    def matching_addresses(self, at: int) -> Addresses | None:
        """The addresses of the matching rows of a leaf; None if all rows match."""
        if self.is_whole(at):
            return None
        opened = self.opened(at)
        if opened is None:
            return np.array([], dtype=np.uint64)
        return None if opened.task.predicate is None else reading.matching_addresses(opened.task, opened.reopen)

    def possible_addresses(self, at: int) -> Addresses | None:
        """No addresses if the path of a leaf says that none of its rows match; None, which is all, for others."""
        is_pruned = self.leaves[at].constants and self.opened(at) is None
        return np.array([], dtype=np.uint64) if is_pruned else None

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
        positions = [int(at) for at in np.unique(hits.leaf)]
        spelled = pa.schema(self._shown_fields(tops)).serialize().to_pybytes()
        if self._union is not None and len(positions) > _FEW_LEAVES:
            block = self._block(self._union, tops, spelled)
            if block is not None:
                wanted = self._union.joined(hits.leaf, hits.address)
                return pa.Table.from_batches([_taken(block, wanted)], schema=schema)
        small = all(self._has_small_rows(at, tops) for at in positions)
        made = None if small or len(positions) <= _FEW_LEAVES else self.union()
        if made is not None:
            return pa.Table.from_batches([self._rows_of_union(made, hits, tops)], schema=schema)
        if small and self._union is not None:
            self._bring(self._union, positions, tops, spelled)
        ask = partial(self._rows_at, hits, tops, spelled)
        parts = [ask(at) for at in positions] if small else self.over(positions, ask)
        whole = pa.Table.from_batches(parts, schema=schema)
        if len(positions) == 1:
            return whole
        stood = np.concatenate([np.flatnonzero(hits.leaf == at) for at in positions] or [np.array([], dtype=np.int64)])
        return whole.take(pa.array(np.argsort(stood))).combine_chunks()

    def _block(self, made: SearchUnion, columns: Sequence[str], spelled: bytes) -> KeptRows | None:
        """Columns of all leaves by address in their union, None while few searches needed them or if they are large.

        It is of one snapshot: what is kept of each leaf lasts longer, and costs more for each search.
        """
        types = [self.scan.metadata.plain_schema.field(name).type for name in columns]
        if self.plan.rows is None or not all(map(pa.types.is_primitive, types)):
            return None
        size = self.plan.rows * (_width(types) + _PLACE_BYTES)
        if size > min(_TOGETHER_BYTES, cache.capacity // 16):
            return None
        made.requests[spelled] = made.requests.get(spelled, 0) + 1
        if made.requests[spelled] <= _OFTEN:
            return None

        def read() -> tuple[KeptRows, SearchUnion]:
            if self._are_small_together(columns):
                return self._joined_rows(made, columns, spelled), made
            shown = self._shown_fields(columns)
            with storage_errors("read rows of leaves", self.scan.root):
                found, addresses = _all_rows(made.handle, made.names_of(shown), None)
            batches = found.combine_chunks().to_batches() or [_empty(found, 0)]
            return _sorted(made.shown(batches[0], shown), addresses), made

        return cache.get(("rows together", id(made), spelled), read, lambda held: _rows_size(held[0]))[0]

    def _joined_rows(self, made: SearchUnion, columns: Sequence[str], spelled: bytes) -> KeptRows:
        """The rows that are kept of all leaves, by address in their union; those that are not are read together."""
        self._bring(made, self.positions, columns, spelled)
        parts = [self._kept_rows(at, columns, spelled) for at in self.positions]
        owner = np.repeat(np.array(self.positions, dtype=np.int64), [len(part[2]) for part in parts])
        inside = np.concatenate([np.array([], dtype=np.int64), *(part[1] for part in parts)])
        before = np.cumsum([0, *(part[0].num_rows for part in parts)])
        addresses = made.joined(owner, np.concatenate([np.array([], dtype=np.uint64), *(part[2] for part in parts)]))
        rows = pa.Table.from_batches([part[0] for part in parts]).combine_chunks()
        order = np.argsort(addresses, kind="stable")
        return rows.to_batches()[0], (inside + before[owner])[order], addresses[order]

    def _bring(self, made: SearchUnion, positions: Sequence[int], columns: Sequence[str], spelled: bytes) -> None:
        """Read the rows of small leaves that are not in memory yet in one pass; if all are small together, of all."""
        lacking = self._lacking(positions, spelled)
        if len(lacking) <= _FEW_LEAVES:
            return
        if self._are_small_together(columns):
            lacking = self._lacking(self.positions, spelled)
        shown = self._shown_fields(columns)
        names = made.names_of(shown)
        numbers = made.numbers[np.isin(made.leaf_positions, list(lacking))]
        with storage_errors("read rows of leaves", self.scan.root):
            found, addresses = _all_rows(made.handle, names, numbers.tolist())
        if not found.num_rows:
            return
        rows = made.shown(found.combine_chunks().to_batches()[0], shown)
        owner, own = made.split(addresses)
        order = np.lexsort((own, owner))
        wanted = np.array(list(lacking), dtype=np.int64)
        starts, ends = (np.searchsorted(owner[order], wanted, side) for side in ("left", "right"))
        for key, start, end in zip(lacking.values(), starts.tolist(), ends.tolist(), strict=True):
            mine = order[start:end]
            held = rows.take(pa.array(mine)), np.arange(end - start), own[mine]
            keep(("rows", spelled), key, held, _rows_size(held))

    def _lacking(self, positions: Sequence[int], spelled: bytes) -> dict[int, LeafKey]:
        """The leaves whose rows are not in memory, and what these are kept under."""
        keys = {at: key for at in positions if (key := leaf_key(self.scan.root, self.leaves[at])) is not None}
        return {at: key for at, key in keys.items() if not is_kept(("rows", spelled), key)}

    def _are_small_together(self, columns: Sequence[str]) -> bool:
        types = [self.scan.metadata.plain_schema.field(name).type for name in columns]
        stats = [leaf.stats for leaf in self.leaves]
        if not all(pa.types.is_primitive(kind) for kind in types) or None in stats:
            return False
        return sum(each.rows for each in stats if each is not None) * _width(types) <= _SMALL_BYTES

    def _rows_at(self, hits: Hits, columns: Sequence[str], spelled: bytes, at: int) -> pa.RecordBatch:
        """Columns of the rows found in a leaf; those of small leaves are kept in memory, as the table shows them."""
        addresses = hits.address[hits.leaf == at]
        if self.leaves[at].read_version is None or not self._has_small_rows(at, columns):
            return self._read(
                at, columns, lambda handle, names: (storage.rows_at(handle, names, addresses), addresses)
            )[0]
        return _taken(self._kept_rows(at, columns, spelled), addresses)

    def _kept_rows(self, at: int, columns: Sequence[str], spelled: bytes) -> KeptRows:
        """Columns of all rows of a leaf, kept in memory."""
        key = leaf_key(self.scan.root, self.leaves[at])
        assert key is not None
        return kept(
            ("rows", spelled),
            key,
            lambda: self.handle(at),
            lambda fragments: self._sorted_rows(at, columns, fragments),
            _joined,
            _rows_size,
        )

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
        with storage_errors("read rows of leaves", self.scan.root):
            found = storage.rows_at(made.handle, made.names_of(shown), made.joined(hits.leaf, hits.address))
        return made.shown(found.to_batches()[0] if found.num_rows else _empty(found, 0), shown)

    def handle(self, at: int) -> LeafHandle:
        """The open dataset of a leaf that holds matching rows."""
        opened = self.opened(at)
        assert opened is not None
        found: LeafHandle = opened.handle
        return found

    def _sorted_rows(self, at: int, columns: Sequence[str], fragments: Sequence[int] | None) -> KeptRows:
        rows, addresses = self._read(at, columns, lambda handle, names: _all_rows(handle, names, fragments))
        return _sorted(rows, addresses)

    def _read(
        self,
        at: int,
        columns: Sequence[str],
        read: Callable[[LeafHandle, list[str]], tuple[pa.Table, Addresses]],
    ) -> tuple[pa.RecordBatch, Addresses]:
        """Columns of rows of a leaf as the table shows them."""
        opened = self.opened(at)
        assert opened is not None
        shown = self._shown_fields(columns)
        names = [name for field in shown if (name := opened.matching.names.get(field_id(field) or 0)) is not None]
        with storage_errors(f"read the leaf at {opened.task.leaf.location!r}", opened.task.root):
            found, addresses = read(opened.handle, names)
        batch = found.combine_chunks().to_batches()[0] if names and found.num_rows else _empty(found, len(addresses))
        return to_table_columns(batch, shown, opened.matching), addresses


def _all_rows(handle: LeafHandle, names: Sequence[str], fragments: Sequence[int] | None) -> tuple[pa.Table, Addresses]:
    held = storage.all_rows(handle, names, fragments)
    return held.drop_columns([storage.ADDRESS]), held.column(storage.ADDRESS).to_numpy()


def _sorted(rows: pa.RecordBatch, addresses: Addresses) -> KeptRows:
    order = np.argsort(addresses, kind="stable")
    return rows, order, addresses[order]


def _taken(held: KeptRows, addresses: Addresses) -> pa.RecordBatch:
    """The rows at some addresses, in their order."""
    rows, order, known = held
    return rows.take(pa.array(order[storage.positions_sorted(known, addresses)]))


def _joined(before: KeptRows, added: KeptRows) -> KeptRows:
    """Rows of a leaf and of fragments that it got since."""
    rows = pa.Table.from_batches([before[0], added[0]]).combine_chunks()
    order = np.concatenate([before[1], added[1] + before[0].num_rows])
    known = np.concatenate([before[2], added[2]])
    again = np.argsort(known, kind="stable")
    batch = rows.to_batches()[0] if rows.num_rows else before[0]
    return batch, order[again], known[again]


def _is_small(leaf: Leaf, types: Sequence[pa.DataType]) -> bool:
    """Whether columns of a leaf take so little memory that they are kept there."""
    if leaf.stats is None or cache.capacity < _LEAST_CAPACITY:
        return False
    if leaf.stats.bytes <= _SMALL_BYTES:
        return True
    fixed = all(pa.types.is_primitive(kind) for kind in types)
    return fixed and leaf.stats.rows * _width(types) <= _SMALL_BYTES


def _width(types: Sequence[pa.DataType]) -> int:
    """How many bytes values of fixed size take in a row."""
    return sum(max(8, kind.bit_width) // 8 for kind in types)


def _rows_size(kept: KeptRows) -> int:
    return int(kept[0].nbytes + kept[1].nbytes + kept[2].nbytes)


def _empty(found: pa.Table, rows: int) -> pa.RecordBatch:
    """A batch of rows without any column; no rows keep their columns."""
    if not rows:
        return pa.RecordBatch.from_pylist([], schema=found.schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
