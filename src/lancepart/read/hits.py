"""The rows that a search found: leaf, row address, and distance or score."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """Rows found, as parallel arrays: the query's number, the leaf's place in the plan, the address, and the value."""

    query: npt.NDArray[np.int32]
    leaf: npt.NDArray[np.int64]
    address: npt.NDArray[np.uint64]
    value: npt.NDArray[np.float32]

    @classmethod
    def of(cls, leaf: npt.ArrayLike, address: Sized, value: npt.ArrayLike, query: npt.ArrayLike | None = None) -> Hits:
        """Hits in one leaf, given by its place, or in many; of one query by default."""
        size = len(address)
        return cls(
            query=np.zeros(size, dtype=np.int32) if query is None else np.asarray(query, dtype=np.int32),
            leaf=np.broadcast_to(np.asarray(leaf, dtype=np.int64), size),
            address=np.asarray(address, dtype=np.uint64),
            value=np.asarray(value, dtype=np.float32),
        )

    @classmethod
    def together(cls, found: Sequence[Hits]) -> Hits:
        """Hits of several leaves."""
        parts = [cls.of(0, [], []), *found]
        return cls(
            **{
                name: np.concatenate([getattr(part, name) for part in parts])
                for name in ("query", "leaf", "address", "value")
            }
        )

    def __len__(self) -> int:
        return len(self.address)

    def at(self, positions: npt.NDArray[np.int64]) -> Hits:
        """Some of them, in an order."""
        return Hits(
            query=self.query[positions],
            leaf=self.leaf[positions],
            address=self.address[positions],
            value=self.value[positions],
        )

    def between(self, bounds: tuple[float | None, float | None] | None) -> Hits:
        """Those whose values are at least the first bound and below the second."""
        least, below = bounds or (None, None)
        kept = np.ones(len(self), dtype=np.bool_)
        kept &= True if least is None else self.value >= np.float32(least)
        kept &= True if below is None else self.value < np.float32(below)
        return self.at(np.flatnonzero(kept))

    def best(self, k: int, offset: int = 0, *, highest: bool = False) -> Hits:
        """The best of each query, in order; equal values are in the order of leaves and addresses."""
        ranked = -self.value if highest else self.value
        return self.at(np.lexsort((self.address, self.leaf, ranked, self.query))).skipped(k, offset)

    def skipped(self, k: int, offset: int) -> Hits:
        """Of each query those after the first few, in the order that they have."""
        order = np.argsort(self.query, kind="stable")
        numbers = self.query[order]
        rank = np.arange(len(order)) - np.searchsorted(numbers, numbers)
        return self.at(order[(rank >= offset) & (rank < offset + k)])
