"""Rows that were staged before the table was changed, and committed after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp

SCHEMA = pa.schema([("id", pa.int32()), ("country", pa.string()), ("v", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["country"])
    made.append([{"id": 1, "country": "US", "v": "one"}])
    return made


def _staged(table: lp.PartitionedTable, *rows: dict[str, Any]) -> Any:
    """A transaction with rows that nobody sees yet; another handle changes the table meanwhile."""
    transaction = table.transaction()
    transaction.append(list(rows))
    return transaction


def _rows(table: lp.PartitionedTable) -> list[dict[str, Any]]:
    return table.scan().to_arrow().sort_by("id").to_pylist()


STAGED = ({"id": 2, "country": "US", "v": "two"}, {"id": 3, "country": "FR", "v": "three"})


@pytest.mark.parametrize("others", [True, False], ids=["others wrote", "nobody wrote"])
def test_a_rename_and_a_new_column_under_the_old_name_do_not_mix(table: lp.PartitionedTable, others: bool) -> None:
    staged = _staged(table, *STAGED)
    table.rename_column("v", "w")
    table.add_column(pa.field("v", pa.string()))
    if others:
        table.append([{"id": 4, "country": "US", "v": "V", "w": "W"}, {"id": 5, "country": "FR", "v": "V"}])

    staged.commit()

    expected = [(1, "one", None), (2, "two", None), (3, "three", None)]
    expected += [(4, "W", "V"), (5, None, "V")] if others else []
    assert [(row["id"], row["w"], row["v"]) for row in _rows(table)] == expected


def test_a_column_dropped_and_made_again_does_not_show_staged_values(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int32()), ("country", pa.string()), pa.field("v", pa.string(), nullable=False)])
    table = lp.create_table(tmp_path / "d", schema, ["country"])
    table.append([{"id": 1, "country": "US", "v": "one"}])
    staged = _staged(table, *STAGED)
    table.drop_column("v")
    table.append([{"id": 4, "country": "US"}])
    table.add_column(pa.field("v", pa.string()))
    table.append([{"id": 5, "country": "US", "v": "new"}])

    staged.commit()

    assert [(row["id"], row["v"]) for row in _rows(table)] == [(1, None), (2, None), (3, None), (4, None), (5, "new")]


@pytest.mark.parametrize("others", [True, False], ids=["others wrote", "nobody wrote"])
def test_a_widening_and_a_new_column_lose_nothing_of_anyone(table: lp.PartitionedTable, others: bool) -> None:
    staged = _staged(table, *STAGED)
    table.widen_column("id", pa.int64())
    table.add_column(pa.field("x", pa.int8()))
    if others:
        table.append([{"id": 2**40, "country": "US", "v": "big", "x": 7}])

    staged.commit()
    table.append([{"id": 4, "country": "FR", "x": 8}])

    found = [(row["id"], row["v"], row["x"]) for row in _rows(table)]
    assert found == [
        (1, "one", None),
        (2, "two", None),
        (3, "three", None),
        (4, None, 8),
        *([(2**40, "big", 7)] if others else []),
    ]


def test_a_partition_staged_in_a_narrow_type_is_found_in_the_wide_one(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "n", SCHEMA, ["id"])
    table.append([{"id": 5, "country": "old"}])
    staged = _staged(table, {"id": 5, "country": "US"}, {"id": 6, "country": "US"})
    table.widen_column("id", pa.int64())
    table.append([{"id": 6, "country": "FR"}])

    staged.commit()

    assert sorted(leaf.values for leaf in table.scan().plan().leaves) == [("5",), ("6",)]
    assert sorted(table.scan("id = 6").to_arrow().column("country").to_pylist()) == ["FR", "US"]


def test_a_new_spec_leaves_staged_rows_in_the_old_one(table: lp.PartitionedTable) -> None:
    staged = _staged(table, *STAGED)
    table.update_spec(["bucket(id, 4)"])
    table.append([{"id": 4, "country": "US", "v": "four"}])

    staged.commit()

    assert [row["id"] for row in _rows(table)] == [1, 2, 3, 4]
    assert sorted(leaf.spec_id for leaf in table.scan().plan().leaves) == [1, 1, 2]
    assert table.scan("country = 'FR'").to_arrow().column("id").to_pylist() == [3]


def test_a_dropped_partition_source_leaves_staged_rows_where_they_belong(table: lp.PartitionedTable) -> None:
    staged = _staged(table, *STAGED)
    table.drop_column("country")
    table.append([{"id": 4, "v": "four"}])

    staged.commit()

    assert [row["id"] for row in _rows(table)] == [1, 2, 3, 4]
    assert {leaf.values for leaf in table.scan().plan().leaves} == {("US",), ("FR",), (None,)}
