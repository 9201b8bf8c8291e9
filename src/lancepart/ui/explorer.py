"""What the explorer has open: a table or a warehouse, and the leaves of the snapshots that were looked at."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime

from lancepart.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableNotFoundError,
)
from lancepart.model.snapshot_text import number_or_tag
from lancepart.model.table_names import joined
from lancepart.queries.connection import Connection, connect
from lancepart.report.leaf_frame import LeafFrame
from lancepart.table import PartitionedTable, open_table
from lancepart.ui.params import Params

_FRAMES = 6


class Explorer:
    """One root that is only read; all threads of the server share it."""

    def __init__(self, root: str, *, namespace: tuple[str, ...] = (), storage: Mapping[str, str] | None = None) -> None:
        self.root = root
        self._namespace = namespace
        self._storage = dict(storage or {})
        self._frames: OrderedDict[tuple[str, int], LeafFrame] = OrderedDict()
        self._locks: dict[tuple[str, int], threading.Lock] = {}
        self._lock = threading.Lock()
        self._connection = self._find()

    def _find(self) -> Connection | None:
        """The warehouse; ``None`` where the root is a table itself."""
        try:
            open_table(self.root, namespace=self._namespace, storage_options=self._storage or None)
        except LanceNamespaceError as error:
            if self._namespace:
                raise
            found = connect(self.root, storage_options=self._storage or None)
            try:
                empty = not found.list_tables() and not found.list_namespaces()
            except LanceNamespaceError:
                raise error from None
            if empty:
                raise error from None
            return found
        return None

    def warm(self) -> None:
        """Read the leaves of the newest snapshot, if the root is one table, before a page asks for them."""
        if self._connection is None:
            self.frame(".", self.table("."))

    @property
    def is_warehouse(self) -> bool:
        """Whether there may be many tables."""
        return self._connection is not None

    def names(self) -> list[str]:
        """The tables by name; a table that is the root has the name ``.``."""
        return ["."] if self._connection is None else self._connection.list_tables()

    def label(self, name: str) -> str:
        """How the command line names a table."""
        if self._connection is not None:
            return f"{self.root}:{name}"
        return f"{self.root}:{joined(self._namespace)}" if self._namespace else self.root

    def table(self, name: str, version: int | str | datetime | None = None) -> PartitionedTable:
        """A table by name, as it is now or at a snapshot."""
        if self._connection is not None:
            return self._connection.table(name, version=version)
        if name != ".":
            raise TableNotFoundError(f"there is no table {name!r} here: the root is one table, '.'")
        options = self._storage or None
        return open_table(self.root, namespace=self._namespace, version=version, storage_options=options)

    def requested(self, params: Params) -> PartitionedTable:
        """The table that a request names, at the snapshot that it names."""
        return self.table(params.text("table", "."), snapshot_of(params.optional("version")))

    def frame(self, name: str, table: PartitionedTable) -> LeafFrame:
        """The leaves of a table's snapshot; they are read once, and a few snapshots are kept."""
        key = (name, table.version)
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            found = self._frames.get(key)
            if found is None:
                found = LeafFrame.of(table)
            with self._lock:
                kept = (name, found.version)
                self._frames[kept] = found
                self._frames.move_to_end(kept)
                while len(self._frames) > _FRAMES:
                    gone, _ = self._frames.popitem(last=False)
                    self._locks.pop(gone, None)
        return found


def snapshot_of(text: str | None) -> int | str | None:
    """A snapshot as a request names it: a number or a tag."""
    if text is None:
        return None
    if len(text) > 200:
        raise InvalidInputError("version is too long: give a snapshot's number or a tag")
    return number_or_tag(text)
