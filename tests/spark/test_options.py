"""Options as users give them to Spark, and filters of many tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import lancepart as lp

from .warehouse import Sql


def test_misspelt_options_are_refused_and_deltas_are_understood(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(10)), "c": [f"x{n}" for n in range(10)]})
    table = lp.create_table(tmp_path / "t", rows.schema, ["bucket(2, id)"])
    first = table.append(rows)
    table.delete("id < 5")
    reader = spark.read.format("lancepart")

    assert reader.option("versionAsOf", first).load(table.root).count() == 10
    assert reader.option("versionAsOf", first).option("inferSchema", "true").load(f"file:{table.root}").count() == 10
    with pytest.raises(Exception, match=r"no option 'verison'; did you mean 'version'"):
        spark.read.format("lancepart").option("verison", first).load(table.root).count()
    with pytest.raises(Exception, match=r"did you mean 'replaceWhere'"):
        spark.range(1).write.format("lancepart").mode("overwrite").option("replacWhere", "id = 1").save(table.root)
    assert table.scan().count() == 5


@pytest.mark.slow
def test_long_filters_reach_the_table(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(10)), "c": [f"x{n}" for n in range(10)]})
    table = lp.create_table(tmp_path / "t", rows.schema, ["bucket(2, id)"])
    table.append(rows)
    frame = spark.read.format("lancepart").load(table.root)

    tests = " OR ".join(f"(id = {n} AND c = 'x{n}')" for n in range(400))
    assert frame.where(tests).count() == 10
    assert frame.where(f"id IN ({', '.join(map(str, range(3, 20_000)))})").count() == 7


def test_a_version_asked_of_a_loaded_table_is_refused(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id BIGINT) PARTITIONED BY (id)")
    sql("INSERT INTO @.ns.t VALUES (1)")
    first = sql.table("ns", "t").version
    sql("INSERT INTO @.ns.t VALUES (2)")

    with pytest.raises(Exception, match="versionAsOf"):
        sql.spark.read.option("version", first).table(f"{sql.name}.ns.t").collect()
    assert sql.spark.read.option("versionAsOf", first).table(f"{sql.name}.ns.t").count() == 1
    with pytest.raises(Exception, match="did you mean 'transactions'"):
        sql("CREATE TABLE @.ns.u (id BIGINT) PARTITIONED BY (id) TBLPROPERTIES (transaction = 'weak')")


def test_a_moment_is_one_of_the_sessions_time_zone(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id BIGINT) PARTITIONED BY (id)")
    sql("INSERT INTO @.ns.t VALUES (1)")
    moment = sql.table("ns", "t").inspect.snapshots().column("timestamp").to_pylist()[-1]
    sql("INSERT INTO @.ns.t VALUES (2)")
    text = f"{moment.astimezone(ZoneInfo(sql.spark.conf.get('spark.sql.session.timeZone'))):%Y-%m-%d %H:%M:%S.%f}"

    frame = sql.spark.read.option("timestampAsOf", text).table(f"{sql.name}.ns.t")
    assert frame.where("id > 0").collect() == [(1,)]
    assert sql(f"SELECT id FROM @.ns.t TIMESTAMP AS OF '{text}' WHERE id > 0") == [(1,)]
