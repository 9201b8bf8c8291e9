"""How large a scan is said to be: Spark chooses joins by it, and should choose those that it does for Parquet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.spark.planning import plan
from lancepart.spark.scan_sizes import row_width, width
from lancepart.spark.table_messages import ScanRequest

SCHEMA = pa.schema(
    [("id", pa.int64()), ("money", pa.decimal128(15, 2)), ("text", pa.string()), ("vector", pa.list_(pa.float32(), 64))]
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> lp.PartitionedTable:
    made = lp.create_table(Path(tmp_path_factory.mktemp("sizes")) / "t", SCHEMA)
    made.append([{"id": n, "money": None, "text": f"text {n}" * 20, "vector": [n / 7] * 64} for n in range(2_000)])
    return made


def scanned(table: lp.PartitionedTable, *columns: str) -> int:
    return plan(table, ScanRequest(version=table.version, columns=columns)).bytes


def test_columns_have_their_share_of_the_bytes(table: lp.PartitionedTable) -> None:
    everything = scanned(table, *SCHEMA.names)
    files = sum(leaf.stats.bytes for leaf in table.scan().plan().leaves if leaf.stats)
    assert files * 0.7 < everything < files * 0.9
    assert scanned(table, "id", "text") < everything / 5
    assert scanned(table, "id", "vector") > everything * 0.8


def test_columns_of_a_fixed_width_are_no_larger_than_their_values(table: lp.PartitionedTable) -> None:
    assert scanned(table, "id") <= 2_000 * 16


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.int32(), 4),
        (pa.decimal128(15, 2), 8),
        (pa.decimal128(38, 2), 16),
        (pa.string(), 20),
        (pa.dictionary(pa.int8(), pa.string()), 20),
        (pa.binary(), 100),
        (pa.list_(pa.int64()), 8),
        (pa.list_(pa.float32(), 10), 40),
        (pa.map_(pa.string(), pa.int64()), 28),
        (pa.struct([("a", pa.int64()), ("b", pa.date32())]), 20),
        (pa.bool_(), 1),
    ],
)
def test_widths_are_those_that_spark_takes(kind: pa.DataType, expected: int) -> None:
    assert row_width(pa.schema([("x", kind)])) == 8 + expected


def test_a_width_is_known_of_plain_values_alone() -> None:
    assert (width(pa.int16()), width(pa.string()), width(pa.list_(pa.int8()))) == (2, None, None)
