"""Nearest vectors over leaves: from memory, by the leaves' indices, or in one pass over all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.layout.columns import stores
from lancepart.layout.declared_indices import declared
from lancepart.model.aliases import JsonObject
from lancepart.model.schema import field_id
from lancepart.model.values import logical_type
from lancepart.read import leaf as reading
from lancepart.read.hits import Hits
from lancepart.read.index_use import IndexUse, and_flat, find_index, index_on, use_size
from lancepart.read.leaf import ADDRESS, OpenLeaf
from lancepart.read.leaf_memory import kept, leaf_key
from lancepart.read.search_bounds import LEAF_BYTES, UNION_BYTES
from lancepart.read.search_leaves import SearchLeaves
from lancepart.read.search_request import Options, VectorQuery
from lancepart.read.search_union import SearchUnion
from lancepart.read.vector_block import METRICS, VectorBlock
from lancepart.storage import search as storage
from lancepart.storage.cache import cache
from lancepart.storage.leaf_handle import LeafHandle
from lancepart.storage.search import Ranked
from lancepart.storage.translate import storage_errors

REFINED = 10
"""How many times more rows than wanted are ranked again by their true distances where an index only estimates them.

Recall of IVF_PQ with 16 bytes a vector of 64 numbers: 0.63 without, 0.86 at 2, 0.99 at 5, 1.00 at 10.
"""

_INDEX_BYTES = 3 << 20
"""Fewer bytes of vectors of a leaf are faster searched one by one, together with other leaves, than by its index.

CPU ms of twenty leaves, row by row and by the index of each: 14 and 35 at 1 MiB, 26 and 34 at 2, 54 and 42 at 4.
"""
_FLAT_BYTES = 1 << 20
"""Searching so many bytes of vectors one by one takes as long as using the index of one more leaf.

CPU ms of twenty leaves by a table-wide index that lacks rows, and by the index of each: 10 and 36 where it lacks 125
KiB a leaf, 17 and 41 at 375, 26 and 43 at 750, 26 and 32 at 1,250.
"""

_ALL_PARTS = 1 << 31


class VectorSearch:
    """One search for nearest vectors over the leaves of a plan."""

    def __init__(self, leaves: SearchLeaves, query: VectorQuery, options: Options, metric: str) -> None:
        self.leaves, self.query, self.metric = leaves, query, metric
        self._is_far = _is_far(options, metric)
        self.options = replace(options, exact=True) if self._is_far and not options.fast_search else options
        self._filtered = False
        self.field = leaves.scan.metadata.schema.field(query.column)
        self.number = field_id(self.field) or 0
        self._width = int(query.vectors.itemsize * query.vectors.shape[1])

    def run(self) -> Hits:
        """The best rows of each query over all leaves."""
        found = self._all() if len(self.query.vectors) else Hits.together([])
        if self._filtered:
            found = found.between(self.options.distance_range)
            if not self.options.is_limited and self._is_lacking(found):
                return VectorSearch(self.leaves, self.query, replace(self.options, exact=True), self.metric).run()
        return found.best(self.options.k, self.options.offset)

    def _all(self) -> Hits:
        alone, together = self._groups()
        found = self.leaves.over(alone, self._leaf)
        if together:
            found += self._together(together)
        return Hits.together(found)

    def _is_lacking(self, found: Hits) -> bool:
        """Whether a query has fewer rows than it wants."""
        counts = np.bincount(found.query, minlength=len(self.query.vectors))
        return bool((counts < self.options.wanted).any())

    def _groups(self) -> tuple[list[int], list[int]]:
        """The leaves that are searched one by one, and those that are searched together."""
        positions = list(self.leaves.positions)
        if not self.leaves.plan.are_fixed:
            return positions, []
        if self._table_wide:
            return [], positions
        if len(positions) < 2 or self.options.fast_search:
            return positions, []
        if self.options.exact or self._fits_memory(positions, UNION_BYTES):
            return [], positions
        alone = [at for at, used in zip(positions, self.leaves.over(positions, self._index_worth), strict=True) if used]
        return alone, [at for at in positions if at not in set(alone)]

    @cached_property
    def _table_wide(self) -> bool:
        """Whether a table-wide index serves: for one leaf only if it has none of its own and is large."""
        positions = self.leaves.positions
        indexed = [index for index in declared(self.leaves.scan.snapshot) if index.segments and index.is_vector]
        if self.options.exact or all(index.column != self.number for index in indexed):
            return False
        if (
            not positions
            or self._fits_memory(positions, LEAF_BYTES)
            or (len(positions) == 1 and self._index_worth(positions[0]))
        ):
            return False
        made = self.leaves.union()
        used = None if made is None else self._union_index(made)
        return used is not None and self._covers_enough(used)

    def _covers_enough(self, used: IndexUse) -> bool:
        """Whether a table-wide index serves better than those of the leaves: most rows may have been moved since."""
        flat, rows = used.flat_rows, self.leaves.plan.rows
        if rows is None or not flat:
            return True
        known = declared(self.leaves.scan.snapshot)
        if not any(index.is_vector and index.in_leaves and index.column == self.number for index in known):
            return flat < rows
        most = len(self.leaves.leaves) * _FLAT_BYTES
        return 2 * flat <= rows and flat * self._width <= most

    def _union_index(self, made: SearchUnion) -> IndexUse | None:
        name = made.matching.names[self.number]
        key = ("index", id(made), name, self.metric)
        found, _ = cache.get(
            key, lambda: (find_index(made.handle, name, self.metric), made), lambda held: use_size(held[0])
        )
        return found

    def _index_worth(self, at: int) -> bool:
        """Whether a leaf is large and has an index."""
        size = self._bytes(at)
        if size is not None and size < _INDEX_BYTES:
            return False
        opened = self.leaves.opened(at)
        name = None if opened is None else opened.matching.names.get(self.number)
        return opened is not None and name is not None and index_on(opened, name, self.metric) is not None

    @property
    def _leaf_bytes(self) -> int:
        """Up to how many bytes of a leaf's vectors are searched in memory: more where an index may not be used."""
        return UNION_BYTES if self.options.exact else LEAF_BYTES

    def _bytes(self, at: int) -> int | None:
        """How many bytes the vectors of a leaf take, as far as the manifest knows."""
        stats = self.leaves.leaves[at].stats
        return None if stats is None else int(stats.rows) * self._width

    def _fits_memory(self, positions: Sequence[int], most: int) -> bool:
        """Whether leaves can be searched in memory: all rows of not too many vectors of the usual type."""
        if self.metric not in METRICS or self.options.fast_search:
            return False
        if not pa.types.is_float32(logical_type(self.field.type).value_type):
            return False
        if self.options.prefilter and not self.leaves.plan.are_whole and not all(map(self.leaves.is_whole, positions)):
            return False
        rows = self._rows(positions)
        return rows is not None and rows * self._width <= min(most, cache.capacity // 16)

    def _rows(self, positions: Sequence[int]) -> int | None:
        """How many rows some leaves have that stay as they are; None where that is not known."""
        if len(positions) == len(self.leaves.leaves):
            return self.leaves.plan.rows if self.leaves.plan.are_fixed else None
        found = [self.leaves.leaves[at] for at in positions]
        known = [leaf.stats.rows for leaf in found if leaf.stats is not None and leaf.read_version is not None]
        return sum(known) if len(known) == len(found) else None

    def _query_options(self, index: IndexUse | None = None) -> JsonObject:
        """What Lance is to find; rows out of range are left out afterwards where an index would lose others too."""
        between = self.options.distance_range
        pushed = self.options.exact or self._is_far or index is None or index.keeps_range
        if between is not None and not pushed:
            self._filtered, between = True, None
        return {"k": self.options.wanted, "metric": self.metric, "distance_range": between}

    def _index_options(self, index: IndexUse | None) -> JsonObject:
        """How an index is queried; distances that it estimates are computed, or those of leaves can't be compared."""
        options = self.options
        if options.exact or index is None:
            return {"use_index": not options.exact}
        low, high = options.probes
        return {
            "minimum_nprobes": _ALL_PARTS if self._is_far and high is None else low,
            "maximum_nprobes": high,
            "refine_factor": options.refine_factor or (REFINED if index.estimates else None),
            "ef": options.ef,
            "parts": index.parts,
            "complete": not index.uncovered,
        }

    @property
    def _vectors(self) -> npt.NDArray[np.generic]:
        return self.query.vectors if self.query.many else self.query.vectors[0]

    def _together(self, positions: list[int]) -> list[Hits]:
        """Search leaves as one dataset; one by one if they can't be."""
        leaves = self.leaves
        if len(positions) == 1 and len(leaves.leaves) > 1:
            return [self._leaf(positions[0])]
        if len(positions) < len(leaves.leaves):
            scan = replace(
                leaves.scan, planned=replace(leaves.scan.plan(), leaves=tuple(leaves.leaves[at] for at in positions))
            )
            part = VectorSearch(SearchLeaves(scan), self.query, self.options, self.metric)
            found = Hits.together(part._together(list(part.leaves.positions)))
            self._filtered |= part._filtered
            return [replace(found, leaf=np.asarray(positions, dtype=np.int64)[found.leaf])]
        made = leaves.union()
        if made is None:
            return leaves.over(positions, self._leaf)
        with storage_errors("search leaves", leaves.scan.root):
            numbers, addresses, distances = self._in_union(made)
        found_places, own = made.split(addresses)
        return [Hits.of(found_places, own, distances, numbers)]

    def _in_union(self, made: SearchUnion) -> Ranked:
        name = made.matching.names[self.number]
        index = self._union_index(made) if self._table_wide else None
        if index is None and self._fits_memory(self.leaves.positions, UNION_BYTES):
            key = ("vectors", id(made), name)
            block, _ = cache.get(key, lambda: (_read_block(made.handle, name), made), lambda held: _block_size(held[0]))
            if block is not None:
                return block.nearest(self.query.vectors, self.options.wanted, self.metric, self.options.distance_range)
        restricted = self.leaves.union_restriction(made) if self.options.prefilter else {}
        return storage.nearest(
            made.handle,
            name,
            self._vectors,
            fast=self.options.fast_search,
            **self._query_options(index),
            **restricted,
            **(self._index_options(index) if index is not None else {"use_index": False}),
        )

    def _leaf(self, at: int) -> Hits:
        """Search one leaf: in memory, or by its index and row by row what that does not cover."""
        opened = self.leaves.opened(at)
        name = None if opened is None else opened.matching.names.get(self.number)
        if opened is None or name is None:
            return Hits.together([])
        with storage_errors(f"search the leaf at {opened.task.leaf.location!r}", opened.task.root):
            if not stores(opened.matching.types[self.number], self.field):
                return self._converted(at, opened)
            if (found := self._in_memory(at, opened, name)) is not None:
                return found
            restricted = self.leaves.restriction(opened) if self.options.prefilter else {}
            index = index_on(opened, name, self.metric)
            numbers, addresses, distances = storage.nearest(
                opened.handle,
                name,
                self._vectors,
                fast=self.options.fast_search,
                **self._query_options(index),
                **restricted,
                **self._index_options(index),
            )
        return Hits.of(at, addresses, distances, numbers)

    def _in_memory(self, at: int, opened: OpenLeaf, name: str) -> Hits | None:
        key = leaf_key(self.leaves.scan.root, self.leaves.leaves[at])
        if key is None or not self._fits_memory([at], self._leaf_bytes):
            return None
        block = kept(
            ("vectors", name),
            key,
            lambda: opened.handle,
            lambda fragments: _read_block(opened.handle, name, fragments),
            _joined,
            _block_size,
        )
        if block is None:
            return None
        numbers, addresses, distances = block.nearest(
            self.query.vectors, self.options.wanted, self.metric, self.options.distance_range
        )
        return Hits.of(at, addresses, distances, numbers)

    def _converted(self, at: int, opened: OpenLeaf) -> Hits:
        """Search a leaf that holds the column in an older, narrower type: its vectors in the table's type."""
        predicate = opened.task.predicate if self.options.prefilter else None
        task = replace(opened.task, columns=(self.query.column,), predicate=predicate)
        found = list(reading.with_addresses(task, opened.reopen))
        if not found:
            return Hits.together([])
        rows = pa.Table.from_batches(found)
        held = storage.in_memory(rows.select([self.query.column]).rename_columns(["v"]))
        numbers, positions, distances = storage.nearest(
            held, "v", self._vectors, use_index=False, **self._query_options()
        )
        return Hits.of(at, rows.column(ADDRESS).to_numpy()[positions.astype(np.int64)], distances, numbers)

    def together(self) -> str | None:
        """How all leaves are searched at once, in words; None if each has a way of its own."""
        alone, positions = self._groups()
        if alone or not positions:
            return None
        made = self.leaves.union() if self._table_wide else None
        used = None if made is None else self._union_index(made)
        if used is not None:
            return f"table-wide index {used.name!r} ({used.kind}){and_flat(used.flat_rows)}"
        return (
            "in memory"
            if self._fits_memory(positions, UNION_BYTES if len(positions) > 1 else self._leaf_bytes)
            else "flat"
        )

    def size(self, at: int, way: str) -> str:
        """How one leaf of those that are searched together is searched, in words."""
        stats = self.leaves.leaves[at].stats
        rows = None if stats is None else stats.rows
        if self._table_wide:
            made = self.leaves.union()
            assert made is not None
            used = self._union_index(made)
            assert used is not None
            own = made.numbers[made.leaf_positions == at].tolist()
            flat = sum(used.uncovered.get(number, 0) for number in own)
            way = "flat" if flat and flat == rows else f"table-wide index {used.name!r} ({used.kind}){and_flat(flat)}"
        return way if rows is None else f"{way}, {rows} rows"

    def way(self, at: int) -> str:
        """How one leaf is searched, in words."""
        opened = self.leaves.opened(at)
        name = None if opened is None else opened.matching.names.get(self.number)
        if opened is None or name is None:
            return "skipped, it has no such vectors"
        rows = int(opened.handle.count_rows())
        if self._fits_memory([at], self._leaf_bytes):
            return f"in memory, {rows} rows"
        used = None if self.options.exact else index_on(opened, name, self.metric)
        if used is None:
            return f"flat, {rows} rows"
        return f"index {used.name!r} ({used.kind}){and_flat(used.flat_rows)}"


def _read_block(handle: LeafHandle, name: str, fragments: Sequence[int] | None = None) -> VectorBlock | None:
    """The vectors of a dataset, or of some of its fragments, in memory."""
    rows = storage.all_rows(handle, [name], fragments)
    return VectorBlock.of(rows.column(name), rows.column(storage.ADDRESS).to_numpy())


def _joined(before: VectorBlock | None, added: VectorBlock | None) -> VectorBlock | None:
    return None if before is None or added is None else before.with_more(added)


def _block_size(block: VectorBlock | None) -> int:
    return 0 if block is None else block.bytes


def _is_far(options: Options, metric: str) -> bool:
    """Whether rows are wanted that are at least some distance away: an index looks near the query only."""
    least = (options.distance_range or (None, None))[0]
    return least is not None and (least > 0 or metric == "dot")
