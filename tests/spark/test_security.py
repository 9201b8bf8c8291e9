"""Attacks on Spark: what users, catalogs and tables supply is data, and credentials stay with those who gave them."""

from __future__ import annotations

import base64
import contextlib
import json
import pickle
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.spark.handover import COLUMNS, PLAN, plan_options
from lancepart.spark.tasks import scan_plan
from lancepart.spark.types import spark_schema
from tests.spark.warehouse import Sql
from tests.support.attacks import SECRET, Touch
from tests.support.tiers import slow

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32())])
DELETE = '{"kind":"request","id":1,"op":"delete","body":{"where":[]},"options":{}}'


@pytest.fixture
def table(root: str) -> lp.PartitionedTable:
    made = lp.create_table(root, SCHEMA, ["k"])
    made.append([{"id": n, "k": n % 2} for n in range(6)])
    return made


def quoted(options: dict[str, str]) -> str:
    """Options as SQL spells them."""
    return ", ".join(f"""'{key}' '{value.replace("'", "''")}'""" for key, value in options.items())


def refused(action: Callable[[], Any], *words: str) -> str:
    """The error that an action ends in."""
    with pytest.raises(Exception) as found:
        action()
    text = str(found.value)
    assert any(word in text for word in words), text
    return text


def columns() -> str:
    return str(spark_schema(SCHEMA).json())


def test_no_option_is_unpickled(spark: Any, table: lp.PartitionedTable, tmp_path: Path) -> None:
    mark = tmp_path / "touched"
    evil = pickle.dumps(Touch(mark))
    kind = {
        "type": "udt",
        "class": "java.lang.Object",
        "pyClass": "json.Nothing",
        "serializedClass": base64.b64encode(evil).decode(),
        "sqlType": "double",
    }
    told = json.dumps({"type": "struct", "fields": [{"name": "id", "type": kind, "nullable": True, "metadata": {}}]})
    packed = base64.b64encode(zlib.compress(evil)).decode()
    good = plan_options(scan_plan(table.scan()), [])[PLAN]

    for plan, shown in ((packed, columns()), (good, told)):
        options = quoted({"path": table.root, PLAN: plan, COLUMNS: shown})
        view = f"CREATE OR REPLACE TEMPORARY VIEW evil USING lancepart OPTIONS ({options})"
        refused(lambda view=view: (spark.sql(view), spark.sql("SELECT * FROM evil").collect()), PLAN, COLUMNS)  # type: ignore[misc]

    assert not mark.exists()


@pytest.mark.parametrize("key", ["LANCEPART.Request", slow("lancepart.request"), slow("lancepart.anything")])
def test_a_user_asks_no_questions(spark: Any, table: lp.PartitionedTable, sql: Sql, key: str) -> None:
    options = {"path": table.root, key: DELETE}
    data = spark.createDataFrame([(9, 1)], "id long, k int")
    sql("CREATE TABLE @.t (id BIGINT, k INT) PARTITIONED BY (k)")
    sql("INSERT INTO @.t VALUES (1, 1)")
    view = f"CREATE OR REPLACE TEMPORARY VIEW evil USING lancepart OPTIONS ({quoted(options)})"
    written = data.write.format("lancepart").mode("overwrite")
    attacks = [
        lambda: spark.read.format("lancepart").option(key, DELETE).load(table.root).schema,
        lambda: (spark.sql(view), spark.sql("SELECT * FROM evil").collect()),
        lambda: written.option(key, DELETE).save(table.root),
        lambda: sql(f"SELECT * FROM @.t WITH (`{key}` = '{DELETE}')"),
        lambda: spark.read.option(key, DELETE).table(f"{sql.name}.t").collect(),
        lambda: sql(f"INSERT INTO @.t WITH (`{key}` = '{DELETE}') VALUES (2, 2)"),
        lambda: data.writeTo(f"{sql.name}.t").option(key, DELETE).append(),
    ]

    for attack in attacks:
        refused(attack, "lancepart's own")

    assert lp.open_table(table.root).scan().count() == 6
    assert len(sql("SELECT * FROM @.t")) == 1


def test_properties_of_a_catalogs_table_are_no_options(spark: Any, sql: Sql, table: lp.PartitionedTable) -> None:
    sql("CREATE TABLE @.t (id BIGINT, k INT) PARTITIONED BY (k)")
    sql("INSERT INTO @.t VALUES (1, 1)")
    for key in ("lancepart.request", "LANCEPART.Request", "option.lancepart.request"):
        with contextlib.suppress(Exception):
            sql(f"ALTER TABLE @.t SET TBLPROPERTIES ('{key}' = '{DELETE}')")
        with contextlib.suppress(Exception):
            sql(f"CREATE TABLE @.s (id BIGINT) USING lancepart PARTITIONED BY (id) OPTIONS ('{key}' = '{DELETE}')")

    assert len(sql("SELECT * FROM @.t")) == 1
    refused(lambda: sql(f"ALTER TABLE @.t SET TBLPROPERTIES ('LancePart.request' = '{DELETE}')"), "lancepart's own")


def test_a_table_of_sparks_own_catalog_asks_nothing(spark: Any, table: lp.PartitionedTable) -> None:
    options = quoted({"path": table.root, "lancepart.request": DELETE})

    spark.sql("CREATE DATABASE spark_catalog.bad")
    try:
        made = f"CREATE TABLE spark_catalog.bad.evil USING lancepart OPTIONS ({options})"
        refused(lambda: (spark.sql(made), spark.table("spark_catalog.bad.evil").collect()), "lancepart's own")
    finally:
        spark.sql("DROP DATABASE spark_catalog.bad CASCADE")

    assert lp.open_table(table.root).scan().count() == 6


@pytest.mark.parametrize("name", ["LANCEPART-Planner", slow("lancepart-planner"), slow("io.lancepart.spark.Planner")])
def test_the_jars_way_to_python_is_closed_to_users(spark: Any, table: lp.PartitionedTable, name: str) -> None:
    assert spark.read.format("lancepart").load(table.root).count() == 6
    options = {"lancepart.request": DELETE}
    rows = spark.createDataFrame([(9, 1)], "id long, k int")
    attacks = [
        lambda: spark.read.format(name).options(**options).load(table.root).schema,
        lambda: spark.read.format(name).schema("id long").options(**options).load(table.root).collect(),
        lambda: rows.write.format(name).mode("append").options(**options).save(table.root),
        lambda: spark.readStream.format(name).options(**options).load(table.root).schema,
        lambda: spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW evil USING `{name}` OPTIONS (path '{table.root}', {quoted(options)})"
        ),
        lambda: spark.sql(f"SELECT * FROM `{name}`.`{table.root}`").collect(),
    ]

    for attack in attacks:
        refused(attack, "lancepart's own", "does not support", "UNSUPPORTED", "not supported", "NOT_FOUND")

    assert lp.open_table(table.root).scan().count() == 6


def test_a_statement_goes_nowhere_else_with_a_catalogs_credentials(
    spark: Any, sql: Sql, table: lp.PartitionedTable
) -> None:
    sql("CREATE TABLE @.t (id BIGINT, k INT) PARTITIONED BY (k)")
    sql("INSERT INTO @.t VALUES (1, 1)")
    data = spark.createDataFrame([(9, 1)], "id long, k int")
    for key, value in (("path", table.root), ("PATH", table.root), ("Storage.aws_endpoint", "http://127.0.0.1:1")):
        refused(lambda: sql(f"SELECT * FROM @.t WITH (`{key}` = '{value}')"), "belongs to the table")  # noqa: B023
        refused(lambda: data.writeTo(f"{sql.name}.t").option(key, value).append(), "belongs to the table")  # noqa: B023

    assert lp.open_table(table.root).scan().count() == 6


@pytest.mark.slow
def test_a_session_makes_no_table_with_the_options_of_another(spark: Any, tmp_path: Path) -> None:
    place, other = str(tmp_path / "new"), spark.newSession()
    options = {"storage.account_key": SECRET, "partition_by": "k"}
    rows = spark.createDataFrame([(9, 1)], "id long, k int")
    made = f"CREATE TABLE lancepart.`{place}` USING lancepart AS SELECT 9L AS id, 1 AS k"
    for session in (other, spark):
        rows.write.format("lancepart").options(**options).save(place)
        shutil.rmtree(place)
        shown = refused(lambda session=session: session.sql(made), "partition_by")  # type: ignore[misc]

        assert SECRET not in shown
        assert not Path(place).exists()


def test_what_a_write_is_told_it_is_told_where_it_makes_a_table(spark: Any, table: lp.PartitionedTable) -> None:
    rows = spark.createDataFrame([(9, 1)], "id long, k int")
    mine = rows.write.format("lancepart").options(**{"storage.account_key": SECRET, "partition_by": "k"})
    mine.mode("ignore").save(table.root)

    assert SECRET not in refused(lambda: mine.mode("errorifexists").save(table.root), "ALREADY_EXISTS")
    assert lp.open_table(table.root).scan().count() == 6


@contextlib.contextmanager
def logged(spark: Any) -> Iterator[Any]:
    """What the driver logs from INFO up."""
    jvm = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    context, told = log4j.LogManager.getContext(False), jvm.java.io.StringWriter()
    layout = log4j.core.layout.PatternLayout.createDefaultLayout()
    appender = log4j.core.appender.WriterAppender.createAppender(layout, None, told, "told", False, True)
    appender.start()
    root = context.getConfiguration().getRootLogger()
    before, info = root.getLevel(), log4j.Level.INFO
    root.addAppender(appender, info, None)
    root.setLevel(info)
    context.updateLoggers()
    try:
        yield told
    finally:
        root.setLevel(before)
        root.removeAppender("told")
        context.updateLoggers()


def test_credentials_show_nowhere(spark: Any, sql: Sql, table: lp.PartitionedTable, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.catalog.mute", "io.lancepart.spark.LanceCatalog")
    spark.conf.set("spark.sql.catalog.mute.warehouse", sql.root)
    spark.conf.set("spark.sql.catalog.mute.storage.account_key", SECRET)
    options = {"storage.account_key": SECRET}
    statements = [
        "INSERT INTO mute.ns.t VALUES (7, 7)",
        "UPDATE mute.ns.t SET k = 2 WHERE id * 2 = 4",
        "DELETE FROM mute.ns.t WHERE id * 3 = 3",
        "DELETE FROM mute.ns.t WHERE k = 9",
        "MERGE INTO mute.ns.t t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET k = 8 "
        "WHEN NOT MATCHED THEN INSERT *",
        "SELECT count(*), max(t.id) FROM mute.ns.t t JOIN s ON t.id = s.id WHERE t.k > 1",
        "SELECT * FROM mute.ns.t.snapshots",
        "CALL mute.system.compact(table => 'ns.t')",
        "CREATE OR REPLACE TABLE mute.ns.u PARTITIONED BY (k) AS SELECT * FROM s",
        "DESCRIBE EXTENDED mute.ns.t",
        "SHOW CREATE TABLE mute.ns.t",
        "SHOW TBLPROPERTIES mute.ns.t",
        "DESCRIBE NAMESPACE EXTENDED mute.ns",
        "SELECT * FROM mute.ns.nothing",
        "SELECT * FROM s WHERE assert_true(k > 99) IS NULL",
    ]
    shown: list[str] = []
    with logged(spark) as log:
        sql("CREATE TABLE @.ns.t (id BIGINT, k INT) PARTITIONED BY (k)")
        frame = spark.read.format("lancepart").options(**options).load(table.root)
        frame.createOrReplaceTempView("s")
        for statement in statements:
            for prefix in ("EXPLAIN EXTENDED ", ""):
                try:
                    shown += [str(row) for row in spark.sql(prefix + statement).collect()]
                except Exception as error:
                    shown.append(str(error))
        frame.write.format("lancepart").options(**options, partition_by="k").save(str(tmp_path / "copy"))
        handed = lp.open_table(table.root, storage_options={"account_key": SECRET}).scan().to_spark(spark)
        shown += [handed._jdf.queryExecution().toString(), str(handed.collect()), repr(handed)]
        shown += [frame._jdf.queryExecution().toString(), str(frame._jdf.queryExecution().logical().prettyJson())]
    runs = spark._jsparkSession.sharedState().statusStore().executionsList()
    shown += [runs.apply(n).physicalPlanDescription() + runs.apply(n).description() for n in range(runs.size())]

    assert len(shown) > 40
    assert "LanceScan" in "".join(shown) or "lancepart" in "".join(shown)
    assert "SparkSqlParser" in log.toString() or "CodeGenerator" in log.toString() or "DAGScheduler" in log.toString()
    assert [line for text in (*shown, log.toString()) for line in text.splitlines() if SECRET in line] == []


def test_credentials_are_no_properties_of_a_table(sql: Sql) -> None:
    sql("CREATE TABLE @.t (id BIGINT) PARTITIONED BY (id)")
    for key in ("storage.account_key", "Storage.account_key", "option.storage.account_key"):
        made = f"CREATE TABLE @.s (id BIGINT) PARTITIONED BY (id) TBLPROPERTIES ('{key}' = '{SECRET}')"
        assert SECRET not in refused(lambda: sql(made), "spark.sql.catalog")  # noqa: B023
        altered = f"ALTER TABLE @.t SET TBLPROPERTIES ('{key}' = '{SECRET}')"
        assert SECRET not in refused(lambda: sql(altered), "spark.sql.catalog")  # noqa: B023
    made = f"CREATE TABLE @.s (id BIGINT) PARTITIONED BY (id) OPTIONS ('storage.account_key' = '{SECRET}')"
    assert SECRET not in refused(lambda: sql(made), "spark.sql.catalog")
    assert SECRET not in refused(
        lambda: sql(f"CREATE NAMESPACE @.n WITH PROPERTIES ('storage.account_key' = '{SECRET}')"), "spark.sql.catalog"
    )
