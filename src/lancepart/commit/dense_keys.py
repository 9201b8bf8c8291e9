"""Keys of one integer column that lie close together, found by their offset in a table instead of by hashing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_LEAST_KEYS = 1_024
_MOST_OFFSETS = 1 << 24
_ROOM_A_KEY = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseKeys:
    """For each integer from ``low`` on the row that has it as its key, or -1."""

    kind: pa.DataType
    low: int
    rows: npt.NDArray[np.int32]

    @classmethod
    def of(cls, keys: pa.Array) -> DenseKeys | None:
        """A table of keys, none of which repeats; None if they are few, no integers, or too far apart."""
        if not pa.types.is_integer(keys.type) or not _LEAST_KEYS <= len(keys) <= _MOST_OFFSETS:
            return None
        given = np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))
        values = _bits(keys)[given]
        if not len(values):
            return None
        order = values if pa.types.is_unsigned_integer(keys.type) else values.view(np.int64)
        low, high = int(order.min()), int(order.max())
        if high - low >= min(_MOST_OFFSETS, _ROOM_A_KEY * len(keys)):
            return None
        rows = np.full(high - low + 1, -1, dtype=np.int32)
        rows[values - _as_bits(low)] = given
        return cls(kind=keys.type, low=low, rows=rows)

    def find(self, keys: pa.Array) -> npt.NDArray[np.int64]:
        """The rows of keys of the same type; -1 for keys that none has.

        Differences wrap around, but two keys never have the same offset from the lowest.
        """
        offsets = _bits(keys) - _as_bits(self.low)
        there = offsets < np.uint64(len(self.rows))
        if keys.null_count:
            there &= keys.is_valid().to_numpy(zero_copy_only=False)
        found = np.full(len(keys), -1, dtype=np.int64)
        found[there] = self.rows[offsets[there]]
        return found


def _as_bits(value: int) -> np.uint64:
    return np.uint64(value & 0xFFFFFFFFFFFFFFFF)


def _bits(keys: pa.Array) -> npt.NDArray[np.uint64]:
    """Integers as 64 bits, negative ones as their complement; NULLs have any value."""
    filled = keys.fill_null(0) if keys.null_count else keys
    wide = np.uint64 if pa.types.is_unsigned_integer(keys.type) else np.int64
    values: npt.NDArray[np.uint64] = filled.to_numpy(zero_copy_only=False).astype(wide, copy=False).view(np.uint64)
    return values
