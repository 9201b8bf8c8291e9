"""Spark SQL over a warehouse: the same statements on Parquet tables beside, wherever Parquet knows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance_namespace
import pyarrow as pa
import pytest

import lancepart as lp
from tests.spark.warehouse import BY, COLUMNS, PARQUET, Sql
from tests.support.tiers import one_in


@pytest.mark.slow
def test_namespaces_come_are_described_and_go(sql: Sql) -> None:
    sql("CREATE NAMESPACE @.ns.deeper COMMENT 'a comment' WITH PROPERTIES (team = 'data')")
    sql("CREATE NAMESPACE IF NOT EXISTS @.ns")
    with pytest.raises(Exception, match="already exists"):
        sql("CREATE NAMESPACE @.ns")
    assert sql("SHOW NAMESPACES IN @") == [("ns",)]
    assert sql("SHOW NAMESPACES IN @.ns") == [("ns.deeper",)]
    described = dict(sql("DESCRIBE NAMESPACE EXTENDED @.ns.deeper"))
    assert described["Comment"] == "a comment"
    assert "team" in described["Properties"]
    sql("ALTER NAMESPACE @.ns.deeper SET PROPERTIES (team = 'other')")
    assert "other" in dict(sql("DESCRIBE NAMESPACE EXTENDED @.ns.deeper"))["Properties"]
    with pytest.raises(Exception, match=r"not empty|NON_EMPTY|NOT_EMPTY"):
        sql("DROP NAMESPACE @.ns")
    sql("DROP NAMESPACE @.ns.deeper")
    assert sql("SHOW NAMESPACES IN @.ns") == []
    with pytest.raises(Exception, match=r"NOT_FOUND|not found"):
        sql("DESCRIBE NAMESPACE @.nowhere")


@pytest.mark.slow
def test_a_table_is_one_table_to_sql_and_a_valid_catalog_to_others(pair: Sql) -> None:
    sql = pair
    assert sql("SHOW TABLES IN @.ns") == [("ns", "t", False)]
    assert sql("SHOW NAMESPACES IN @.ns") == []
    assert sql.rows("@.ns.t") == sql.rows(f"(SELECT id, country, ts, s FROM {PARQUET})")
    table = sql.table("ns", "t")
    assert table.scan().count() == 4
    assert [field.field_id for field in table.spec.fields] == ["ts_year", "id_bucket", "s_trunc", "country"]
    other: Any = lance_namespace.connect("dir", {"root": sql.root})
    listed = other.list_namespaces(lance_namespace.ListNamespacesRequest(id=["ns"])).namespaces
    assert list(listed) == ["t"]


@pytest.mark.slow
def test_describe_and_show_create(sql: Sql) -> None:
    sql(
        f"CREATE TABLE @.ns.t ({COLUMNS}) USING lancepart PARTITIONED BY ({BY}) COMMENT 'facts' TBLPROPERTIES (a = 'b')"
    )
    described = {row[0]: row[1] for row in sql("DESCRIBE EXTENDED @.ns.t")}
    assert (described["id"], described["Comment"], described["Provider"]) == ("bigint", "facts", "lancepart")
    assert (described["Catalog"], described["Table"], described["Part 2"]) == (sql.name, "t", "truncate(3, s)")
    assert described["Location"].startswith(sql.root)
    assert "a=b" in described["Table Properties"]
    (made,) = sql("SHOW CREATE TABLE @.ns.t")[0]
    again = made.replace(".ns.t ", ".ns.again ")
    sql(again)
    first, second = sql.table("ns", "t"), sql.table("ns", "again")
    assert second.schema == first.schema
    assert {field.field_id for field in second.spec.fields} == {field.field_id for field in first.spec.fields}


def test_insert_and_overwrite_as_on_parquet(pair: Sql) -> None:
    columns = "(id, country, ts, s)"
    pair.both(f"INSERT INTO # {columns} VALUES (9, 'JP', NULL, 'x'), (10, 'US', NULL, 'y')")
    pair.both("INSERT OVERWRITE # PARTITION (country = 'US') (id, ts, s) VALUES (20, NULL, 'z')")
    pair.both(f"INSERT OVERWRITE # {columns} VALUES (30, 'FR', NULL, 'w'), (31, NULL, NULL, 'w')")
    assert pair("SELECT count(*) FROM @.ns.t") == [(2,)]


def test_dynamic_overwrite_replaces_the_partitions_that_rows_touch(sql: Sql) -> None:
    from pyspark.sql.functions import lit

    sql("CREATE TABLE @.ns.t (id BIGINT, country STRING) PARTITIONED BY (country)")
    sql("INSERT INTO @.ns.t VALUES (1, 'US'), (2, 'FR'), (3, NULL)")
    sql.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        sql("INSERT OVERWRITE @.ns.t VALUES (4, 'US'), (5, 'JP')")
        assert sql.rows("@.ns.t") == Counter([(4, "US"), (2, "FR"), (3, None), (5, "JP")])
        sql.spark.sql("SELECT 6L AS id, 'US' AS country").writeTo(f"{sql.name}.ns.t").overwrite(lit(True))
        assert sql.rows("@.ns.t") == Counter([(6, "US")])
        sql("CREATE TABLE @.ns.whole (id BIGINT)")
        sql("INSERT INTO @.ns.whole VALUES (1), (2)")
        sql("INSERT OVERWRITE @.ns.whole SELECT id FROM range(0)")
        assert sql.rows("@.ns.whole") == Counter()
    finally:
        sql.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


@pytest.mark.slow
def test_create_as_select_is_there_when_all_its_rows_are(sql: Sql) -> None:
    select = "SELECT id, id % 3 AS k FROM range(30)"
    sql(f"CREATE TABLE @.ns.t PARTITIONED BY (k) AS {select}")
    assert sql.rows("@.ns.t") == sql.rows(f"({select})")
    with pytest.raises(Exception, match="already exists"):
        sql(f"CREATE TABLE @.ns.t PARTITIONED BY (k) AS {select}")
    broken = "SELECT id, IF(id = 7, raise_error('broken'), 1) AS k FROM range(0, 9, 1, 1)"
    with pytest.raises(Exception, match="broken"):
        sql(f"CREATE TABLE @.ns.bad PARTITIONED BY (k) AS {broken}")
    assert sql("SHOW TABLES IN @.ns") == [("ns", "t", False)]
    assert sql.directories == 1


def test_replace_as_select_keeps_the_old_until_the_new_is_there(sql: Sql) -> None:
    sql("CREATE OR REPLACE TABLE @.ns.t PARTITIONED BY (k) AS SELECT id, id % 3 AS k FROM range(30)")
    with pytest.raises(Exception, match="broken"):
        sql("CREATE OR REPLACE TABLE @.ns.t PARTITIONED BY (k) AS SELECT raise_error('broken') AS k")
    assert sql("SELECT count(*) FROM @.ns.t") == [(30,)]
    sql("CREATE OR REPLACE TABLE @.ns.t PARTITIONED BY (bucket(4, id)) AS SELECT id FROM @.ns.t WHERE k = 1")
    assert sql.rows("@.ns.t") == Counter((n,) for n in range(30) if n % 3 == 1)
    assert sql.directories == 1
    with pytest.raises(Exception, match=r"cannot be found|NOT_FOUND"):
        sql("REPLACE TABLE @.ns.other PARTITIONED BY (id) AS SELECT 1 AS id")


@pytest.mark.slow
def test_what_a_table_needs_is_said(sql: Sql) -> None:
    with pytest.raises(Exception, match="USING lancepart"):
        sql("CREATE TABLE @.ns.t (id BIGINT) USING parquet PARTITIONED BY (id)")
    with pytest.raises(Exception, match="lancepart's own"):
        sql("CREATE TABLE @.ns.t (id BIGINT) PARTITIONED BY (id) TBLPROPERTIES ('lancepart.root' = 'x')")
    with pytest.raises(Exception, match="LOCATION"):
        sql("CREATE TABLE @.ns.t (id BIGINT) PARTITIONED BY (id) LOCATION '/elsewhere'")
    with pytest.raises(Exception, match=r"NOT_FOUND|not found"):
        sql("CREATE TABLE @.nowhere.t (id BIGINT) PARTITIONED BY (id)")
    assert sql.directories == 0


def test_drop_removes_the_row_and_the_files(pair: Sql) -> None:
    pair("DROP TABLE @.ns.t")
    pair("DROP TABLE IF EXISTS @.ns.t")
    with pytest.raises(Exception, match=r"cannot be found|NOT_FOUND"):
        pair("SELECT * FROM @.ns.t")
    assert pair.directories == 0
    pair(f"CREATE TABLE @.ns.t ({COLUMNS}) PARTITIONED BY ({BY})")
    pair("DROP NAMESPACE @.ns CASCADE")
    assert (pair("SHOW NAMESPACES IN @"), pair.directories) == ([], 0)


def meddling(sql: Sql, change: Callable[[Any], None]) -> None:
    """A function ``meddle(x)`` that gives x, and changes the table the first time that a task calls it."""
    root, done = sql.root, Path(sql.root + "_done")

    def meddle(x: int) -> int:
        if not done.exists():
            done.touch()
            change(lp.open_table(root, namespace=["ns", "t"]))
        return x

    sql.spark.udf.register("meddle", meddle, "int")


STATEMENTS = {
    "merge": "MERGE INTO @.ns.t t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = meddle(7)",
    "update": "UPDATE @.ns.t SET x = meddle(x) + 1 WHERE id % 2 = 1",
    "delete": "DELETE FROM @.ns.t WHERE meddle(x) = 10",
}


AFTERWARDS = {
    "merge": [(1, "US", 7), (2, "FR", 20)],
    "update": [(1, "US", 100), (2, "FR", 20)],
    "delete": [(1, "US", 99), (2, "FR", 20)],
}


@pytest.mark.parametrize("name", one_in(3, STATEMENTS))
def test_rows_that_others_change_meanwhile_are_a_conflict_and_not_lost(sql: Sql, name: str) -> None:
    sql("CREATE TABLE @.ns.t (id BIGINT, country STRING, x INT) PARTITIONED BY (country)")
    table = sql.table("ns", "t")
    table.append([{"id": 1, "country": "US", "x": 10}, {"id": 2, "country": "FR", "x": 20}])
    meddling(sql, lambda other: other.update({"x": "99"}, "id = 1"))
    with pytest.raises(Exception, match=rf"CommitConflictError: {name}: .*country=US; nothing was changed"):
        sql(STATEMENTS[name])
    assert sql.rows("@.ns.t") == Counter([(1, "US", 99), (2, "FR", 20)])
    sql(STATEMENTS[name])
    assert sql.rows("@.ns.t") == Counter(AFTERWARDS[name])


INSERTING = """MERGE INTO @.ns.t t USING (SELECT 3L AS id) s ON t.id = s.id AND t.country = 'JP'
    WHEN NOT MATCHED THEN INSERT (id, country, x) VALUES (s.id, 'JP', meddle(5))"""


def test_a_merge_that_only_inserts_meets_those_of_others(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id BIGINT, country STRING, x INT) PARTITIONED BY (country)")
    sql.table("ns", "t").append([{"id": 1, "country": "US", "x": 10}])
    meddling(sql, lambda other: other.append([{"id": 3, "country": "JP", "x": 1}]))
    with pytest.raises(Exception, match=r"CommitConflictError: merge: .*country=JP; nothing was changed"):
        sql(INSERTING)
    before = sql.table("ns", "t").version
    sql(INSERTING)
    assert sql.rows("@.ns.t") == Counter([(1, "US", 10), (3, "JP", 1)])
    assert sql.table("ns", "t").version == before


@pytest.mark.slow
def test_a_merge_that_only_inserts_does_not_mind_what_it_has_not_searched(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id BIGINT, country STRING, x INT) PARTITIONED BY (country)")
    meddling(sql, lambda other: other.append([{"id": 3, "country": "US", "x": 1}]))
    sql(INSERTING)
    assert sql.rows("@.ns.t") == Counter([(3, "US", 1), (3, "JP", 5)])
    root = sql.table("ns", "t").root
    into = f"MERGE INTO lancepart.`{root}` t USING (SELECT * FROM @.ns.t) s ON t.id = s.id + 1"
    sql(f"WITH extra AS (SELECT 9L AS id) {into} WHEN NOT MATCHED AND s.x = 1 THEN INSERT (id) VALUES (s.id)")
    assert sql("SELECT count(*) FROM @.ns.t") == [(3,)]


@pytest.mark.slow
def test_a_merge_that_only_inserts_into_a_plain_table_meets_those_of_others(sql: Sql) -> None:
    place, done = f"{sql.root}/plain.lance", Path(sql.root + "_done")
    lance.write_dataset(pa.table({"id": [1], "x": pa.array([1], pa.int32())}), place)

    def meddle(x: int) -> int:
        if not done.exists():
            done.touch()
            lance.write_dataset(pa.table({"id": [3], "x": pa.array([3], pa.int32())}), place, mode="append")
        return x

    sql.spark.udf.register("meddle", meddle, "int")
    statement = "MERGE INTO @.plain t USING (SELECT 3L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, x) "
    with pytest.raises(Exception, match=r"CommitConflictError: .*nothing was changed"):
        sql(f"{statement} VALUES (s.id, meddle(5))")
    sql(f"{statement} VALUES (s.id + 1, meddle(5))".replace("= s.id", "= s.id + 1"))
    assert sql.rows("@.plain") == Counter([(1, 1), (3, 3), (4, 5)])


@pytest.mark.parametrize("on", one_in(3, ["t.id = s.id", "false", "t.id = s.id AND t.x > s.x"]))
def test_a_merge_whose_condition_never_holds_inserts(sql: Sql, on: str) -> None:
    sql("CREATE TABLE @.ns.t (id BIGINT, x INT) PARTITIONED BY (x)")
    sql("INSERT INTO @.ns.t VALUES (NULL, 1), (2, 2)")
    source = f"USING (SELECT CAST(NULL AS BIGINT) AS id, 7 AS x) s ON {on}"
    sql(f"MERGE INTO @.ns.t t {source} WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *")
    sql(f"MERGE INTO @.ns.t t {source} WHEN NOT MATCHED THEN INSERT *")
    assert sql.rows("@.ns.t") == Counter([(None, 1), (2, 2), (None, 7), (None, 7)])
