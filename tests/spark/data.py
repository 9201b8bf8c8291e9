"""Rows of every type, in tables of ours and in Parquet files."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lancepart as lp

NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0000))[0]
FLOATS = [0.0, -0.0, 1.5, -1.5, float("nan"), NEGATIVE_NAN, float("inf"), float("-inf"), None, 7.25]
TEXTS = ["", "a", "ab", "it's", "é", "a%b", None, "Z", "zz ", "ab\\c"]
ROWS = 120
START = datetime(2023, 11, 5, 3, 59, 59, 999_999, tzinfo=UTC)


@dataclass(frozen=True)
class Pair:
    """A table of ours and a Parquet file with the same rows."""

    root: str
    parquet: str


SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("country", pa.string()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("i32", pa.int32()),
        ("u8", pa.uint8()),
        ("u16", pa.uint16()),
        ("u32", pa.uint32()),
        ("u64", pa.uint64()),
        ("f32", pa.float32()),
        ("f64", pa.float64()),
        ("flag", pa.bool_()),
        ("text", pa.string()),
        ("big", pa.large_string()),
        ("code", pa.dictionary(pa.int8(), pa.string())),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("zoned", pa.timestamp("us", "Asia/Tokyo")),
        ("ntz", pa.timestamp("us")),
        ("nanos", pa.timestamp("ns", "UTC")),
        ("millis", pa.timestamp("ms", "UTC")),
        ("clock", pa.time64("us")),
        ("price", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(38, 10)),
        ("raw", pa.binary()),
        ("fixed", pa.binary(4)),
        ("vec", pa.list_(pa.float32(), 3)),
        ("nums", pa.list_(pa.int32())),
        ("pair", pa.struct([("x", pa.int32()), ("y", pa.string())])),
    ]
)
PLAIN = {
    "u8": pa.int16(),
    "u16": pa.int32(),
    "u32": pa.int64(),
    "u64": pa.decimal128(20, 0),
    "big": pa.string(),
    "code": pa.string(),
    "zoned": pa.timestamp("us", "UTC"),
    "millis": pa.timestamp("us", "UTC"),
    "fixed": pa.binary(),
    "vec": pa.list_(pa.float32()),
}


def row(n: int) -> dict[str, Any]:
    """The n-th row: every type, and NULL in every column now and then."""
    moment = START + timedelta(hours=37 * n, microseconds=n)
    values: dict[str, Any] = {
        "id": n % 40,
        "country": ["US", "FR", "JP", None, "O'Neil"][n % 5],
        "i8": n % 256 - 128,
        "i16": n * 7 - 300,
        "i32": n * 1000 - 60_000,
        "u8": n * 2,
        "u16": n * 500,
        "u32": n * 30_000_000,
        "u64": 2**64 - 1 - n * 10**17,
        "f32": FLOATS[(n + 3) % len(FLOATS)],
        "f64": FLOATS[n % len(FLOATS)],
        "flag": n % 3 == 0,
        "text": TEXTS[n % len(TEXTS)],
        "big": TEXTS[(n + 1) % len(TEXTS)],
        "code": ["x", "y", "z"][n % 3],
        "day": date(2023, 12, 28) + timedelta(days=n * 5),
        "ts": moment,
        "zoned": moment,
        "ntz": moment.replace(tzinfo=None),
        "nanos": int(moment.timestamp()) * 10**9 + n * 321,
        "millis": moment.replace(microsecond=n * 1000),
        "clock": time(n % 24, n % 60, 1, n),
        "price": Decimal(n * 13 - 500) / 4,
        "wide": Decimal(n).scaleb(20) - Decimal("0.0000000001"),
        "raw": bytes([n % 256, 255 - n % 256]) if n % 10 else b"",
        "fixed": struct.pack(">I", n * 10**7),
        "vec": [float(n), 0.5, -1.0],
        "nums": [n, None, n * 2][: n % 4],
        "pair": {"x": n, "y": TEXTS[n % len(TEXTS)]},
    }
    empty = list(values)[1:][n % (len(values) - 1)]
    if n % 4 == 1:
        values[empty] = None
    if n % 17 == 16:
        values["id"] = None
    return values


def all_types() -> pa.Table:
    """Rows of every type."""
    return pa.Table.from_pylist([row(n) for n in range(ROWS)], schema=SCHEMA)


def plain(table: pa.Table) -> pa.Table:
    """The same rows in the types that Spark should show."""
    for index, field in enumerate(table.schema):
        column = table.column(index)
        if field.name == "nanos":
            floored = [None if value is None else value // 1000 for value in column.cast(pa.int64()).to_pylist()]
            column = pa.array(floored, pa.int64()).cast(pa.timestamp("us", "UTC"))
        elif field.name in PLAIN:
            column = column.cast(PLAIN[field.name])
        table = table.set_column(index, field.name, column)
    return table


def store(folder: Path, name: str, partition_by: list[str], *steps: tuple[pa.Table, list[str] | None]) -> Pair:
    """Write rows to both; before a step's rows a new spec may come."""
    pair = Pair(str(folder / f"{name}.table"), str(folder / f"{name}.parquet"))
    table = lp.create_table(pair.root, steps[0][0].schema, partition_by)
    for rows, spec in steps:
        if spec is not None:
            table.update_spec(spec)
        table.append(rows)
    pq.write_table(plain(pa.concat_tables([rows for rows, _ in steps])), pair.parquet)
    return pair


def make_pairs(folder: Path) -> dict[str, Pair]:
    """Tables partitioned in every way, of rows that join."""
    rows = all_types()
    half, rest = rows.slice(0, 70), rows.slice(70)
    small = rows.select(["id", "country", "text", "day", "ts", "i32", "price"])
    return {
        "types": store(folder, "types", ["country", "bucket(id, 2)"], (rows, None)),
        "b16": store(folder, "b16", ["bucket(id, 16)"], (small, None)),
        "b8": store(folder, "b8", ["bucket(id, 8)"], (small.slice(20), None)),
        "b12": store(folder, "b12", ["bucket(id, 12)"], (small.slice(5, 90), None)),
        "mixed": store(folder, "mixed", ["bucket(id, 16)"], (half, None), (rest, ["bucket(id, 8)"])),
        "evolved": store(folder, "evolved", ["country"], (half, None), (rest, ["year(day)", "bucket(id, 4)"])),
        "days": store(folder, "days", ["year(day)", "month(day)", "day(day)"], (small.slice(0, 14), None)),
        "months": store(folder, "months", ["year(day)", "month(day)"], (small.slice(4, 30), None)),
        "years": store(folder, "years", ["year(day)"], (small, None)),
        "hours": store(folder, "hours", ["year(ts)", "month(ts)"], (small, None)),
        "tsyears": store(folder, "tsyears", ["year(ts)"], (small.slice(30), None)),
        "dom": store(folder, "dom", ["day(day)"], (small.slice(0, 14), None)),
        "moy": store(folder, "moy", ["month(day)"], (small.slice(0, 40), None)),
        "places": store(folder, "places", ["country"], (small.slice(0, 50), None)),
        "places2": store(folder, "places2", ["country", "bucket(id, 2)"], (small.slice(7), None)),
        "dates": store(folder, "dates", ["day"], (small.slice(0, 14), None)),
        "prefix": store(folder, "prefix", ["truncate(text, 1)"], (small, None)),
        "tens": store(folder, "tens", ["truncate(i32, 10000)"], (small, None)),
        "many": store(folder, "many", ["multi_bucket(4, id, country)"], (small, None)),
        "one": store(folder, "one", ["multi_bucket(8, id)"], (small, None)),
    }
