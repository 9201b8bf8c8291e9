"""Scans and joins on Spark: the same rows, every type, in as many tasks as there are cores."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.read.pieces import cut, leaf_bytes, packed
from lancepart.read.split import split_groups
from lancepart.spark.tasks import task_count
from lancepart.spark.types import arrow_schema, as_spark, spark_schema
from tests.support.tiers import one_in

pytest.importorskip("pyspark")


@pytest.fixture
def events(tmp_path: Path) -> lp.PartitionedTable:
    schema = pa.schema([("id", pa.int64()), ("country", pa.string()), ("day", pa.date32())])
    table = lp.create_table(tmp_path / "events", schema, ["country", "year(day)"])
    for start in (0, 50):
        table.append(
            pa.table(
                {
                    "id": range(start, start + 50),
                    "country": [("US", "FR", None)[i % 3] for i in range(50)],
                    "day": [date(2024 + i % 2, 1, 1) for i in range(50)],
                },
                schema=schema,
            )
        )
    return table


def _sorted(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=repr)


def _ours(found: Any) -> list[tuple[Any, ...]]:
    return _sorted(tuple(row.values()) for row in found.to_arrow().to_pylist())


def test_a_scan_gives_spark_the_same_rows(spark: Any, events: lp.PartitionedTable) -> None:
    scan = events.scan("country = 'US' AND id > 5", columns=["day", "id"])

    frame = scan.to_spark(spark)

    assert frame.columns == ["day", "id"]
    assert _sorted(frame.collect()) == _ours(scan)


@pytest.mark.slow
def test_a_scan_has_as_many_tasks_as_there_are_cores(spark: Any, events: lp.PartitionedTable) -> None:
    assert events.scan().to_spark(spark).rdd.getNumPartitions() == 2
    assert events.scan().to_spark(spark, tasks=4).rdd.getNumPartitions() == 4
    assert task_count(spark) == 2
    with pytest.raises(InvalidInputError, match="tasks is 0"):
        task_count(spark, 0)


def test_a_scan_of_nothing_is_an_empty_frame(spark: Any, events: lp.PartitionedTable) -> None:
    assert events.scan("country = 'XX'").to_spark(spark).collect() == []


@pytest.mark.slow
def test_a_limit_holds_on_spark_too(spark: Any, events: lp.PartitionedTable) -> None:
    assert events.scan(limit=7).to_spark(spark).count() == 7


@pytest.mark.slow
def test_a_frame_stays_at_its_snapshot(spark: Any, events: lp.PartitionedTable) -> None:
    frame = events.scan().to_spark(spark)
    events.delete("id < 90")

    assert frame.count() == 100


def test_large_leaves_are_split_by_fragments(spark: Any, tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("k", pa.int32())]), ["k"])
    for start in range(0, 400, 100):
        table.append(pa.table({"id": pa.array(range(start, start + 100)), "k": pa.array([1] * 100, pa.int32())}))
    scan = table.scan("id % 2 = 0")

    leaves = [task.leaf for task in scan.tasks()]
    pieces = cut(scan.root, leaves, sum(map(leaf_bytes, leaves)) // 2)

    assert [piece.fragments for piece in pieces] == [(0,), (1,), (2,), (3,)]
    assert [[piece.fragments for piece in task] for task in packed(pieces, 2)] == [[(0, 2)], [(1, 3)]]
    assert _sorted(scan.to_spark(spark).collect()) == _ours(scan)
    assert table.scan(columns=["k"]).to_spark(spark).count() == 400


@pytest.mark.parametrize("how", one_in(3, ["inner", "left", "right", "full", "semi", "anti"]))
def test_a_join_gives_spark_the_same_rows(spark: Any, tmp_path: Path, how: str) -> None:
    orders = lp.create_table(
        tmp_path / "orders", pa.schema([("n", pa.int64()), ("customer", pa.int32())]), ["bucket(customer, 16)"]
    )
    customers = lp.create_table(
        tmp_path / "customers", pa.schema([("id", pa.int64()), ("name", pa.string())]), ["bucket(id, 8)"]
    )
    orders.append([{"n": i, "customer": None if i % 9 == 0 else i % 40} for i in range(200)])
    customers.append([{"id": i, "name": f"c{i}"} for i in range(20, 60)])
    join = orders.join(customers, on=[("customer", "id")], how=how, where="n IS NULL OR n < 150")

    frame = join.to_spark(spark)

    assert frame.rdd.getNumPartitions() == 2
    assert frame.columns == join.schema.names
    assert _sorted(frame.collect()) == _ours(join)


def test_a_large_group_is_split_and_still_right(spark: Any, tmp_path: Path) -> None:
    facts = lp.create_table(tmp_path / "f", pa.schema([("k", pa.int32()), ("v", pa.int64())]), ["k"])
    names = lp.create_table(tmp_path / "n", pa.schema([("k", pa.int32()), ("name", pa.string())]), ["k"])
    for start in range(4):
        facts.append([{"k": 1, "v": start * 5_000 + i} for i in range(5_000)])
    names.append([{"k": 1, "name": "one"}])
    join = facts.join(names, on=["k"], how="left")

    assert len(split_groups(join.tasks(), 2)) == 2
    assert join.to_spark(spark).count() == join.to_arrow().num_rows == 20_000


@pytest.mark.slow
def test_every_type_arrives_in_spark(spark: Any, tmp_path: Path) -> None:
    columns = {
        "u8": pa.array([255, None], pa.uint8()),
        "u64": pa.array([2**64 - 1, None], pa.uint64()),
        "half": pa.array([1.5, None], pa.float32()).cast(pa.float16()),
        "text": pa.array(["ä", None], pa.large_string()),
        "coded": pa.array(["x", None]).dictionary_encode(),
        "fixed": pa.array([b"abc", None], pa.binary(3)),
        "nanos": pa.array([-1, None], pa.timestamp("ns")),
        "zoned": pa.array([1_700_000_000, None], pa.timestamp("s", "Europe/Paris")),
        "date": pa.array([date(2025, 12, 10), None], pa.date64()),
        "clock": pa.array([3_600, None], pa.time32("s")),
        "span": pa.array([90, None], pa.duration("s")),
        "vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
        "nested": pa.array(
            [{"a": 7, "b": ["q"]}, None], pa.struct([("a", pa.uint16()), ("b", pa.list_(pa.large_string()))])
        ),
        "money": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
    }
    rows = pa.table({"k": pa.array([1, 2], pa.int32()), **columns})
    table = lp.create_table(tmp_path / "t", rows.schema, ["k"])
    table.append(rows)

    first, second = sorted(table.scan().to_spark(spark).collect(), key=lambda row: row["k"])

    assert (first["u8"], first["u64"], first["half"], first["text"], first["coded"]) == (255, 2**64 - 1, 1.5, "ä", "x")
    assert (bytes(first["fixed"]), first["vector"], first["money"]) == (b"abc", [1.0, 2.0], Decimal("1.50"))
    assert first["nanos"].isoformat() == "1969-12-31T23:59:59.999999"
    assert first["date"] == date(2025, 12, 10)
    assert (first["clock"].hour, first["span"].total_seconds()) == (1, 90)
    assert (first["nested"]["a"], first["nested"]["b"]) == (7, ["q"])
    assert table.scan("k = 1").to_spark(spark).selectExpr("unix_seconds(zoned)").collect()[0][0] == 1_700_000_000
    assert all(value is None for name, value in second.asDict().items() if name != "k")


def test_a_type_that_spark_lacks_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedOperationError, match="decimal256"):
        spark_schema(pa.schema([("d", pa.decimal256(50, 2))]))


@pytest.mark.slow
def test_a_batch_in_sparks_types_already_is_left_alone() -> None:
    batch = pa.record_batch({"a": [1, 2], "b": ["x", None]})

    assert as_spark(batch, arrow_schema(spark_schema(batch.schema))) == batch


def test_storage_options_show_nowhere(spark: Any, tmp_path: Path) -> None:
    table = lp.create_table(
        tmp_path / "t", pa.schema([("k", pa.int32())]), ["k"], storage_options={"aws_secret_access_key": "hush-hush"}
    )
    table.append([{"k": 1}])
    join = table.join(table, on=["k"])
    frame = join.to_spark(spark)

    plan = frame._jdf.queryExecution().toString()

    assert "hush-hush" not in plan + join.explain() + repr(join) + repr(join.tasks()) + table.scan().explain()
    assert frame.count() == 1


def test_leaves_of_unknown_size_are_dealt_out_one_by_one(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("k", pa.int32())]), ["k"], transactions="weak")
    table.append([{"k": i} for i in range(4)])

    pieces = cut(table.scan().root, [task.leaf for task in table.scan().tasks()], 0)

    assert [piece.fragments for piece in pieces] == [None] * 4
    assert sorted(map(len, packed(pieces, 2))) == [2, 2]
