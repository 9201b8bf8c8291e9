"""What every layout promises: a base class for suites, with the rows that a table must hold beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import UnsupportedOperationError
from tests.support import layouts
from tests.support.catalogs import Place

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("country", pa.string()), ("n", pa.int32()), ("note", pa.string())]
)
Row = tuple[int, str | None, int | None, str | None]
START: tuple[Row, ...] = (
    (1, "US", 10, "a"),
    (2, "US", 20, None),
    (3, "FR", 30, "c"),
    (4, None, None, "d"),
    (5, "FR", 50, "e"),
)


def dicts(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows as a user gives them."""
    return [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]


def in_order(rows: Iterable[Any]) -> list[Any]:
    """Rows whose order does not matter, in one."""
    return sorted(rows, key=repr)


def held(found: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of an Arrow table, in one order."""
    return in_order(tuple(row.values()) for row in found.to_pylist())


class Contract:
    """A suite over one layout; what the layout can't do is refused with its name and what to do."""

    layout: ClassVar[str]
    snapshots: ClassVar[bool] = False
    atomic: ClassVar[bool] = False
    current: ClassVar[bool] = False
    upkeep: ClassVar[bool] = False

    @pytest.fixture
    def store(self, tmp_path: Any) -> Place:
        """Where tables are made."""
        return Place(str(tmp_path / "table"), {})

    @pytest.fixture
    def empty(self, store: Place) -> lp.PartitionedTable:
        """A table without rows."""
        return layouts.make(self.layout, store, SCHEMA, "country")

    @pytest.fixture
    def table(self, empty: lp.PartitionedTable) -> lp.PartitionedTable:
        """A table with the rows of START."""
        empty.append(dicts(START))
        return empty

    def check(self, table: lp.PartitionedTable, expected: Iterable[Any]) -> None:
        """Insist that a table holds exactly some rows, however it is asked, and each in its own partition."""
        wanted = in_order(expected)
        assert held(table.scan().to_arrow()) == wanted
        assert table.scan().count() == len(wanted)
        for value in {row[1] for row in wanted}:
            where = "country IS NULL" if value is None else f"country = '{value}'"
            assert held(table.scan(where).to_arrow()) == [row for row in wanted if row[1] == value]
        assert sum(table.inspect.partitions()["rows"].to_pylist()) == len(wanted)

    @contextmanager
    def refused(self, table: lp.PartitionedTable, *names: str) -> Iterator[None]:
        """Insist that something is refused clearly, and changes nothing."""
        before = held(table.scan().to_arrow())
        with pytest.raises(UnsupportedOperationError) as caught:
            yield
        told = str(caught.value).lower()
        assert any(name in told for name in names), told
        assert held(table.scan().to_arrow()) == before

    @property
    def names(self) -> tuple[str, ...]:
        """What errors call the layout."""
        return {"weak": ("weak", "transactions='strong'"), "draft": ("draft",), "hive": ("hive",)}[self.layout]
