"""An order-independent fingerprint of a set of rows: their number and a sum of their hashes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.model.composite import murmur3_any

_ODD = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0xD6E8FEB86659FD93)
_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The number of rows and their checksum; those of two sets add up to that of both."""

    rows: int = 0
    checksum: int = 0

    def __add__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint(self.rows + other.rows, (self.checksum + other.checksum) & _MASK)


def fingerprint(batches: Iterable[pa.RecordBatch]) -> Fingerprint:
    """Of all rows of some batches or tables."""
    total = Fingerprint()
    for batch in batches:
        total += _of_batch(batch)
    return total


def _of_batch(batch: pa.RecordBatch | pa.Table) -> Fingerprint:
    if not batch.num_rows:
        return Fingerprint()
    sums = np.zeros(batch.num_rows, dtype=np.uint64)
    for column in batch.columns:
        hashes = murmur3_any(column)
        words = pc.fill_null(hashes, 0).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
        missing = hashes.is_null().to_numpy(zero_copy_only=False)
        sums = _mixed(sums * _ODD + np.where(missing, _NULL, words))
    return Fingerprint(batch.num_rows, int(_mixed(sums).sum(dtype=np.uint64)))


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(31))) * _NULL
    return words ^ (words >> np.uint64(29))
