"""What Spark's UI and EXPLAIN say of a scan: leaves, fragments, and bytes that are counted once."""

from __future__ import annotations

import time
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.spark.elsewhere import explained
from tests.spark.warehouse import Sql

pytest.importorskip("pyspark")


def shown(spark: Any) -> dict[str, str]:
    """The metrics of the last query, by their names."""
    store = spark._jsparkSession.sharedState().statusStore()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        runs = store.executionsList()
        last = runs.apply(runs.size() - 1)
        if last.completionTime().isDefined():
            values = store.executionMetrics(last.executionId())
            each = [last.metrics().apply(n) for n in range(last.metrics().size())]
            return {item.name(): values.get(item.accumulatorId()).get() for item in each if _has(values, item)}
    raise AssertionError("the query does not end")


def _has(values: Any, item: Any) -> bool:
    return bool(values.contains(item.accumulatorId()))


@pytest.mark.slow
def test_a_scan_says_what_it_reads_and_why(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id BIGINT, k BIGINT) PARTITIONED BY (k)")
    sql("INSERT INTO @.ns.t SELECT /*+ COALESCE(1) */ id, id % 5 FROM range(1000)")
    frame = sql.spark.sql(f"SELECT id FROM {sql.name}.ns.t WHERE k IN (1, 2) AND id > 3")
    assert "leaves 2 of 5 (k: (partition_field_k >= 1 AND partition_field_k <= 2))" in explained(frame)
    unpruned = sql.spark.sql(f"SELECT id FROM {sql.name}.ns.t WHERE id > 3")
    assert "leaves 5 of 5 (k: not pruned, the filter asks nothing of k" in explained(unpruned)
    assert len(frame.collect()) == 398
    first = shown(sql.spark)
    assert (first["leaves read"], first["leaves pruned"], first["fragments read"]) == ("2", "3", "2")
    assert int(first["planning time (ms)"].replace(",", "")) >= 0
    assert first["rows after Lance's filter"] == "398"
    everything = sum(sql.table("ns", "t").inspect.partitions().column("bytes").to_pylist())
    assert 0 < number(first["bytes of files read"]) < everything
    returned = [value for name, value in first.items() if "returned from Python" in name]
    frame.collect()
    again = shown(sql.spark)
    assert [value for name, value in again.items() if "returned from Python" in name] == returned
    assert returned


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.slow
def test_a_write_says_what_it_wrote(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id BIGINT, k BIGINT) PARTITIONED BY (k)")
    name = f"{sql.name}.ns.t"
    sql.spark.range(0, 1000, 1, 1).selectExpr("id", "id % 5 AS k").writeTo(name).append()
    made = shown(sql.spark)
    assert [number(made[f"{what} written"]) for what in ("rows", "files")] == [1000, 5]
    size = sum(sql.table("ns", "t").inspect.partitions().column("bytes").to_pylist())
    assert number(made["bytes written"]) == size
    assert made["rows removed"] == "0"
    sql.spark.sql(f"UPDATE {name} SET id = id + 5000 WHERE id * 2 < 20")
    changed = shown(sql.spark)
    assert [changed["rows written"], changed["rows removed"]] == ["10", "10"]
    lance.write_dataset(pa.table({"id": range(10)}), f"{sql.root}/plain.lance")
    sql.spark.range(0, 7, 1, 1).writeTo(f"{sql.name}.plain").append()
    assert [shown(sql.spark)[f"{what} written"] for what in ("rows", "files")] == ["7", "1"]


def test_lineage_names_a_table_by_its_place(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id BIGINT) TBLPROPERTIES (mine = 'yes')")
    place = sql.table("ns", "t").root

    def named(frame: Any) -> list[str]:
        table = frame._jdf.queryExecution().analyzed().collectLeaves().apply(0).table()
        found = table.properties()
        return [found.get(f"openlineage.dataset.{each}") for each in ("namespace", "name")]

    assert named(sql.spark.table(f"{sql.name}.ns.t")) == ["file", place]
    assert named(sql.spark.read.format("lancepart").load(place)) == ["file", place]
    assert "openlineage" not in str(sql("SHOW CREATE TABLE @.ns.t")) + str(sql("SHOW TBLPROPERTIES @.ns.t"))
    sql("ALTER TABLE @.ns.t SET TBLPROPERTIES ('openlineage.dataset.name' = 'orders')")
    assert named(sql.spark.table(f"{sql.name}.ns.t")) == ["file", "orders"]
