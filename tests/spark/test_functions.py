"""The partition functions of the jar agree bit for bit with those that write the partitions."""

from __future__ import annotations

import math
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.model.transforms import Bucket, Day, Hour, Month, MultiBucket, Truncate, Year
from tests.spark.data import FLOATS

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGS = [0, 1, -1, 34, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 6018035362574630912, None]
MICROS = [0, 1, -1, 1_700_000_000_000_001, -62_135_596_800_000_000, 253_402_300_799_999_999, -3_600_000_001, None]
DAYS = [0, -1, 1, 19_700, -719_162, 2_932_896, None]
TEXTS = ["", "a", "ab", "abc", "abcd", "abcde", "iceberg", "é€😀", "\0x", "x" * 300, None]
VECTORS: dict[str, pa.Array] = {
    "bool": pa.array([True, False, None]),
    "int8": pa.array([0, 127, -128, -1, None], pa.int8()),
    "int16": pa.array([0, 32767, -32768, None], pa.int16()),
    "int32": pa.array([0, 34, -34, 2**31 - 1, -(2**31), None], pa.int32()),
    "int64": pa.array(LONGS, pa.int64()),
    "uint8": pa.array([0, 255, None], pa.uint8()),
    "uint32": pa.array([0, 2**32 - 1, None], pa.uint32()),
    "float32": pa.array(FLOATS, pa.float32()),
    "float64": pa.array([*FLOATS, math.pi, 5e-324], pa.float64()),
    "date32": pa.array(DAYS, pa.int32()).cast(pa.date32()),
    "timestamp": pa.array(MICROS, pa.int64()).cast(pa.timestamp("us", "UTC")),
    "ntz": pa.array(MICROS, pa.int64()).cast(pa.timestamp("us")),
    "nanos": pa.array([0, 1, -1, 999, -1001, 1_700_000_000_000_000_999, None], pa.int64()).cast(pa.timestamp("ns")),
    "millis": pa.array([0, -1, 1_700_000_000_123, None], pa.int64()).cast(pa.timestamp("ms", "Asia/Tokyo")),
    "time": pa.array([time(0), time(23, 59, 59, 999_999), None], pa.time64("us")),
    "string": pa.array(TEXTS),
    "large": pa.array(TEXTS, pa.large_string()),
    "binary": pa.array([None if text is None else text.encode() for text in TEXTS]),
    "fixed": pa.array([b"\x00\x01\x02\xff", None], pa.binary(4)),
    "decimal": pa.array([Decimal("0.00"), Decimal("14.20"), Decimal("-14.20"), Decimal("99999999.99"), None]).cast(
        pa.decimal128(10, 2)
    ),
    "wide": pa.array([Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal(-1), None], pa.decimal128(38, 0)),
}
TIMES = ("date32", "timestamp", "ntz", "nanos", "millis")
TRUNCATED = ("int8", "int16", "int32", "int64", "string", "large", "binary", "decimal")


MOMENTS = ("year_month", "year_month_day", "year_month_day_hour")
WIDTHS = (1, 3, 100)
HUGE = 2**31 - 1


def expressions() -> dict[tuple[str, str], str]:
    """Every function of every column that it is defined for."""
    found = {}
    for kind in VECTORS:
        found[kind, "bucket"] = f"lancepart.bucket(16, {kind})"
        found[kind, "huge"] = f"lancepart.bucket({HUGE}, {kind})"
        found[kind, "multi"] = f"lancepart.multi_bucket(97, {kind}, n)"
    for kind in TIMES:
        for name in ("year", "month", "day") if kind == "date32" else ("year", "month", "day", "hour"):
            found[kind, name] = f"lancepart.{name}({kind})"
    for kind in TRUNCATED:
        for width in WIDTHS:
            found[kind, f"named{width}"] = f"lancepart.truncate_{width}({kind})"
            found[kind, f"truncate{width}"] = f"lancepart.truncate({width}, {kind})"
    return found | {("timestamp", name): f"lancepart.{name}(timestamp)" for name in MOMENTS}


@pytest.fixture(scope="module")
def said(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[Any]]:
    """What the jar's functions say of each value, in the order of the values."""
    root = str(tmp_path_factory.mktemp("vectors") / "table")
    longest = max(map(len, VECTORS.values()))
    padded = {
        name: pa.concat_arrays([each, pa.nulls(longest - len(each), each.type)]) for name, each in VECTORS.items()
    }
    rows = pa.table({"n": pa.array(range(longest), pa.int32()), **padded})
    table = lp.create_table(root, rows.schema, ["truncate(n, 1000)"])
    table.append(rows)
    asked = expressions()
    frame = spark.read.format("lancepart").load(root).selectExpr("n", *asked.values())
    found = sorted(map(tuple, frame.collect()))
    return {key: [row[index] for row in found][: len(VECTORS[key[0]])] for index, key in enumerate(asked, start=1)}


@pytest.mark.parametrize("kind", VECTORS)
def test_buckets_agree(kind: str, said: dict[tuple[str, str], list[Any]]) -> None:
    array = VECTORS[kind]
    numbers = pa.array(range(len(array)), pa.int32())

    assert said[kind, "bucket"] == Bucket(num_buckets=16).apply([array]).to_pylist()
    assert said[kind, "huge"] == Bucket(num_buckets=HUGE).apply([array]).to_pylist()
    assert said[kind, "multi"] == MultiBucket(num_buckets=97).apply([array, numbers]).to_pylist()


@pytest.mark.parametrize("kind", TIMES)
def test_parts_of_time_agree(kind: str, said: dict[tuple[str, str], list[Any]]) -> None:
    for part in (Year(), Month(), Day(), *([] if kind == "date32" else [Hour()])):
        assert said[kind, part.name] == part.apply([VECTORS[kind]]).to_pylist()


@pytest.mark.parametrize("kind", TRUNCATED)
@pytest.mark.parametrize("width", WIDTHS)
def test_truncations_agree(kind: str, width: int, said: dict[tuple[str, str], list[Any]]) -> None:
    expected = Truncate(width=width).apply([VECTORS[kind]]).to_pylist()

    for name in ("named", "truncate"):
        shown = said[kind, f"{name}{width}"]
        assert [bytes(value) if isinstance(value, bytearray) else value for value in shown] == expected


def test_moments_roll_up(said: dict[tuple[str, str], list[Any]]) -> None:
    hours = [None if micros is None else micros // 3_600_000_000 for micros in MICROS]
    days = [None if hour is None else hour // 24 for hour in hours]
    dates = [None if day is None else (EPOCH + timedelta(days=day)).date() for day in days]

    assert said["timestamp", "year_month_day_hour"] == hours
    assert said["timestamp", "year_month_day"] == days
    assert said["timestamp", "year_month"] == [None if at is None else at.year * 12 + at.month - 1 for at in dates]


def test_what_a_function_can_not_take_is_refused(spark: Any) -> None:
    with pytest.raises(Exception, match="array"):
        spark.sql("SELECT lancepart.bucket(16, array(1))").collect()
    with pytest.raises(Exception, match="lancepart"):
        spark.sql("SELECT lancepart.nonsense(1)").collect()
