"""A small table of accounts, and what must hold of it after whatever was done to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import lance
import pyarrow as pa

import lancepart as lp
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from tests.support.catalogs import Place

SCHEMA = pa.schema([("id", pa.int64()), ("bank", pa.string()), ("x", pa.int64())])

Row = tuple[Any, ...]


def data(rows: Iterable[Row]) -> pa.Table:
    """Rows of the table, given as tuples."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def make(place: Place, rows: Sequence[Row] = (), *, by: Sequence[str] = ("bank",), mode: str = "strong") -> Any:
    """A table with some rows, written in one commit."""
    table = lp.create_table(place.root, SCHEMA, list(by), transactions=mode, storage_options=place.storage_options)
    if rows:
        table.append(data(rows))
    return table


def opened(place: Place, version: Any = None) -> Any:
    return lp.open_table(place.root, version=version, storage_options=place.storage_options)


def manifest(place: Place) -> Manifest:
    return Manifest(Root.parse(place.root, place.storage_options))


def content(source: Any, where: str | None = None) -> Counter[Row]:
    """The rows of a table or of a transaction, with how often each stands there."""
    found = source.scan(where).to_arrow()
    return Counter(zip(*(found.column(name).to_pylist() for name in found.column_names), strict=True))


def assert_whole(table: Any) -> None:
    """What holds of every table: sizes that add up, one leaf a value, every leaf readable at its version."""
    partitions = table.inspect.partitions().to_pylist()
    total = sum(content(table).values())
    assert table.scan().count() == total
    assert sum(each["rows"] for each in partitions) == total
    values = Counter((each["spec_id"], tuple(each["partition"])) for each in partitions)
    assert [value for value, times in values.items() if times > 1] == []
    options = dict(table._manifest.root.storage_options) or None
    for each in partitions:
        leaf = lance.dataset(f"{table.root}/{each['location']}", version=each["read_version"], storage_options=options)
        assert leaf.count_rows() == each["rows"], each
        assert leaf.to_table().num_rows == each["rows"], each
