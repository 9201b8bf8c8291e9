"""Keys that are the partition too: each upsert finds the row that the one before it wrote."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from tests.support import layouts
from tests.support.catalogs import Place

KEYS: list[tuple[Any, list[Any]]] = [
    (pa.float64(), [0.0, 1.5, math.nan, -math.inf]),
    (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-3.25")]),
    (pa.date32(), [date(2025, 1, 1), date(1960, 1, 1)]),
    (pa.timestamp("us", "Asia/Tokyo"), [datetime(2025, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo"))]),
    (pa.dictionary(pa.int8(), pa.string()), ["x", "X", ""]),
    (pa.bool_(), [True, False]),
]


@pytest.mark.parametrize("layout", layouts.LAYOUTS)
@pytest.mark.parametrize(("kind", "values"), KEYS, ids=[str(kind) for kind, _ in KEYS])
def test_a_key_that_is_the_partition_finds_its_row(local: Place, layout: str, kind: Any, values: list[Any]) -> None:
    schema = pa.schema([("key", kind), ("n", pa.int32()), ("s", pa.string())])
    table = layouts.make(layout, local, schema, "key")
    for _ in range(2):
        table.upsert([{"key": value, "n": at} for at, value in enumerate(values)], on=["key"])
    table.upsert([{"key": value, "s": str(at)} for at, value in enumerate(values)], on=["key"])

    expected = [{"key": value, "n": at, "s": str(at)} for at, value in enumerate(values)]
    assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == sorted(map(repr, expected))


def test_the_zeros_of_a_column_that_paths_hold_are_one_key(local: Place) -> None:
    table = layouts.make("hive", local, pa.schema([("key", pa.float64()), ("n", pa.int32())]), "key")
    for zero in (0.0, -0.0):
        table.upsert([{"key": zero, "n": 1}], on=["key"])

    assert table.scan().to_arrow().to_pylist() == [{"key": 0.0, "n": 1}]


@pytest.mark.parametrize("layout", layouts.LAYOUTS)
def test_a_key_with_a_null_is_always_added(local: Place, layout: str) -> None:
    table = layouts.make(layout, local, pa.schema([("key", pa.string()), ("n", pa.int32())]), "key")
    for _ in range(2):
        table.upsert([{"key": None, "n": 1}, {"key": None, "n": 2}, {"key": "a", "n": 3}], on=["key"])

    found = sorted((row["n"], row["key"]) for row in table.scan().to_arrow().to_pylist())
    assert found == [(1, None), (1, None), (2, None), (2, None), (3, "a")]
