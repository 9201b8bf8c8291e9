"""The vector index that a search of a dataset can use, and which rows it does not cover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lancepart.read.leaf import OpenLeaf
from lancepart.read.leaf_memory import leaf_key
from lancepart.storage import search as storage
from lancepart.storage.cache import cache
from lancepart.storage.leaf_handle import LeafHandle


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexUse:
    """An index that a search can use, and whether the distances that it gives are only estimates.

    ``uncovered`` are the fragments that it does not cover, with their rows. ``parts`` are named to Lance where the
    column has other indices too: it takes the one that was built first, also one for another distance.
    """

    name: str
    kind: str
    uncovered: Mapping[int, int]
    estimates: bool
    parts: tuple[str, ...] | None = None

    @property
    def flat_rows(self) -> int:
        """How many rows it does not cover."""
        return sum(self.uncovered.values())

    @property
    def keeps_range(self) -> bool:
        """Whether it finds all rows in a range of distances: estimates and graphs lose some near the bounds."""
        return not self.estimates and "HNSW" not in self.kind


def index_on(opened: OpenLeaf, name: str, metric: str) -> IndexUse | None:
    """The vector index that answers for a column of a leaf, by the distance that it was built for."""
    key = leaf_key(opened.task.root, opened.task.leaf)
    if key is None:
        return find_index(opened.handle, name, metric)
    return cache.get(("index", *key, name, metric), lambda: find_index(opened.handle, name, metric), use_size)


def use_size(use: IndexUse | None) -> int:
    """How much memory it takes to know of an index."""
    return 256 if use is None else 256 + 64 * len(use.uncovered)


def and_flat(rows: int) -> str:
    """Rows that are searched one by one beside an index, in words."""
    return f", {rows} rows flat" if rows else ""


def find_index(handle: LeafHandle, name: str, metric: str) -> IndexUse | None:
    """The vector index of a column of a dataset for a distance."""
    found = storage.indices_on(handle, name)
    for index in found:
        details = storage.details_of(index)
        if str(details.get("metric_type", "")).lower() == metric:
            compression = (details.get("compression") or {}).get("type", "flat")
            return IndexUse(
                name=index.name,
                kind=str(index.index_type),
                uncovered=storage.uncovered_rows(handle, index),
                estimates=compression != "flat",
                parts=tuple(str(part.uuid) for part in index.segments) if len(found) > 1 else None,
            )
    return None
