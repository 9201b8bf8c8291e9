"""Blobs on Spark: bytes in and out, and blobs again in tables made of them."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from tests.spark.test_metrics import shown
from tests.spark.warehouse import Sql

pytest.importorskip("pyspark")

MARKED = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
ROWS = [(1, b"abc", 0), (2, None, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("own_type", [False, True])
def test_blobs_are_bytes_in_and_out_and_stay_blobs(sql: Sql, own_type: bool) -> None:
    field = lance.blob_field("b") if own_type else MARKED
    schema = pa.schema([pa.field("id", pa.int64()), field, pa.field("k", pa.int64())])
    table = lp.create_table(f"{sql.root}/../blobs", schema, ["k"])
    values = lance.blob_array([b"abc", None]) if own_type else pa.array([b"abc", None], pa.large_binary())
    table.append(pa.table([pa.array([1, 2]), values, pa.array([0, 1])], schema=schema))

    frame = sql.spark.read.format("lancepart").load(table.root)
    assert dict(frame.dtypes)["b"] == "binary"
    assert sorted(tuple(row) for row in frame.collect()) == ROWS
    assert [row.id for row in frame.where("b IS NOT NULL AND length(b) = 3").collect()] == [1]
    frame.writeTo(f"{sql.name}.ns.copy").partitionedBy("k").create()
    assert sorted(sql("SELECT * FROM @.ns.copy")) == ROWS
    copy = sql.table("ns", "copy")
    assert copy.schema.field("b").metadata[b"lance-encoding:blob"] == b"true"
    leaf = next(each for each in copy.scan("k = 0").plan().leaves)
    held = lance.dataset(f"{copy.root}/{leaf.location}", version=leaf.read_version)
    assert held.take_blobs("b", indices=[0])[0].read() == b"abc"
    frame.selectExpr("id + 10 AS id", "b", "k").write.format("lancepart").mode("append").save(table.root)
    assert table.scan("id = 11 AND b IS NOT NULL").count() == 1


@pytest.mark.parametrize("own_type", [False, True])
def test_whether_there_are_blobs_is_found_out_without_their_bytes(sql: Sql, own_type: bool) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("b") if own_type else MARKED])
    table = lp.create_table(f"{sql.root}/../blobs", schema)
    held = [None if n % 4 == 0 else bytes(1 << 18) for n in range(12)]
    values = lance.blob_array(held) if own_type else pa.array(held, pa.large_binary())
    table.append(pa.table([pa.array(range(12)), values], schema=schema))

    frame = sql.spark.read.format("lancepart").load(table.root)
    assert frame.where("b IS NOT NULL").count() == 9
    frame.createOrReplaceTempView("blobs")
    assert sql("SELECT id FROM blobs WHERE b IS NULL ORDER BY id") == [(0,), (4,), (8,)]
    returned = {name: value for name, value in shown(sql.spark).items() if "returned from Python" in name}
    assert returned
    assert all(" B" in value or value.startswith("0") for value in returned.values())
    assert sorted(sql("SELECT id, length(b) FROM blobs WHERE b IS NOT NULL AND id < 6")) == [
        (n, 1 << 18) for n in (1, 2, 3, 5)
    ]
