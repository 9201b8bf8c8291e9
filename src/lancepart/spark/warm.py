"""Tables and catalogs that the planning service keeps open between the requests of a query, and between queries.

They are kept by root, storage options and version, so that no user gets a table that was opened with the credentials of
another. A snapshot never changes; which one is the newest, and whether the table is still the same one, is looked up
for each query, and so is the newest snapshot of a catalog. Only the service keeps any.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from typing import Generic, TypeVar

from lancepart.catalog.context import Catalog
from lancepart.storage.snapshot import Snapshot
from lancepart.table import PartitionedTable, is_same_snapshot, open_held, open_pinned

_Key = tuple[str, tuple[tuple[str, str], ...], int]


T = TypeVar("T")


class _Kept(Generic[T]):
    """The tables or snapshots that were used last, at most ``size`` of them."""

    def __init__(self) -> None:
        self.size = 0
        self._lock = threading.Lock()
        self._open: OrderedDict[_Key, T] = OrderedDict()

    def get(self, key: _Key) -> T | None:
        with self._lock:
            found = self._open.get(key)
            if found is not None:
                self._open.move_to_end(key)
            return found

    def put(self, key: _Key, value: T) -> None:
        with self._lock:
            self._open[key] = value
            while len(self._open) > self.size:
                self._open.popitem(last=False)


_KEPT: _Kept[PartitionedTable] = _Kept()
_CATALOGS: _Kept[Snapshot] = _Kept()


def keep(size: int) -> None:
    """Keep so many tables and catalogs open from now on."""
    _KEPT.size = _CATALOGS.size = size


def fresh(root: str, wanted: int | str | datetime | None, storage: Mapping[str, str]) -> PartitionedTable:
    """The table at the requested snapshot, or the newest; fixed there.

    A table that was dropped and recreated under the same path is recognised by its salt, and a snapshot whose number
    was reused by its files. A table without a salt, which other clients made or which has no snapshots, is not kept.
    """
    table = open_held(root, version=wanted, storage_options=storage)
    version, salt = table.version, table.metadata.salt
    if not salt:
        return open_pinned(root, version, storage_options=storage)
    key = _key(root, version, storage)
    kept = _KEPT.get(key)
    if kept is None or kept.metadata.salt != salt or not is_same_snapshot(kept, table):
        kept = table
        _KEPT.put(key, kept)
    return kept


def pinned(root: str, version: int, storage: Mapping[str, str]) -> PartitionedTable:
    """The table at a snapshot that a query has looked up before; one without snapshots as it is now."""
    found = _KEPT.get(_key(root, version, storage))
    return open_pinned(root, version, storage_options=storage) if found is None else found


def newest(catalog: Catalog) -> Snapshot:
    """The newest snapshot of a catalog; if nothing has changed since, the one kept, with all that was read of it.

    A catalog that was removed and created again has the same numbers of snapshots, and other files.
    """
    found = catalog.snapshot()
    key = _key(catalog.root.uri, 0, catalog.root.storage_options)
    kept = _CATALOGS.get(key)
    if kept is not None and kept.version == found.version and kept.file_names == found.file_names:
        return kept
    if found.handle is not None:
        _CATALOGS.put(key, found)
    return found


def _key(root: str, version: int, storage: Mapping[str, str]) -> _Key:
    return root, tuple(sorted(storage.items())), version
