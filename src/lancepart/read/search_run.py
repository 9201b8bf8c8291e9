"""The execution of a search: vector and text rankings over the same leaves, each opened once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.model.aliases import JsonMapping
from lancepart.model.filtering import matching_rows
from lancepart.model.schema import field_id
from lancepart.read import row_ids, search_text
from lancepart.read.hits import Hits
from lancepart.read.scan import Scan
from lancepart.read.search_leaves import SearchLeaves
from lancepart.read.search_request import PARTITION, Options, TextQuery, VectorQuery
from lancepart.read.search_vectors import VectorSearch
from lancepart.read.text_union import text_way
from lancepart.storage import search as storage

QUERY_INDEX = "_query_index"
_PLACE = "__lancepart_place"
_MOST_SHOWN = 20
_SEED = 20
_NEARLY, _TINY = 1.0 + 1e-6, 1e-6


class SearchRun:
    """The leaves of one search; ``seconds`` has the timings, those of building an index separately."""

    def __init__(self, scan: Scan, options: Options) -> None:
        self.scan, self.statistics = scan, options.statistics
        self.leaves = SearchLeaves(scan)
        self.seconds: dict[str, float] = {}

    @cached_property
    def counted(self) -> SearchLeaves:
        """The leaves whose texts the statistics of scores are of."""
        planned = self.scan.plan() if self.statistics == PARTITION else None
        return SearchLeaves(replace(self.scan, where=None, limit=None, planned=planned), beside=self.leaves)

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[what] = time.perf_counter() - started

    def nearest(self, query: VectorQuery, options: Options, metric: str) -> Hits:
        """The rows whose vectors are nearest."""
        with self._timed("vector"):
            return self._after(options, lambda wider: VectorSearch(self.leaves, query, wider, metric).run())

    def matches(self, query: TextQuery, options: Options, tokenizers: Mapping[str, JsonMapping]) -> Hits:
        """The rows that match a text best."""
        with self._timed("index"):
            corpus = search_text.corpus_of(self.counted, query, tokenizers, fast=options.fast_search)
        with self._timed("text"):
            return self._after(
                options,
                lambda wider: search_text.matches(
                    self.leaves,
                    self.counted,
                    query,
                    corpus,
                    wider.wanted,
                    filtered=wider.prefilter,
                    fast=wider.fast_search,
                ).best(wider.k, wider.offset, highest=True),
            )

    def _after(self, options: Options, ranked: Callable[[Options], Hits]) -> Hits:
        """The best rows of a ranking; a filter that is applied afterwards removes some of them."""
        predicate = self.scan.predicate
        if options.prefilter or predicate is None:
            return ranked(options)
        best = ranked(replace(options, k=options.wanted, offset=0))
        rows = self.leaves.rows(best, sorted(predicate.columns()))
        rows = rows.append_column(_PLACE, pa.array(range(len(best)), pa.int64()))
        kept = [matching_rows(batch, predicate) for batch in rows.combine_chunks().to_batches()]
        positions = sorted(place for batch in kept for place in batch.column(_PLACE).to_pylist())
        return best.at(np.array(positions, dtype=np.int64)).skipped(options.k, options.offset)

    def row_ids(self, hits: Hits) -> npt.NDArray[np.uint64]:
        """The ids of rows at the search's snapshot, as scans show them."""
        numbers = row_ids.leaf_numbers(self.scan.snapshot, self.scan.metadata)
        ids = np.zeros(len(hits), dtype=np.uint64)
        for at in np.unique(hits.leaf).tolist():
            leaf, own = self.leaves.leaves[at], hits.leaf == at
            ids[own] = row_ids.encode(numbers[leaf.object_id], hits.address[own], leaf)
        return ids

    def shown(self, hits: Hits, ranked: str, *, many: bool = False) -> pa.Table:
        """The rows of hits, with what ranks them."""
        with self._timed("rows"):
            rows = self.leaves.rows(hits, self.scan.schema.names)
        rows = rows.append_column(pa.field(ranked, pa.float32()), pa.array(hits.value, pa.float32()))
        return rows.add_column(0, pa.field(QUERY_INDEX, pa.int32()), pa.array(hits.query, pa.int32())) if many else rows

    def sample(self, column: str, n: int) -> npt.NDArray[np.generic]:
        """Vectors of rows drawn at random, the same ones at the same snapshot."""
        number = field_id(self.scan.metadata.schema.field(column)) or 0
        opened = [(at, found) for at in self.leaves.positions if (found := self.leaves.opened(at)) is not None]
        held = [(at, found.handle) for at, found in opened if number in found.matching.names]
        ends = np.cumsum([0, *(handle.count_rows() for _, handle in held)])
        drawn = np.sort(np.random.default_rng(_SEED).choice(ends[-1], min(n, int(ends[-1])), replace=False))
        hits = []
        for order, (at, handle) in enumerate(held):
            own = drawn[(drawn >= ends[order]) & (drawn < ends[order + 1])] - ends[order]
            hits.append(Hits.of(at, storage.addresses_at(handle, own), np.zeros(len(own))))
        values = self.leaves.rows(Hits.together(hits), [column]).column(column).combine_chunks().drop_null()
        stored = values.storage if isinstance(values, pa.ExtensionArray) else values
        vectors = stored.flatten().to_numpy(zero_copy_only=False).reshape(len(stored), stored.type.list_size)
        finite: npt.NDArray[np.generic] = vectors[np.isfinite(vectors.astype(np.float64)).all(axis=1)]
        return finite

    def explain(self, query: VectorQuery, options: Options, metric: str) -> list[str]:
        """How each leaf is searched for vectors."""
        leaves = self.leaves.leaves
        search = VectorSearch(self.leaves, query, options, metric)
        whole = search.together()
        together = "" if whole is None else f" together ({whole})"
        ways = [
            search.way(at) if whole is None else search.size(at, whole) for at in self.leaves.positions[:_MOST_SHOWN]
        ]
        lines = [f"  {leaf.object_id}: {way}" for leaf, way in zip(leaves, ways, strict=False)]
        more = [f"  … and {len(leaves) - len(ways)} more"] if len(leaves) > len(ways) else []
        return [f"vectors: {metric} distance, {len(leaves)} leaves searched{together}", *lines, *more]

    def explain_text(self, query: TextQuery, options: Options) -> str:
        """By what texts are searched."""
        return text_way(self.counted, query.columns, query.names, fast=options.fast_search)


def shared(exact: Hits, found: Hits, queries: int) -> float:
    """The mean share of the exact hits that were found, compared by distance: rows at equal distances are as good."""
    recalls = []
    for number in range(queries):
        true = exact.value[exact.query == number]
        own = found.value[found.query == number]
        if len(true):
            near = np.count_nonzero(own <= max(true[-1] * _NEARLY, true[-1] + _TINY))
            recalls.append(min(1.0, near / len(true)))
    return float(np.mean(recalls)) if recalls else 1.0
