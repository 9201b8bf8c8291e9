"""Rows that reach Spark in columns, many batches of them: the same values as by Parquet, whoever reads them there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lancepart as lp
from tests.spark.test_joins import plan_of
from tests.support.tiers import slow

ROWS = 20_000
START = datetime(2024, 1, 1)


def _sparse(values: list[Any], every: int) -> list[Any]:
    return [None if number % every == 0 else value for number, value in enumerate(values)]


def _data() -> pa.Table:
    """Values at the ends of their types, and a NULL now and then, but not where whole batches have none."""
    numbers = range(ROWS)
    huge = [Decimal(10**37 - n) if n % 3 else -Decimal(10**20 + n) for n in numbers]
    edge = [Decimal(2**63 - 1 - n % 2) * (1 if n % 4 else -1) for n in numbers]
    columns = {
        "k": pa.array([n % 2 for n in numbers], pa.int32()),
        "flag": pa.array(_sparse([n % 7 == 0 for n in numbers], 5)),
        "whole": pa.array([n % 2 == 0 for n in numbers]),
        "i8": pa.array(_sparse([n % 256 - 128 for n in numbers], 11), pa.int8()),
        "i16": pa.array([n % 65536 - 32768 for n in numbers], pa.int16()),
        "i64": pa.array(_sparse([(-1) ** n * (2**62 + n) for n in numbers], 3), pa.int64()),
        "f32": pa.array([n / 3 for n in numbers], pa.float32()),
        "f64": pa.array(_sparse([n / 7 if n % 2 else float("-inf") for n in numbers], 13)),
        "small": pa.array(_sparse([Decimal(n - 9_999).scaleb(-2) for n in numbers], 6), pa.decimal128(9, 2)),
        "edge": pa.array(_sparse(edge, 17), pa.decimal128(20, 0)),
        "huge": pa.array(huge, pa.decimal128(38, 0)),
        "day": pa.array([n - 10_000 for n in numbers], pa.int32()).cast(pa.date32()),
        "ntz": pa.array(_sparse([START + timedelta(microseconds=n) for n in numbers], 9), pa.timestamp("us")),
        "ts": pa.array([START.replace(tzinfo=UTC) - timedelta(days=n) for n in numbers], pa.timestamp("us", "UTC")),
        "text": pa.array(_sparse(["" if n % 4 == 0 else "é\U0001f600" * (n % 5) for n in numbers], 7)),
        "raw": pa.array(_sparse([bytes([n % 256]) * (n % 3) for n in numbers], 4), pa.binary()),
        "nums": pa.array(_sparse([list(range(n % 4)) for n in numbers], 8), pa.list_(pa.int32())),
        "pair": pa.array(_sparse([{"x": n, "y": str(n)} for n in numbers], 10)),
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """A table of some large leaves, and its like."""
    folder: Path = tmp_path_factory.mktemp("columns")
    data = _data()
    table = lp.create_table(str(folder / "table"), data.schema, ["k"])
    table.append(data)
    table.delete("i16 % 10 = 3")
    pq.write_table(table.scan().to_arrow(), folder / "rows.parquet")
    return spark.read.format("lancepart").load(table.root), spark.read.parquet(str(folder / "rows.parquet"))


def _run(frame: Any) -> str:
    """The plan by which a query was run."""
    frame.collect()
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.mark.slow
@pytest.mark.parametrize("generated", ["true", slow("false")])
def test_every_value_is_the_one_that_parquet_gives(both: tuple[Any, Any], spark: Any, generated: str) -> None:
    key = "spark.sql.codegen.wholeStage"
    spark.conf.set(key, generated)
    try:
        counted = [frame.groupBy(*frame.columns).count() for frame in both]
        assert counted[0].exceptAll(counted[1]).count() == counted[1].exceptAll(counted[0]).count() == 0
        assert both[0].where("text IS NOT NULL").count() == both[1].where("text IS NOT NULL").count() > ROWS // 2
    finally:
        spark.conf.unset(key)


@pytest.mark.slow
def test_rows_stay_what_they_are_when_the_next_batch_comes(both: tuple[Any, Any]) -> None:
    ours, theirs = (
        [frame.orderBy("i16", "k").limit(9_000).collect(), frame.cache().orderBy("i16", "k").collect()]
        for frame in both
    )
    for frame in both:
        frame.unpersist()

    assert ours == theirs


@pytest.mark.slow
def test_spark_is_given_columns(both: tuple[Any, Any]) -> None:
    assert "ColumnarToRow" in _run(both[0].selectExpr("sum(f32)"))


@pytest.mark.slow
def test_what_was_planned_here_is_read_in_columns_too(spark: Any, tmp_path: Path) -> None:
    table = lp.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int64()), ("text", pa.string())]), ["id"])
    table.append([{"id": n % 3, "text": str(n)} for n in range(9)])

    scanned = table.scan("id > 0").to_spark(spark)
    joined = table.join(table, on=["id"]).to_spark(spark)

    assert sorted(scanned.select("text").collect()) == [(str(n),) for n in (1, 2, 4, 5, 7, 8)]
    assert (scanned.count(), joined.count(), joined.select("text_right").distinct().count()) == (6, 27, 9)
    assert scanned.union(scanned).where("id = 1").count() == 6
    assert table.scan("id > 5").to_spark(spark).collect() == []
    assert "ColumnarToRow" in _run(joined)


@pytest.mark.slow
def test_a_plan_that_is_handed_over_is_not_shown(spark: Any, tmp_path: Path) -> None:
    root = str(tmp_path / "t")
    lp.create_table(root, pa.schema([("id", pa.int64())]), ["id"]).append([{"id": n} for n in range(3)])
    table = lp.open_table(root, storage_options={"aws_secret_access_key": "hush-hush"})
    frame = table.scan().to_spark(spark)

    shown = "".join(
        plan_of(frame.where("id = 1").join(frame, "id"), mode) for mode in ("extended", "formatted", "cost")
    )

    assert frame.count() == 3
    assert "lancepart.plan" not in shown
    assert "hush" not in shown
    assert max(map(len, shown.split())) < 300


@pytest.mark.slow
def test_small_rows_and_large_ones_after_them_arrive_whole(spark: Any, tmp_path: Path) -> None:
    text = "CASE WHEN id < 15000 THEN cast(id AS string) ELSE repeat(cast(id % 10 AS string), 20000) END AS text"
    data = spark.range(0, 15_200, 1, 2).selectExpr("id", "cast(id % 2 AS int) AS k", text)
    for name, schema in (("plain", data), ("bytes", data.selectExpr("*", "cast(text AS binary) AS raw"))):
        schema.write.format("lancepart").option("partition_by", "k").save(str(tmp_path / name))
        found = spark.read.format("lancepart").load(str(tmp_path / name))

        assert found.exceptAll(schema).count() == schema.exceptAll(found).count() == 0
