"""Vectors kept in memory, searched exactly: faster than any index where there are not too many."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.model.values import logical_type
from lancepart.storage.search import Ranked

Floats: TypeAlias = npt.NDArray[np.floating]
Positions: TypeAlias = npt.NDArray[np.int64]
Between: TypeAlias = tuple[float | None, float | None] | None

METRICS = ("l2", "cosine", "dot")
_EPSILON = float(np.finfo(np.float32).eps)
_TINY, _LARGE = 1e-30, 1e36
"""Squared lengths that floats hold with all their digits."""
_AT_ONCE = 1 << 24
_SPARE = 8


class _Room:
    """Arrays with room for more rows; ``used`` of them are taken, by the longest block that shares the arrays."""

    def __init__(self, block: VectorBlock, rows: int) -> None:
        self.used, self.rows = len(block.vectors), rows
        self.arrays = tuple(np.empty((rows, *part.shape[1:]), dtype=part.dtype) for part in block.parts)
        self.lock = threading.Lock()
        for room, part in zip(self.arrays, block.parts, strict=True):
            room[: self.used] = part

    def extended(self, block: VectorBlock, added: VectorBlock) -> VectorBlock | None:
        """A block with others behind it in the same arrays; None if they are full, or another block was extended."""
        first, last = len(block.vectors), len(block.vectors) + len(added.vectors)
        with self.lock:
            if self.used != first or last > self.rows:
                return None
            self.used = last
        for room, part in zip(self.arrays, added.parts, strict=True):
            room[first:last] = part
        vectors, squares, addresses = (room[:last] for room in self.arrays)
        return VectorBlock(vectors=vectors, squares=squares, addresses=addresses, room=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorBlock:
    """Vectors row by row, their squared lengths, and the addresses of their rows.

    Blocks that were made of each other share their arrays: rows that one has are never written again.
    """

    vectors: Floats
    squares: Floats
    addresses: npt.NDArray[np.uint64]
    room: _Room | None = None

    @property
    def parts(self) -> tuple[npt.NDArray[np.generic], ...]:
        """Its arrays."""
        return self.vectors, self.squares, self.addresses

    @classmethod
    def of(cls, column: pa.Array | pa.ChunkedArray, addresses: npt.ArrayLike) -> VectorBlock | None:
        """The vectors of a column, those that are NULL left out; None if squares of floats can't hold their lengths."""
        values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        stored = values.storage if isinstance(values, pa.ExtensionArray) else values
        valid = stored.is_valid().to_numpy(zero_copy_only=False)
        held = stored.drop_null()
        width = logical_type(column.type).list_size
        numbers = held.flatten()
        if numbers.null_count or len(numbers) != len(held) * width:
            return None
        vectors = np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False).reshape(-1, width))
        squares = np.einsum("ij,ij->i", vectors, vectors)
        tiny = squares < _TINY
        if not np.isfinite(squares).all() or (tiny.any() and vectors[tiny].any()):
            return None
        return cls(vectors=vectors, squares=squares, addresses=np.asarray(addresses, dtype=np.uint64)[valid])

    def with_more(self, added: VectorBlock) -> VectorBlock:
        """These vectors and others; they are copied only when the arrays are full, which is ever more seldom."""
        found = None if self.room is None else self.room.extended(self, added)
        if found is None:
            rows = len(self.vectors) + len(added.vectors)
            found = _Room(self, rows + rows // _SPARE).extended(self, added)
        assert found is not None
        return found

    @property
    def bytes(self) -> int:
        """How much memory it takes, with the room for more."""
        return sum(int(part.nbytes) for part in (self.parts if self.room is None else self.room.arrays))

    def nearest(self, queries: npt.ArrayLike, k: int, metric: str, between: Between) -> Ranked:
        """The k best rows of each query, and those as far away as the last: its number, the addresses and distances."""
        found: list[Ranked] = []
        for number, query in enumerate(np.asarray(queries, dtype=np.float32)):
            positions, distances = self._nearest(query, k, metric, between)
            found.append((np.full(len(positions), number, dtype=np.int32), self.addresses[positions], distances))
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))  # type: ignore[return-value]

    def _nearest(self, query: Floats, k: int, metric: str, between: Between) -> tuple[Positions, Floats]:
        positions = self._candidates(query, k, metric) if between is None else np.arange(len(self.vectors))
        distances = _distances(self.vectors[positions], query, metric)
        kept = ~np.isnan(distances)
        for bound, test in zip(between or (), (np.greater_equal, np.less), strict=False):
            kept &= True if bound is None else test(distances, np.float32(bound))
        positions, distances = positions[kept], distances[kept]
        order = np.argsort(distances, kind="stable")
        if len(order) > k:
            last = distances[order[k - 1]]
            order = order[: k if distances[order[k]] > last else np.searchsorted(distances[order], last, "right")]
        return positions[order], distances[order]

    def _candidates(self, query: Floats, k: int, metric: str) -> Positions:
        """Positions of at least the k best rows: rounding may change their order, but not by more than a margin."""
        if len(self.vectors) <= 2 * k:
            return np.arange(len(self.vectors))
        length, longest = float(query.astype(np.float64) @ query), float(self.squares.max())
        if not 0 < length < _LARGE or max(length, 1.0) * longest > _LARGE:
            return np.arange(len(self.vectors))
        error = 4 * len(query) * _EPSILON
        if metric == "cosine":
            products = np.einsum("ij,j->i", self.vectors, (query / length**0.5).astype(np.float32))
            norms = np.sqrt(self.squares)
            estimates = np.divide(-products, norms, out=np.full(len(norms), np.inf, np.float32), where=norms > 0)
            margin = error
        else:
            products = np.einsum("ij,j->i", self.vectors, query)
            if metric == "dot":
                estimates, margin = -products, error * (length * longest) ** 0.5
            else:
                estimates, margin = self.squares - 2 * products, error * (length + longest)
        last = np.partition(estimates, k - 1)[k - 1]
        return np.flatnonzero(estimates <= last + margin)


def _distances(vectors: Floats, query: Floats, metric: str) -> Floats:
    """Distances in double precision, rounded once."""
    parts = [
        _exactly(vectors[start : start + _AT_ONCE // len(query)].astype(np.float64), query.astype(np.float64), metric)
        for start in range(0, max(1, len(vectors)), _AT_ONCE // len(query))
    ]
    with np.errstate(over="ignore"):
        return np.concatenate(parts).astype(np.float32)


def _exactly(held: Floats, query: Floats, metric: str) -> Floats:
    if metric == "l2":
        away = held - query
        squares: Floats = np.einsum("ij,ij->i", away, away)
        return squares
    products: Floats = np.einsum("ij,j->i", held, query)
    if metric == "dot":
        return 1 - products
    with np.errstate(divide="ignore", invalid="ignore"):
        similar: Floats = products / np.sqrt(np.einsum("ij,ij->i", held, held) * (query @ query))
        return 1 - similar
