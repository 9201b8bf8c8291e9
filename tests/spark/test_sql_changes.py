"""Spark SQL that changes tables of a warehouse, reads their past, and reads what stands beside them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.spark.warehouse import PARQUET, Sql


def deleted(sql: Sql, where: str) -> None:
    """Delete from the table, and keep of Parquet what must be left."""
    kept = f"SELECT id, country, ts, s FROM {PARQUET} WHERE NOT coalesce({where}, false)"
    wanted = sql.rows(f"({kept})")
    sql(f"DELETE FROM @.ns.t WHERE {where}")
    assert sql.rows("@.ns.t") == wanted


def test_delete_by_filters(pair: Sql) -> None:
    before = pair.table("ns", "t").inspect.snapshots().num_rows
    deleted(pair, "country = 'US' AND id < 3 OR id IN (77, 78)")
    assert pair.table("ns", "t").inspect.snapshots().num_rows == before + 1
    pair(f"INSERT OVERWRITE {PARQUET} SELECT id, ts, s, country FROM @.ns.t")
    pair(f"REFRESH TABLE {PARQUET}")
    deleted(pair, "s IS NULL OR ts >= TIMESTAMP '2025-06-01 00:00:00'")
    pair("TRUNCATE TABLE @.ns.t")
    assert pair.rows("@.ns.t") == Counter()


def test_columns_change_by_name_and_rows_stay(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id INT, country STRING, x FLOAT) PARTITIONED BY (country)")
    sql("INSERT INTO @.ns.t VALUES (1, 'US', 1.5)")
    sql("ALTER TABLE @.ns.t ADD COLUMNS (a INT, b STRING)")
    sql("ALTER TABLE @.ns.t RENAME COLUMN country TO land")
    sql("ALTER TABLE @.ns.t ALTER COLUMN id TYPE BIGINT")
    sql("ALTER TABLE @.ns.t DROP COLUMN x")
    sql("INSERT INTO @.ns.t VALUES (5000000000, 'FR', 7, 'new')")
    assert sql.rows("@.ns.t") == Counter([(1, "US", None, None), (5_000_000_000, "FR", 7, "new")])
    sql("ALTER TABLE @.ns.t SET TBLPROPERTIES (a = 'b')")
    assert ("a", "b") in sql("SHOW TBLPROPERTIES @.ns.t")
    with pytest.raises(Exception, match="added last"):
        sql("ALTER TABLE @.ns.t ADD COLUMN first INT FIRST")
    with pytest.raises(Exception, match=r"UpdateColumnNullability"):
        sql("ALTER TABLE @.ns.t ALTER COLUMN a DROP NOT NULL")


@pytest.mark.slow
def test_a_column_of_the_partitioning_may_go(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id BIGINT, k STRING, ts TIMESTAMP, n INT) PARTITIONED BY (k, years(ts), bucket(2, id))")
    sql("INSERT INTO @.ns.t VALUES (1, 'a', TIMESTAMP '2024-05-01 10:00:00', 1), (2, 'b', NULL, 2)")
    sql("ALTER TABLE @.ns.t DROP COLUMN k")
    sql("INSERT INTO @.ns.t VALUES (3, TIMESTAMP '2025-05-01 10:00:00', 3)")
    assert sorted(sql("SELECT id, n FROM @.ns.t WHERE ts >= TIMESTAMP '2024-05-01 10:00:00'")) == [(1, 1), (3, 3)]
    assert "PARTITIONED BY (years(ts), bucket(2, id))" in sql("SHOW CREATE TABLE @.ns.t")[0][0]
    sql("ALTER TABLE @.ns.t DROP COLUMN ts")
    sql(
        """MERGE INTO @.ns.t t USING (SELECT id + 3L AS id FROM range(2)) s ON t.id = s.id
           WHEN MATCHED THEN UPDATE SET n = 33 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 44)"""
    )
    sql("ALTER TABLE @.ns.t ADD COLUMN k STRING")
    assert sql.rows("@.ns.t") == Counter([(1, 1, None), (2, 2, None), (3, 33, None), (4, 44, None)])
    assert sql("SELECT count(*) FROM @.ns.t a JOIN @.ns.t b ON a.id = b.id") == [(4,)]


@pytest.mark.slow
def test_columns_keep_their_comments(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id INT COMMENT 'it''s one', k STRING COMMENT 'by it') PARTITIONED BY (k)")
    sql("INSERT INTO @.ns.t VALUES (1, 'a')")
    sql("ALTER TABLE @.ns.t ADD COLUMN x INT COMMENT 'new'")
    sql("ALTER TABLE @.ns.t ALTER COLUMN k COMMENT 'changed'")
    sql("ALTER TABLE @.ns.t RENAME COLUMN k TO l")
    sql("ALTER TABLE @.ns.t ALTER COLUMN id TYPE BIGINT")
    sql("INSERT INTO @.ns.t VALUES (2, 'a', 3), (4, 'b', 5)")
    sql("UPDATE @.ns.t SET x = id + 0 WHERE id = 1")
    assert sql.rows("@.ns.t") == Counter([(1, "a", 1), (2, "a", 3), (4, "b", 5)])
    told = [("id", "bigint", "it's one"), ("l", "string", "changed"), ("x", "int", "new")]
    assert sql("DESCRIBE @.ns.t")[:3] == told
    (made,) = sql("SHOW CREATE TABLE @.ns.t")[0]
    sql(made.replace(".ns.t ", ".ns.again "))
    assert sql("DESCRIBE @.ns.again")[:3] == told
    sql("ALTER TABLE @.ns.t ALTER COLUMN x COMMENT ''")
    assert (sql.table("ns", "t").schema.field("x").metadata, sql("DESCRIBE @.ns.t")[2]) == (None, ("x", "int", None))
    assert sql.table("ns", "t").schema.field("l").metadata == {b"comment": b"changed"}


@pytest.mark.slow
def test_rename_table(pair: Sql) -> None:
    pair("CREATE NAMESPACE @.other")
    rows = pair.rows("@.ns.t")
    pair("ALTER TABLE @.ns.t RENAME TO other.u")
    assert (pair("SHOW TABLES IN @.ns"), pair("SHOW TABLES IN @.other")) == ([], [("other", "u", False)])
    assert pair.rows("@.other.u") == rows


def test_the_past_and_what_a_table_is_made_of(pair: Sql) -> None:
    table = pair.table("ns", "t")
    first, rows = table.version, pair.rows("@.ns.t")
    table.tags.create("start", first)
    pair("DELETE FROM @.ns.t WHERE id = 1")
    assert pair.rows(f"@.ns.t VERSION AS OF {first}") == rows
    assert pair.rows("@.ns.t VERSION AS OF 'start'") == rows
    moments = {row["version"]: row["timestamp"] for row in table.inspect.snapshots().to_pylist()}
    stamp = moments[first].strftime("%Y-%m-%d %H:%M:%S.%f+00:00")
    assert pair.rows(f"@.ns.t TIMESTAMP AS OF '{stamp}'") == rows
    for name in ("partitions", "snapshots", "fragments", "specs"):
        found: Any = getattr(table.inspect, name)()
        assert pair(f"SELECT count(*) FROM @.ns.t.{name}") == [(found.num_rows,)]
    found = pair("SELECT rows, partition['country'] FROM @.ns.t.partitions WHERE rows > 0 ORDER BY 2")
    assert found == [(1, None), (1, "FR"), (1, "US")]
    assert pair("SELECT operation FROM @.ns.t.snapshots ORDER BY version DESC LIMIT 1") == [("delete",)]


@pytest.mark.slow
def test_show_partitions(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id BIGINT, country STRING, d DATE) PARTITIONED BY (country, years(d))")
    sql("INSERT INTO @.ns.t VALUES (1, 'US', DATE '2025-01-01'), (2, 'US', DATE '2026-01-01'), (3, NULL, NULL)")
    shown = [("country=US/d_year=2025",), ("country=US/d_year=2026",), ("country=null/d_year=null",)]
    assert sql("SHOW PARTITIONS @.ns.t") == shown
    assert sql("SHOW PARTITIONS @.ns.t PARTITION (d_year = '2026')") == shown[1:2]
    with pytest.raises(Exception, match="first row"):
        sql("ALTER TABLE @.ns.t ADD PARTITION (country = 'JP', d_year = '2027')")


@pytest.mark.slow
def test_plain_lance_tables_are_read(sql: Sql) -> None:
    rows = pa.table({"id": list(range(100)), "t": [f"row {n}" for n in range(100)]})
    lance.write_dataset(rows, f"{sql.root}/plain.lance", max_rows_per_file=30)
    assert sql("SHOW TABLES IN @") == [("", "plain", False)]
    assert sql("SELECT sum(id), count(*) FROM @.plain WHERE id >= 50") == [(sum(range(50, 100)), 50)]
    assert sql("SELECT t FROM @.plain WHERE id = 7") == [("row 7",)]
    sql("DROP TABLE @.plain")
    assert sql("SHOW TABLES IN @") == []


@pytest.mark.slow
def test_storage_options_are_passed_on_and_not_shown(sql: Sql) -> None:
    sql.spark.conf.set("spark.sql.catalog.secretive", "io.lancepart.spark.LanceCatalog")
    sql.spark.conf.set("spark.sql.catalog.secretive.warehouse", sql.root)
    sql.spark.conf.set("spark.sql.catalog.secretive.storage.aws_session_token", "hush-hush")
    sql("CREATE TABLE secretive.ns.t (id BIGINT) PARTITIONED BY (id)")
    sql("INSERT INTO secretive.ns.t VALUES (1)")
    told = [sql("DESCRIBE EXTENDED secretive.ns.t"), sql("SHOW CREATE TABLE secretive.ns.t")]
    told += [sql("EXPLAIN EXTENDED SELECT * FROM secretive.ns.t"), sql("EXPLAIN FORMATTED DELETE FROM secretive.ns.t")]
    assert "hush" not in str(told)
    assert sql("SELECT * FROM @.ns.t") == [(1,)]
