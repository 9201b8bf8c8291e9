"""Rows changed, fragments put together and streams written on Spark, beside Spark's own Parquet, warm, two cores."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from typing import Any

import lancepart as lp
from benchmarks.report import Report, Timing, cpu_seconds, sized, timing
from benchmarks.spark import CONF, PEER, ROWS, measured, rows

PARTITIONS = 64
SMALL_PARTITIONS, SMALL_TASKS = 10, sized(50, 8)
TIMES = sized(3, 1)
BATCHES = sized(90, 8, "LANCEPART_BENCH_BATCHES", large=1_000)
BATCH_ROWS = 1_000
WARM, ENDS = sized(10, 2), sized(30, 5)
BROADCASTS = 10 << 20


def run(report: Report) -> None:
    conf = {**CONF, "spark.sql.autoBroadcastJoinThreshold": BROADCASTS}
    spark = lp.spark.session("local[2]", **conf, **{"spark.sql.streaming.numRecentProgressUpdates": 2 * BATCHES})
    folder = tempfile.mkdtemp()
    try:
        _merges(spark, folder, report)
        _compaction(spark, folder, report)
        _stream(spark, folder, report)
    finally:
        spark.stop()
        shutil.rmtree(folder)


def _merges(spark: Any, folder: str, report: Report) -> None:
    """One row in a hundred changed, in every partition; Parquet's partitions are read and written anew."""
    data = rows(spark, ROWS, PARTITIONS)
    ours, parquet = f"{folder}/ours", f"{folder}/parquet"
    data.write.format("lancepart").option("partition_by", "k").mode("append").save(ours)
    data.write.partitionBy("k").parquet(parquet)
    chosen = data.where("pmod(hash(id), 100) = 7").selectExpr("k", "id", "price + 1 AS price", "code", "text")
    chosen.write.parquet(f"{folder}/changed")
    fresh = rows(spark, ROWS // 1_000, PARTITIONS).selectExpr("k", f"id + {ROWS} AS id", "price", "code", "text")
    chosen.unionByName(fresh).write.parquet(f"{folder}/upserted")
    table = lp.open_table(ours)

    def merge(source: str, more: str) -> None:
        spark.read.parquet(f"{folder}/{source}").createOrReplaceTempView("source")
        update = "WHEN MATCHED THEN UPDATE SET price = s.price, code = s.code, text = s.text"
        spark.sql(f"MERGE INTO lancepart.`{ours}` t USING source s ON t.id = s.id {update} {more}").collect()

    def rewrite(source: str) -> None:
        new = spark.read.parquet(f"{folder}/{source}")
        touched = [row.k for row in new.select("k").distinct().collect()]
        old = spark.read.parquet(parquet).where(f"k IN ({', '.join(map(str, touched))})")
        both = old.join(new, "id", "left_anti").select(*new.columns).unionByName(new)
        overwriting = both.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
        overwriting.partitionBy("k").parquet(parquet)

    insert = "WHEN NOT MATCHED THEN INSERT *"
    size = f"{ROWS:,} rows in {PARTITIONS} partitions"
    measured(report, f"MERGE of 1 % of {size}", lambda: merge("changed", ""), lambda: rewrite("changed"))
    measured(report, "the same with inserts", lambda: merge("upserted", insert), lambda: rewrite("upserted"))
    assert table.scan().count() == spark.read.parquet(parquet).count()
    sums = "sum(price)", "sum(id)", "count(distinct id)"
    found = [each.selectExpr(*sums).collect() for each in (table.scan().to_spark(spark), spark.read.parquet(parquet))]
    assert found[0] == found[1]


def _compaction(spark: Any, folder: str, report: Report) -> None:
    """Many small fragments become one a partition; Parquet's files are read and written anew."""
    data = rows(spark, ROWS, SMALL_PARTITIONS).repartition(SMALL_TASKS)
    ours, parquet = f"{folder}/small", f"{folder}/small.parquet"
    data.write.format("lancepart").option("partition_by", "k").mode("append").save(ours)
    data.write.partitionBy("k").parquet(parquet)
    count = sum(each["fragments"] for each in lp.open_table(ours).inspect.partitions().to_pylist())

    def compact(root: str, session: Any = None) -> None:
        lp.open_table(root).maintenance.compact(target_rows=ROWS, spark=session, progress=False)

    def rewrite(root: str) -> None:
        spark.read.parquet(parquet).repartition("k").write.partitionBy("k").parquet(root)

    peer = _spent(folder, lambda: None, rewrite)
    for name, session in (("on Spark", spark), ("embedded", None)):
        mine = _spent(folder, lambda: ours, lambda root, session=session: compact(root, session))
        report.add(f"compaction of {count:,} fragments, {ROWS:,} rows, {name}", mine, peer, peer=PEER, unit="s")


def _spent(folder: str, source: Callable[[], str | None], action: Callable[[str], None]) -> Timing:
    """Some runs, each on a fresh copy, after one to warm up."""
    found, burnt = [], []
    for _ in range(TIMES + 1):
        place = f"{folder}/copy"
        if (template := source()) is not None:
            shutil.copytree(template, place)
        used, start = cpu_seconds(), time.perf_counter()
        action(place)
        found.append(time.perf_counter() - start)
        burnt.append(cpu_seconds() - used)
        shutil.rmtree(place)
    return timing(found[1:], sum(burnt[1:]) / TIMES)


def _stream(spark: Any, folder: str, report: Report) -> None:
    """Batches of a stream, the last ones beside the first; and beside Parquet's sink."""
    spent = {name: _batches(spark, folder, name) for name in ("lancepart", "parquet")}
    parts = {name: (timing(found[WARM : WARM + ENDS]), timing(found[-ENDS:])) for name, found in spent.items()}
    for at, which in enumerate(("first", "last")):
        name = f"batch of {BATCH_ROWS:,} rows of a stream, {which} {ENDS} of {BATCHES}"
        report.add(name, parts["lancepart"][at], parts["parquet"][at], peer=PEER, unit="ms")


def _batches(spark: Any, folder: str, name: str) -> list[int]:
    """How long each batch took, in milliseconds."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", BATCH_ROWS).load()
    data = source.selectExpr("value AS id", "cast(value % 8 as int) AS k", "concat('event ', value) AS text")
    writer = data.writeStream.format(name).option("checkpointLocation", f"{folder}/{name}.checkpoint")
    by = writer.option("partition_by", "k") if name == "lancepart" else writer.partitionBy("k")
    query = by.option("path", f"{folder}/{name}.sink").start()
    while (last := query.lastProgress) is None or last["batchId"] < BATCHES:
        assert query.isActive, query.exception()
        time.sleep(0.5)
    query.stop()
    done = {each["batchId"]: each["durationMs"]["triggerExecution"] for each in query.recentProgress}
    return [done[number] for number in sorted(done)]
