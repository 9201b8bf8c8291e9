"""One version of ``__manifest``, for reading."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidTableStateError
from lancepart.storage.root import Root
from lancepart.storage.rows import Row
from lancepart.storage.translate import storage_errors

REQUIRED_COLUMNS = "lancepart.columns"


class Snapshot:
    """What the manifest held at one version; ``None`` as handle stands for a manifest not yet written."""

    def __init__(self, handle: lance.LanceDataset | None, root: Root) -> None:
        self.handle = handle
        self.root = root
        self.opened = time.monotonic()
        if handle is not None:
            _check_columns(handle)

    @property
    def version(self) -> int:
        """The manifest's version, 0 before it is first written."""
        return 0 if self.handle is None else int(self.handle.version)

    @cached_property
    def properties(self) -> Mapping[str, str]:
        """The root namespace's properties: the manifest table's metadata map."""
        return {} if self.handle is None else dict(self.handle.metadata)

    @cached_property
    def schema(self) -> pa.Schema | None:
        """The manifest's columns, unknown ones among them."""
        return None if self.handle is None else self.handle.schema

    def scan(
        self, where: str | None, columns: Sequence[str] | None = None, limit: int | None = None
    ) -> pa.Table | None:
        """The rows that a filter matches; ``None`` if nothing was ever written."""
        if self.handle is None:
            return None
        with storage_errors("read __manifest", self.root):
            return self.handle.to_table(filter=where, columns=None if columns is None else list(columns), limit=limit)

    def table_of(self, ids: Sequence[str]) -> pa.Table:
        """The full rows with these ids, in this order; those that do not exist are left out."""
        assert self.handle is not None
        found = self.scan(f"object_id IN ({literals(ids)})") if ids else self.scan("false")
        assert found is not None
        order = pc.index_in(pa.array(ids, pa.string()), found.column("object_id").combine_chunks())
        return found.take(order.drop_null())

    def rows(self, ids: Iterable[str]) -> dict[str, Row]:
        """The objects with these ids that exist."""
        wanted = tuple(dict.fromkeys(ids))
        if not wanted or self.handle is None:
            return {}
        where = f"object_id = {literal(wanted[0])}" if len(wanted) == 1 else f"object_id IN ({literals(wanted)})"
        found = self.scan(where)
        assert found is not None
        return {row["object_id"]: Row.read(row) for row in found.to_pylist()}

    def row(self, object_id: str) -> Row | None:
        """The object with this id."""
        return self.rows([object_id]).get(object_id)

    def below(self, object_id: str, object_type: str | None = None, limit: int | None = None) -> list[Row]:
        """The objects at any depth beneath one, itself not among them."""
        found = self.scan(_and(beneath(object_id), object_type), limit=limit)
        return [] if found is None else [Row.read(row) for row in found.to_pylist()]

    def names(self, parent: str, object_type: str, after: str | None = None) -> list[str]:
        """The last parts of the ids exactly one level beneath a parent (the root is ''), in order."""
        prefix = f"{parent}$" if parent else ""
        where = _and(beneath(parent) if parent else None, object_type)
        if after is not None:
            where += f" AND object_id > {literal(prefix + after)}"
        found = self.scan(where, columns=["object_id"])
        if found is None:
            return []
        ids = found.column("object_id")
        level = ids.filter(pc.equal(pc.count_substring(ids, "$"), prefix.count("$")))
        return sorted(pc.utf8_slice_codeunits(level, len(prefix)).to_pylist()) if prefix else sorted(level.to_pylist())

    def ids(self, parent: str, object_type: str) -> list[str]:
        """The full ids of the objects at any depth beneath a parent (the root is ''), in order."""
        found = self.scan(_and(beneath(parent) if parent else None, object_type), columns=["object_id"])
        return [] if found is None else sorted(found.column("object_id").to_pylist())

    def at_locations(self, locations: Sequence[str]) -> list[Row]:
        """The tables that live at these locations."""
        if not locations:
            return []
        found = self.scan(f"object_type = 'table' AND location IN ({literals(locations)})")
        return [] if found is None else [Row.read(row) for row in found.to_pylist()]

    def overlapping(self, location: str) -> list[Row]:
        """The tables that live inside a directory, or in one of the directories that it is in."""
        parts = location.split("/")
        above = literals("/".join(parts[:depth]) for depth in range(1, len(parts)))
        inside = f"location >= {literal(location + '/')} AND location < {literal(location + '0')}"
        where = f"({inside} OR location IN ({above}))" if above else inside
        found = self.scan(f"object_type = 'table' AND {where}")
        return [] if found is None else [Row.read(row) for row in found.to_pylist()]


def literal(text: str) -> str:
    """A string as SQL.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def literals(texts: Iterable[str]) -> str:
    """Strings as the inside of an SQL ``IN (…)``."""
    return ", ".join(map(literal, texts))


def beneath(object_id: str) -> str:
    """A filter for all ids that start with ``<object_id>$``; as a range, which an index serves.

    >>> beneath("ns")
    "object_id >= 'ns$' AND object_id < 'ns%'"
    """
    return f"object_id >= {literal(object_id + '$')} AND object_id < {literal(object_id + '%')}"


def _and(where: str | None, object_type: str | None) -> str:
    parts = [f"object_type = {literal(object_type)}"] if object_type else []
    return " AND ".join([*parts, *([where] if where else [])])


def _check_columns(handle: lance.LanceDataset) -> None:
    """Refuse a manifest whose extension columns were dropped by a client that does not know them."""
    recorded = handle.metadata.get(REQUIRED_COLUMNS)
    if recorded is None:
        return
    lost = [name for name in _as_list(recorded) if name not in handle.schema.names]
    if lost:
        raise InvalidTableStateError(
            f"__manifest lost the column{'s' if len(lost) > 1 else ''} {', '.join(lost)}: another client rewrote it "
            "without them; restore the version before that write, and let only lancepart write to this catalog"
        )


def _as_list(recorded: str) -> list[Any]:
    try:
        value = json.loads(recorded)
    except ValueError:
        value = None
    if not isinstance(value, list):
        raise InvalidTableStateError(f"the property {REQUIRED_COLUMNS} of __manifest is not a JSON list: {recorded!r}")
    return value
