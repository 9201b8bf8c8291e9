"""Leaves that a search looks into: each opened once at its version, asked on threads, its rows shown as the table's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from lancepart.layout.columns import stores, to_table_columns
from lancepart.layout.leaves import Leaf
from lancepart.model.aliases import JsonObject
from lancepart.model.nested import path_of, project
from lancepart.model.schema import field_id
from lancepart.read import leaf as reading
from lancepart.read.hits import Hits
from lancepart.read.in_order import THREADS
from lancepart.read.leaf import ADDRESS, LeafTask, OpenLeaf
from lancepart.read.scan import Scan
from lancepart.read.search_request import Options, VectorQuery
from lancepart.storage import search as storage
from lancepart.storage.cache import cache, handle_size
from lancepart.storage.translate import storage_errors

Result = TypeVar("Result")
REFINED = 10
"""How many times more rows than wanted are ranked anew by their true distances where an index only estimates them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexUse:
    """An index of a leaf that a search can use, and whether the distances that it gives are only estimates."""

    name: str
    kind: str
    covered: int
    estimates: bool


class SearchLeaves:
    """The leaves of a scan's plan; ``at`` is a leaf's place among them, in an order that all plans agree on."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.leaves: tuple[Leaf, ...] = tuple(sorted(scan.plan().leaves, key=lambda leaf: leaf.object_id))
        self._open: dict[int, OpenLeaf | None] = {}
        self._lock = threading.Lock()

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
        found = reading.opened(self.scan.task_of(self.leaves[at]), kept_open)
        with self._lock:
            return self._open.setdefault(at, found)

    def nearest(self, query: VectorQuery, options: Options, metric: str) -> Hits:
        """The best rows of each query over all leaves."""
        found = self.over(self.places, lambda at: self._nearest(at, query, options, metric))
        return Hits.together(found).best(options.k, options.offset)

    def _nearest(self, at: int, query: VectorQuery, options: Options, metric: str) -> Hits:
        opened = self.opened(at)
        field = self.scan.metadata.schema.field(query.column)
        name = None if opened is None else opened.matching.names.get(field_id(field) or 0)
        if opened is None or name is None:
            return Hits.together([])
        vectors = query.vectors if query.many else query.vectors[0]
        asked: JsonObject = {"k": options.wanted, "metric": metric, "distance_range": options.distance_range}
        with storage_errors(f"search the leaf at {opened.task.leaf.location!r}", opened.task.root):
            if not stores(opened.matching.types[field_id(field) or 0], field):
                return self._converted(at, opened, query, vectors, asked)
            restricted = self._restriction(opened) if options.prefilter else {}
            numbers, addresses, distances = storage.nearest(
                opened.handle,
                name,
                vectors,
                fast=options.fast_search,
                **asked,
                **restricted,
                **_index_options(options, index_on(opened, name, metric)),
            )
        return Hits.of(at, addresses, distances, numbers)

    def _converted(self, at: int, opened: OpenLeaf, query: VectorQuery, vectors: Any, asked: JsonObject) -> Hits:
        """Search a leaf that holds the column in an older, narrower type: its vectors in the table's type."""
        found = list(reading.with_addresses(replace(opened.task, columns=(query.column,))))
        if not found:
            return Hits.together([])
        rows = pa.Table.from_batches(found)
        held = storage.in_memory(rows.select([query.column]).rename_columns(["v"]))
        numbers, places, distances = storage.nearest(held, "v", vectors, use_index=False, **asked)
        return Hits.of(at, rows.column(ADDRESS).to_numpy()[places.astype(np.int64)], distances, numbers)

    def _restriction(self, opened: OpenLeaf) -> JsonObject:
        """What lets only matching rows of a leaf count: a filter that Lance answers, or the rows' addresses."""
        if opened.residual is None:
            return {"where": opened.pushed}
        return {"allowed": self._addresses(opened)}

    def matching_addresses(self, at: int) -> Any:
        """Where the matching rows of a leaf stand; None if all rows match."""
        opened = self.opened(at)
        if opened is None:
            return np.array([], dtype=np.uint64)
        return None if opened.task.predicate is None else self._addresses(opened)

    def _addresses(self, opened: OpenLeaf) -> Any:
        return reading.matching_addresses(opened.task)

    def rows(self, hits: Hits, columns: Sequence[str]) -> Any:
        """The rows of hits in their order, in some of the table's columns or fields inside them."""
        plain = self.scan.metadata.plain_schema
        tops = tuple(dict.fromkeys((path_of(name, plain) or (name,))[0] for name in columns))
        schema = pa.schema([plain.field(name) for name in tops])
        places = [int(at) for at in np.unique(hits.leaf)]
        parts = self.over(places, lambda at: self._rows(at, hits.address[hits.leaf == at], tops))
        whole = pa.Table.from_batches(parts, schema=schema)
        stood = np.concatenate([np.flatnonzero(hits.leaf == at) for at in places] or [np.array([], dtype=np.int64)])
        ordered = whole.take(pa.array(np.argsort(stood))).combine_chunks()
        if tops == tuple(columns):
            return ordered
        batches = ordered.to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]
        return pa.Table.from_batches([project(batch, columns) for batch in batches])

    def _rows(self, at: int, addresses: Any, columns: Sequence[str]) -> Any:
        opened = self.opened(at)
        assert opened is not None
        schema = self.scan.metadata.schema
        shown = [schema.field(schema.get_field_index(name)) for name in columns]
        names = [name for field in shown if (name := opened.matching.names.get(field_id(field) or 0)) is not None]
        with storage_errors(f"read the leaf at {opened.task.leaf.location!r}", opened.task.root):
            found = storage.rows_at(opened.handle, names, addresses)
        batch = found.to_batches()[0] if names and found.num_rows else _empty(found, len(addresses))
        return to_table_columns(batch, shown, opened.matching)


def _empty(found: Any, rows: int) -> Any:
    """A batch of rows without any column; no rows keep their columns."""
    if not rows:
        return pa.RecordBatch.from_pylist([], schema=found.schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


def kept_open(task: LeafTask) -> Any:
    """The leaf of a task, kept open between searches if its version never changes."""
    root, leaf = task.root, task.leaf
    if leaf.read_version is None:
        return reading.open_leaf(task)
    key = ("leaf", root.uri, tuple(sorted(root.storage_options.items())), leaf.location, leaf.read_version)
    return cache.get(key, lambda: reading.open_leaf(task, session=cache.session), handle_size)


def index_on(opened: OpenLeaf, name: str, metric: str) -> IndexUse | None:
    """The vector index that answers for a column of a leaf, by the distance that it was built for."""
    for index in storage.indices_on(opened.handle, name):
        told = storage.details_of(index)
        if str(told.get("metric_type", "")).lower() == metric:
            compression = (told.get("compression") or {}).get("type", "flat")
            return IndexUse(
                name=index.name,
                kind=str(index.index_type),
                covered=int(index.num_rows_indexed),
                estimates=compression != "flat",
            )
    return None


def _index_options(options: Options, index: IndexUse | None) -> JsonObject:
    """How an index is asked; distances that it only estimates are computed, or those of leaves can't be compared."""
    if options.exact or index is None:
        return {"use_index": not options.exact}
    low, high = options.probes
    refined = options.refine_factor or (REFINED if index.estimates else None)
    return {
        "minimum_nprobes": low,
        "maximum_nprobes": high,
        "refine_factor": refined,
        "ef": options.ef,
    }
