"""Full-text search with the scores of one table: an index in memory over the texts of many leaves at one snapshot."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.layout.leaves import Leaf
from lancepart.model.aliases import JsonMapping
from lancepart.read import leaf as reading
from lancepart.read.hits import Hits
from lancepart.read.leaf import ADDRESS
from lancepart.read.search_leaves import SearchLeaves
from lancepart.read.search_request import TextQuery
from lancepart.storage import search as storage
from lancepart.storage.cache import cache
from lancepart.storage.dataset import Dataset
from lancepart.storage.leaf_data import Addresses
from lancepart.storage.translate import storage_errors

_INDEX_SHARE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """The texts of leaves, indexed together: row by row the leaf's place and the address, leaf after leaf."""

    handle: Dataset
    bounds: npt.NDArray[np.int64]
    addresses: Addresses
    bytes: int
    seconds: float

    def positions(self, at: int, addresses: Addresses | None = None) -> npt.NDArray[np.int64]:
        """Where the rows of the leaf at a place stand in the index: all of them, or those at some addresses."""
        start, stop = int(self.bounds[at]), int(self.bounds[at + 1])
        if addresses is None:
            return np.arange(start, stop)
        own = self.addresses[start:stop]
        order = np.argsort(own, kind="stable")
        return start + order[np.searchsorted(own, addresses, sorter=order)]

    def found(self, positions: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Addresses]:
        """The places of the leaves and the addresses of rows of the index."""
        return np.searchsorted(self.bounds, positions, side="right") - 1, self.addresses[positions]


def corpus_of(leaves: SearchLeaves, columns: tuple[str, ...], params: Mapping[str, JsonMapping]) -> Corpus:
    """The texts of leaves as one index, kept in memory for as long as the leaves stay as they are."""
    scan = leaves.scan
    versions = tuple(_identity(leaves, at) for at in leaves.places)
    numbers = tuple(str(scan.metadata.schema.field(name)) for name in columns)
    spelled = json.dumps({name: dict(each) for name, each in params.items()}, sort_keys=True)
    key = ("corpus", scan.root.uri, tuple(sorted(scan.root.storage_options.items())), versions, numbers, spelled)
    return cache.get(key, lambda: _build(leaves, columns, params), lambda made: made.bytes)


def _identity(leaves: SearchLeaves, at: int) -> tuple[str, int | None]:
    leaf: Leaf = leaves.leaves[at]
    if leaf.read_version is not None:
        return leaf.location, leaf.read_version
    opened = leaves.opened(at)
    return leaf.location, None if opened is None else opened.task.leaf.read_version


def _build(leaves: SearchLeaves, columns: tuple[str, ...], params: Mapping[str, JsonMapping]) -> Corpus:
    started = time.perf_counter()
    parts = leaves.over(leaves.places, lambda at: _texts(leaves, at, columns))
    rows = pa.concat_tables(parts) if parts else _no_rows(leaves, columns)
    with storage_errors("index texts in memory", leaves.scan.root):
        handle = storage.in_memory(rows.select(list(columns)))
        for name in columns:
            storage.index_text(handle, name, params.get(name, {}))
    return Corpus(
        handle=handle,
        bounds=np.cumsum([0, *(part.num_rows for part in parts)]),
        addresses=rows.column(ADDRESS).to_numpy(),
        bytes=int(_INDEX_SHARE * rows.nbytes),
        seconds=time.perf_counter() - started,
    )


def _texts(leaves: SearchLeaves, at: int, columns: tuple[str, ...]) -> pa.Table:
    opened = leaves.opened(at)
    found = (
        []
        if opened is None
        else list(reading.with_addresses(replace(opened.task, columns=columns, predicate=None, limit=None)))
    )
    return pa.Table.from_batches(found) if found else _no_rows(leaves, columns)


def _no_rows(leaves: SearchLeaves, columns: tuple[str, ...]) -> pa.Table:
    plain = leaves.scan.metadata.plain_schema
    fields = [*(plain.field(name) for name in columns), pa.field(ADDRESS, pa.uint64())]
    return pa.schema(fields).empty_table()


def matches(
    searched: SearchLeaves, counted: SearchLeaves, query: TextQuery, corpus: Corpus, k: int, *, filtered: bool = True
) -> Hits:
    """The best matches among the matching rows of the leaves that are searched; the corpus is of those that count.

    Equal scores are asked for as long as they go on, so that the order of rows decides among them.
    """
    place_of = {leaf.object_id: at for at, leaf in enumerate(counted.leaves)}
    own = np.array([place_of[leaf.object_id] for leaf in searched.leaves], dtype=np.int64)
    allowed = _allowed(searched, corpus, own, whole=len(own) == len(counted.leaves), filtered=filtered)
    asked = 2 * k
    while True:
        with storage_errors("search texts", searched.scan.root):
            positions, scores = storage.matches(corpus.handle, query.query, query.columns, asked, allowed=allowed)
        if len(scores) < asked or scores[k - 1] > scores[-1]:
            break
        asked *= 4
    places, addresses = corpus.found(positions.astype(np.int64))
    back = np.full(len(counted.leaves) + 1, -1, dtype=np.int64)
    back[own] = np.arange(len(own))
    return Hits.of(back[places], addresses, scores)


def _allowed(
    searched: SearchLeaves, corpus: Corpus, own: npt.NDArray[np.int64], *, whole: bool, filtered: bool
) -> npt.NDArray[np.int64] | None:
    """The rows of the index that may be found; None if all may."""
    partly = filtered and not all(map(searched.is_whole, searched.places))
    found = searched.over(searched.places, searched.matching_addresses) if partly else [None] * len(own)
    if whole and all(each is None for each in found):
        return None
    parts = [corpus.positions(int(at), addresses) for at, addresses in zip(own, found, strict=True)]
    return np.concatenate(parts) if parts else np.array([], dtype=np.int64)
