"""Splitting a group of a join that is too large by a hash of its keys, alike on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.model.hashing import murmur3_multi

_FACTOR = 4
_MIXER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class HashSlice:
    """The rows whose keys' hash is ``number`` modulo ``of``; the first of one is all rows."""

    number: int = 0
    of: int = 1

    def finer(self) -> list[HashSlice]:
        """The same rows in smaller parts.

        >>> HashSlice(1, 4).finer()[:2]
        [HashSlice(number=1, of=16), HashSlice(number=5, of=16)]
        """
        return [HashSlice(self.number + step * self.of, self.of * _FACTOR) for step in range(_FACTOR)]

    def rows(self, batch: pa.RecordBatch, keys: Sequence[tuple[int, pa.DataType]]) -> pa.RecordBatch:
        """The rows of a batch that belong to the part; ``keys`` are columns and the types they are compared in.

        The hash is mixed again, since all rows of a group may already have the same bucket.
        """
        if self.of == 1:
            return batch
        hashes = murmur3_multi([_hashable(pc.cast(batch.column(at), kind, safe=False)) for at, kind in keys])
        plain = pc.fill_null(hashes, 0).to_numpy(zero_copy_only=False).astype(np.uint32).astype(np.uint64)
        mixed = (plain * _MIXER) >> np.uint64(40)
        return batch.filter(pa.array(mixed % np.uint64(self.of) == np.uint64(self.number)))


def _hashable(array: pa.Array) -> pa.Array:
    return array.cast(pa.int64()) if pa.types.is_duration(array.type) else array


WHOLE = HashSlice()
