"""Tables that the planning service keeps open between the requests of a query, and between queries.

They are kept by root, storage options and version, so that nobody meets a table that was opened with the credentials
of another. A snapshot never changes; which one is the newest, and whether the table is still the same one, is looked up
for each query. Only the service keeps any.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime

from lancepart.table import PartitionedTable, hold_open, is_same_snapshot, open_pinned, open_table

_Key = tuple[str, tuple[tuple[str, str], ...], int]


class _Kept:
    """The tables that were used last, at most ``size`` of them."""

    def __init__(self) -> None:
        self.size = 0
        self._lock = threading.Lock()
        self._tables: OrderedDict[_Key, PartitionedTable] = OrderedDict()

    def get(self, key: _Key) -> PartitionedTable | None:
        with self._lock:
            found = self._tables.get(key)
            if found is not None:
                self._tables.move_to_end(key)
            return found

    def put(self, key: _Key, table: PartitionedTable) -> None:
        with self._lock:
            self._tables[key] = table
            while len(self._tables) > self.size:
                self._tables.popitem(last=False)


_KEPT = _Kept()


def keep(size: int) -> None:
    """Keep so many tables open from now on."""
    _KEPT.size = size


def fresh(root: str, wanted: int | str | datetime | None, storage: Mapping[str, str]) -> PartitionedTable:
    """The table at the snapshot that is wanted, or the newest of now; fixed there.

    A table that was dropped and made again under the same path is known by its salt, and a snapshot whose number came
    again by its files. A table without a salt, which other clients made or which has no snapshots, is not kept.
    """
    table = open_table(root, version=wanted, storage_options=storage)
    version, salt = table.version, table.metadata.salt
    if not salt:
        return open_pinned(root, version, storage_options=storage)
    key = _key(root, version, storage)
    kept = _KEPT.get(key)
    if kept is None or kept.metadata.salt != salt or not is_same_snapshot(kept, table):
        kept = hold_open(table)
        _KEPT.put(key, kept)
    return kept


def pinned(root: str, version: int, storage: Mapping[str, str]) -> PartitionedTable:
    """The table at a snapshot that a query has looked up before; one without snapshots as it is now."""
    found = _KEPT.get(_key(root, version, storage))
    return open_pinned(root, version, storage_options=storage) if found is None else found


def _key(root: str, version: int, storage: Mapping[str, str]) -> _Key:
    return root, tuple(sorted(storage.items())), version
