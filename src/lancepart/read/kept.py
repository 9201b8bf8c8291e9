"""How many rows a filter kept of a table's leaves that were read before, which decides how the next one is read.

Lance reads the filter's columns first and fetches the others row by row where they are wider than a few bytes. That is
right for few rows, and takes two or three times as long as reading all of them where many match.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator

import pyarrow as pa

from lancepart.layout.leaves import Leaf

_MANY = 0.1
_NARROW = 256
"""The bytes of a row on disk up to which reading a whole leaf costs little more than reading some columns of it."""
_MOST = 256

_Key = tuple[str, str]


class KeptShares:
    """The share of rows that the filters used last kept, at most ``most`` filters."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._shares: OrderedDict[_Key, float] = OrderedDict()

    def keeps_many(self, key: _Key, leaf: Leaf) -> bool:
        """Whether a filter is known to keep many rows, and those of a leaf are narrow."""
        with self._lock:
            share = self._shares.get(key)
        stats = leaf.stats
        return share is not None and share >= _MANY and stats is not None and stats.bytes <= _NARROW * stats.rows

    def counted(
        self, batches: Iterator[pa.RecordBatch], key: _Key, leaf: Leaf, fragments: int | None
    ) -> Iterator[pa.RecordBatch]:
        """The same batches; when all of them were taken, the share that they are of the leaf is remembered."""
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            yield batch
        stats = leaf.stats
        if stats is None or not stats.rows:
            return
        part = 1.0 if fragments is None else fragments / max(stats.fragments, 1)
        with self._lock:
            self._shares[key] = rows / (stats.rows * part) if part else 0.0
            self._shares.move_to_end(key)
            while len(self._shares) > self._most:
                self._shares.popitem(last=False)


KEPT = KeptShares()
