"""What Spark's UI and EXPLAIN say of a scan: leaves, fragments, and bytes that are counted once."""

from __future__ import annotations

import contextlib
import io
import time
from typing import Any

import pytest

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
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.explain()
    assert "leaves 2 of 5" in printed.getvalue()

    assert len(frame.collect()) == 398
    first = shown(sql.spark)
    assert (first["leaves read"], first["leaves pruned"], first["fragments read"]) == ("2", "3", "2")
    assert int(first["planning time (ms)"].replace(",", "")) >= 0
    returned = [value for name, value in first.items() if "returned from Python" in name]
    frame.collect()
    again = shown(sql.spark)
    assert [value for name, value in again.items() if "returned from Python" in name] == returned
    assert returned


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
