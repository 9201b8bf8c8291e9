from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.spark.spark_partitioning import key_of, key_parts

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("country", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(10, 2)),
        ("ratio", pa.float64()),
        ("huge", pa.uint64()),
    ]
)
ROW = {
    "id": 7,
    "country": "FR",
    "ts": datetime(1969, 12, 31, 23, 30, tzinfo=UTC),
    "price": Decimal("-1.50"),
    "ratio": 0.5,
    "huge": 2**64 - 1,
}


def told(folder: Path, *specs: list[str], columns: list[str] | None = None) -> tuple[list[str], list[Any]]:
    """The parts of a table whose specs follow one another, with a row under each; and the last leaf's key."""
    table = lp.create_table(folder / "t", SCHEMA, specs[0])
    for number, spec in enumerate(specs):
        if number:
            table.update_spec(spec)
        table.append([ROW])
    leaves = table.scan().plan().leaves
    parts = key_parts(table.metadata, [leaf.spec_id for leaf in leaves], columns or SCHEMA.names)
    shown = [f"{part.transform}({part.column}{f', {part.buckets}' if part.buckets else ''})" for part in parts]
    return shown, list(key_of(parts, leaves[-1], table.metadata))


@pytest.mark.parametrize(
    ("specs", "parts", "key"),
    [
        ([["country", "year(ts)"]], ["identity(country)", "year(ts)"], ["FR", 1969]),
        ([["year(ts)", "month(ts)"]], ["year_month(ts)"], [1969 * 12 + 11]),
        ([["year(ts)", "month(ts)", "day(ts)"]], ["year_month_day(ts)"], [-1]),
        ([["year(ts)", "month(ts)", "day(ts)", "hour(ts)"]], ["year_month_day_hour(ts)"], [-1]),
        ([["day(ts)", "hour(ts)"]], ["day(ts)", "hour(ts)"], [31, 23]),
        ([["year(ts)", "day(ts)"]], ["year(ts)", "day(ts)"], [1969, 31]),
        ([["ts"]], ["identity(ts)"], [-1_800_000_000]),
        ([["price"]], ["identity(price)"], ["-150"]),
        ([["truncate(country, 1)"]], ["truncate_1(country)"], ["F"]),
        ([["huge"]], ["identity(huge)"], [str(2**64 - 1)]),
        ([["ratio"]], [], []),
        ([["bucket(huge, 4)"]], [], []),
        ([["expr(id % 3) AS rest"]], [], []),
        ([["multi_bucket(4, id, country)"]], [], []),
        ([["year(ts)", "month(ts)"], ["year(ts)"]], ["year(ts)"], [1969]),
        ([["country"], ["year(ts)"]], [], []),
        ([["country", "year(ts)"], ["country"]], ["identity(country)"], ["FR"]),
    ],
)
def test_what_is_true_of_all_leaves(specs: list[list[str]], parts: list[str], key: list[Any], tmp_path: Path) -> None:
    assert told(tmp_path, *specs) == (parts, key)


def test_buckets_of_several_versions_meet_in_their_common_divisor(tmp_path: Path) -> None:
    parts, key = told(tmp_path, ["bucket(id, 16)"], ["bucket(id, 12)"])

    bucket = lp.open_table(tmp_path / "t").spec.fields[0].apply([pa.array([7])])[0].as_py()
    assert parts == ["bucket(id, 4)"]
    assert key == [bucket % 4]


def test_a_column_that_is_not_read_is_left_out(tmp_path: Path) -> None:
    assert told(tmp_path, ["country", "bucket(id, 4)"], columns=["country"]) == (["identity(country)"], ["FR"])


def test_a_null_is_a_key_too(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["country", "year(ts)", "month(ts)", "bucket(id, 4)"])
    table.append([{**ROW, "country": None, "ts": None, "id": None}])
    (leaf,) = table.scan().plan().leaves

    assert key_of(key_parts(table.metadata, [1], SCHEMA.names), leaf, table.metadata) == (None, None, None)


def test_a_renamed_and_widened_column_keeps_its_key(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int32()), ("d", pa.date32())])
    table = lp.create_table(tmp_path / "t", schema, ["n"])
    table.append([{"n": 5, "d": date(2025, 1, 1)}])
    table.rename_column("n", "number")
    table.widen_column("number", pa.int64())
    (leaf,) = table.scan().plan().leaves
    parts = key_parts(table.metadata, [1], ["number"])

    assert [part.column for part in parts] == ["number"]
    assert key_of(parts, leaf, table.metadata) == (5,)
