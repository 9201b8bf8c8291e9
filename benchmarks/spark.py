"""Reads, writes and joins on Spark beside Spark's own Hive-partitioned Parquet, on the same rows, warm, two cores."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import lancepart as lp
from benchmarks.report import Report, sized

ROWS = sized(3_000_000, 200_000, "LANCEPART_BENCH_SPARK_ROWS", large=20_000_000)
MANY = sized(500, 100, large=10_000)
TIMES = sized(3, 1)
OFTEN = sized(2, 1)
PEER = "Spark, Parquet"
HEADLINES = ("into 500 partitions", "one partition", "join on 16 and 8 buckets by SQL", "MERGE")
CONF = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "4g",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.showConsoleProgress": "false",
}


def run(report: Report) -> None:
    spark = lp.spark.session("local[2]", **CONF)
    folder = tempfile.mkdtemp()
    try:
        _ingest(spark, folder, report)
        _scans(spark, folder, report)
        _joins(spark, folder, report)
    finally:
        spark.stop()
        shutil.rmtree(folder)


def rows(spark: Any, count: int, partitions: int) -> Any:
    """Rows as wide as an event, cached so that making them is not measured."""
    text = "concat('event number ', cast(id as string)) AS text"
    columns = [
        f"cast(id % {partitions} as int) AS k",
        "id",
        "id * 0.5D AS price",
        "cast(id % 1000 as int) AS code",
        text,
    ]
    return spark.range(0, count, 1, 2).selectExpr(*columns)


def measured(report: Report, name: str, ours: Callable[[], Any], peer: Callable[[], Any], often: int = 1) -> None:
    """Some runs of each in turn, after some to warm up; more of both for what is quick."""
    headline = any(each in name for each in HEADLINES)
    report.compare(name, ours, {PEER: peer}, runs=often * TIMES, warm=often, unit="s", headline=headline)


def _drained(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _ingest(spark: Any, folder: str, report: Report) -> None:
    for partitions in (64, MANY):
        data = rows(spark, ROWS, partitions)
        ours, parquet = f"{folder}/ours{partitions}", f"{folder}/parquet{partitions}"

        def write_ours(data: Any = data, root: str = ours) -> None:
            shutil.rmtree(root, ignore_errors=True)
            data.write.format("lancepart").option("partition_by", "k").mode("append").save(root)

        def write_parquet(data: Any = data, root: str = parquet) -> None:
            shutil.rmtree(root, ignore_errors=True)
            data.write.partitionBy("k").parquet(root)

        measured(report, f"ingest of {ROWS:,} rows into {partitions} partitions", write_ours, write_parquet)


def _scans(spark: Any, folder: str, report: Report) -> None:
    def ours(partitions: int = 64) -> Any:
        return spark.read.format("lancepart").load(f"{folder}/ours{partitions}")

    def parquet(partitions: int = 64) -> Any:
        return spark.read.parquet(f"{folder}/parquet{partitions}")

    cases: dict[str, Callable[[Any], Any]] = {
        "one column summed": lambda table: table().selectExpr("sum(price)").collect(),
        "all columns": lambda table: _drained(table()),
        "group by the partition column": lambda table: table().groupBy("k").count().collect(),
        "group by another column": lambda table: table().groupBy("code").sum("price").collect(),
        f"one partition of {MANY:,}": lambda table: _drained(table(MANY).where("k = 7")),
        "a tenth of the rows by a range": lambda table: (
            table().where(f"id < {ROWS // 10}").selectExpr("sum(price)").collect()
        ),
    }
    for name, case in cases.items():
        measured(report, name, lambda case=case: case(ours), lambda case=case: case(parquet), OFTEN)


def _joins(spark: Any, folder: str, report: Report) -> None:
    large = spark.range(0, ROWS, 1, 2).selectExpr("id", f"id % {ROWS // 10} AS other", "id * 0.5D AS price")
    small = spark.range(0, ROWS // 10, 1, 2).selectExpr("id AS other", "concat('name ', id) AS name")
    for name, data, buckets in (("large", large, 16), ("small", small, 8)):
        data.write.format("lancepart").option("partition_by", f"bucket(other, {buckets})").save(f"{folder}/{name}")
        data.write.parquet(f"{folder}/{name}.parquet")
        spark.read.format("lancepart").load(f"{folder}/{name}").createOrReplaceTempView(f"l_{name}")
        spark.read.parquet(f"{folder}/{name}.parquet").createOrReplaceTempView(f"p_{name}")
    query = "SELECT count(*), sum(price), sum(length(name)) FROM {0}_large JOIN {0}_small USING (other)"
    tables = lp.open_table(f"{folder}/large"), lp.open_table(f"{folder}/small")

    def by_sql(prefix: str) -> Any:
        return spark.sql(query.format(prefix)).collect()

    def by_table() -> Any:
        joined = tables[0].join(tables[1], on=["other"], columns=["price", "name"]).to_spark(spark)
        return joined.selectExpr("count(*)", "sum(price)", "sum(length(name))").collect()

    assert by_sql("l") == by_sql("p") == by_table()
    measured(report, "join on 16 and 8 buckets by SQL", lambda: by_sql("l"), lambda: by_sql("p"), OFTEN)
    measured(report, "join on 16 and 8 buckets by table.join", by_table, lambda: by_sql("p"), OFTEN)
