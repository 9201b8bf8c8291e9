"""Writes of SQL: how rows come to tasks and files, columns that come with them, and plain Lance tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from tests.spark.elsewhere import explained
from tests.spark.warehouse import Sql

pytest.importorskip("pyspark")


def files(table: lp.PartitionedTable) -> int:
    return int(table.inspect.fragments().num_rows)


@pytest.mark.slow
def test_properties_of_the_table_say_how_it_is_written(sql: Sql) -> None:
    spread = "SELECT /*+ REPARTITION(4) */ id, id % 3 AS k, 1000 - id AS n FROM range(300)"
    sql("CREATE TABLE @.ns.loose (id BIGINT, k BIGINT, n BIGINT) PARTITIONED BY (k)")
    sql(f"INSERT INTO @.ns.loose {spread}")
    assert files(sql.table("ns", "loose")) == 12
    sql(
        """CREATE TABLE @.ns.tidy (id BIGINT, k BIGINT, n BIGINT) PARTITIONED BY (k)
           TBLPROPERTIES ('write.distribution-mode' = 'hash', 'write.order-by' = 'n DESC NULLS LAST')"""
    )
    statement = f"INSERT INTO @.ns.tidy {spread}".replace("@", sql.name)
    plan = explained(sql.spark.sql(f"EXPLAIN {statement}")) + sql.spark.sql(f"EXPLAIN {statement}").collect()[0][0]
    assert "hashpartitioning(k" in plan
    assert "Sort [k" in plan
    sql.spark.sql(statement)
    tidy = sql.table("ns", "tidy")
    assert files(tidy) == 3
    assert sql.rows("@.ns.tidy") == sql.rows("@.ns.loose")
    for leaf in tidy.scan().plan().leaves:
        held = lance.dataset(f"{tidy.root}/{leaf.location}", version=leaf.read_version).to_table()["n"].to_pylist()
        assert held == sorted(held, reverse=True)
    sql("ALTER TABLE @.ns.tidy SET TBLPROPERTIES ('write.distribution-mode' = 'none')")
    for key, value in (("write.distribution-mode", "sideways"), ("write.target-file-size", "huge")):
        with pytest.raises(Exception, match=value):
            sql(f"ALTER TABLE @.ns.tidy SET TBLPROPERTIES ('{key}' = '{value}')")
    with pytest.raises(Exception, match="no order of rows"):
        sql.spark.table(f"{sql.name}.ns.loose").writeTo(f"{sql.name}.ns.tidy").option("order_by", "none").append()


@pytest.mark.slow
def test_rows_that_statements_change_are_written_as_the_properties_say(sql: Sql) -> None:
    for name, mode in (("loose", "none"), ("tidy", "hash")):
        sql(
            f"""CREATE TABLE @.ns.{name} (id BIGINT, k BIGINT, n BIGINT) PARTITIONED BY (k)
               TBLPROPERTIES ('write.distribution-mode' = '{mode}', 'write.order-by' = 'n DESC')"""
        )
        sql(f"INSERT INTO @.ns.{name} SELECT id, id % 3, 1000 - id FROM range(300)")
    source = "(SELECT id, id % 3 AS k, id AS n FROM range(150, 450)) s ON t.id = s.id"
    key = "spark.sql.adaptive.coalescePartitions.enabled"
    sql.spark.conf.set(key, "false")
    try:
        for name in ("loose", "tidy"):
            sql(
                f"""MERGE INTO @.ns.{name} t USING {source} WHEN MATCHED THEN UPDATE SET k = s.k + 10, n = s.n
                   WHEN NOT MATCHED THEN INSERT (id, k, n) VALUES (s.id, s.k + 10, s.n)"""
            )
    finally:
        sql.spark.conf.unset(key)
    tidy, loose = ([*sql.table("ns", name).scan("k >= 10").plan().leaves] for name in ("tidy", "loose"))
    assert sql.rows("@.ns.tidy") == sql.rows("@.ns.loose")
    assert [leaf.stats.fragments for leaf in loose if leaf.stats] == [2, 2, 2]
    assert [leaf.stats.fragments for leaf in tidy if leaf.stats] == [1, 1, 1]
    for leaf in tidy:
        held = lance.dataset(f"{sql.table('ns', 'tidy').root}/{leaf.location}", version=leaf.read_version).to_table()
        assert held["n"].to_pylist() == sorted(held["n"].to_pylist(), reverse=True)


@pytest.mark.slow
def test_a_column_that_rows_are_sorted_by_stays(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id INT, n INT, m INT) TBLPROPERTIES ('write.order-by' = 'm, n DESC')")
    for change in ("DROP COLUMN n", "RENAME COLUMN m TO o"):
        with pytest.raises(Exception, match=r"sorted by '[nm]'.*write\.order-by"):
            sql(f"ALTER TABLE @.ns.t {change}")
    sql("ALTER TABLE @.ns.t SET TBLPROPERTIES ('write.order-by' = 'm')")
    sql("ALTER TABLE @.ns.t DROP COLUMN n")
    sql("ALTER TABLE @.ns.t UNSET TBLPROPERTIES ('write.order-by')")
    sql("ALTER TABLE @.ns.t RENAME COLUMN m TO o")
    sql("INSERT INTO @.ns.t VALUES (1, 2)")
    assert sql("SELECT id, o FROM @.ns.t") == [(1, 2)]


@pytest.mark.slow
def test_options_say_the_same_and_files_end_at_a_size(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(60_000).selectExpr("id", "id % 2 AS k", "repeat(uuid(), 4) AS t").repartition(3)
    writer = rows.write.format("lancepart").option("partition_by", "k")
    writer.option("target_file_size", "256k").save(str(tmp_path / "t"))
    table = lp.open_table(tmp_path / "t")
    assert table.scan().count() == 60_000
    sizes = table.inspect.fragments().column("bytes").to_pylist()
    assert len(sizes) > 6
    more = rows.write.format("lancepart").mode("append").option("distribution", "range").option("order_by", "id")
    more.option("target_file_size", "512k").save(str(tmp_path / "t"))
    assert table.scan().count() == 120_000
    with pytest.raises(Exception, match="no size of a file"):
        more.option("target_file_size", "much").save(str(tmp_path / "t"))
    assert table.scan().count() == 120_000


@pytest.mark.slow
def test_a_property_says_where_files_end(sql: Sql) -> None:
    rows = "SELECT /*+ COALESCE(1) */ id, repeat(uuid(), 4) AS t FROM range(20000)"
    for name, size in (("small", "256k"), ("large", "64m")):
        sql(f"CREATE TABLE @.ns.{name} (id BIGINT, t STRING) TBLPROPERTIES ('write.target-file-size' = '{size}')")
        sql(f"INSERT INTO @.ns.{name} {rows}")
    small = sql.table("ns", "small").inspect.fragments().column("bytes").to_pylist()
    assert files(sql.table("ns", "large")) == 1
    assert len(small) > 3
    assert max(small) < 3 * (256 << 10)
    sql("UPDATE @.ns.small SET t = concat(t, '!') WHERE id >= 0")
    assert max(sql.table("ns", "small").inspect.fragments().column("bytes").to_pylist()) < 3 * (256 << 10)
    assert sql("SELECT count(*), sum(id) FROM @.ns.small") == [(20_000, sum(range(20_000)))]


@pytest.mark.slow
def test_rows_of_a_new_path_are_brought_together_by_functions_too(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(2_000).selectExpr("id", "timestamp_seconds(id * 86400) AS ts").repartition(4)
    for number, by in enumerate(("bucket(id, 3)", "year(ts)", "year(ts), bucket(id, 2)")):
        place = str(tmp_path / str(number))
        rows.write.format("lancepart").options(partition_by=by, distribution="hash").save(place)
        table = lp.open_table(place)
        assert {each["fragments"] for each in table.inspect.partitions().to_pylist()} == {1}
        assert table.scan().count() == 2_000
    with pytest.raises(Exception, match="nothing"):
        rows.write.format("lancepart").options(partition_by="year(nothing)", distribution="hash").save(f"{tmp_path}/x")
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_every_partition_function_makes_a_table(sql: Sql) -> None:
    from pyspark.sql.functions import partitioning

    name = f"{sql.name}.ns.made"
    frame = sql.spark.sql("SELECT id, timestamp_seconds(id * 3600 * 7) AS ts, concat('n', id) AS s FROM range(100)")
    given: dict[str, tuple[Any, list[str]]] = {
        "years": (partitioning.years("ts"), ["year"]),
        "months": (partitioning.months("ts"), ["year", "month"]),
        "days": (partitioning.days("ts"), ["year", "month", "day"]),
        "hours": (partitioning.hours("ts"), ["year", "month", "day", "hour"]),
        "bucket": (partitioning.bucket(4, "id"), ["bucket"]),
        "identity": (frame.s, ["identity"]),
    }
    for by, expected in given.values():
        frame.writeTo(name).partitionedBy(by).createOrReplace()
        fields = sql.table("ns", "made").spec.fields
        assert [field.transform.name for field in fields if field.transform is not None] == expected
        assert sql(f"SELECT count(*), sum(id) FROM {name} WHERE id < 50") == [(50, sum(range(50)))]
    frame.writeTo(f"{sql.name}.ns.two").partitionedBy(partitioning.years("ts"), partitioning.bucket(2, "id")).create()
    assert [field.field_id for field in sql.table("ns", "two").spec.fields] == ["ts_year", "id_bucket"]


@pytest.mark.slow
def test_columns_come_with_rows_where_the_statement_says_so(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id INT, k STRING) PARTITIONED BY (k)")
    sql("INSERT INTO @.ns.t VALUES (1, 'a')")
    wider = "SELECT 2 AS id, 'b' AS k, 5.5D AS price"
    with pytest.raises(Exception, match=r"too many|TOO_MANY|extra|EXTRA"):
        sql(f"INSERT INTO @.ns.t BY NAME {wider}")
    sql(f"INSERT WITH SCHEMA EVOLUTION INTO @.ns.t BY NAME {wider}")
    assert sorted(sql("SELECT id, k, price FROM @.ns.t")) == [(1, "a", None), (2, "b", 5.5)]
    sql(
        """MERGE WITH SCHEMA EVOLUTION INTO @.ns.t t USING (SELECT 1 AS id, 'a' AS k, 7.0D AS price, 'new' AS note) s
           ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
    )
    assert sorted(sql("SELECT id, k, price, note FROM @.ns.t")) == [(1, "a", 7.0, "new"), (2, "b", 5.5, None)]


@pytest.mark.slow
def test_columns_come_with_a_frame_where_an_option_says_so(sql: Sql, tmp_path: Path) -> None:
    sql("CREATE TABLE @.ns.t (id BIGINT, k STRING) PARTITIONED BY (k)")
    name = f"{sql.name}.ns.t"
    frame = sql.spark.sql("SELECT 1L AS id, 'a' AS k, 2.5D AS price")
    with pytest.raises(Exception, match=r"too many|TOO_MANY|extra|EXTRA"):
        frame.writeTo(name).append()
    frame.writeTo(name).option("mergeSchema", "true").append()
    frame.selectExpr("id + 1 AS id", "k", "price", "'x' AS note").write.option("mergeSchema", "true").mode(
        "append"
    ).saveAsTable(name)
    assert sorted(sql(f"SELECT id, k, price, note FROM {name}")) == [(1, "a", 2.5, None), (2, "a", 2.5, "x")]
    saved = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int32()), ("k", pa.string())]), ["k"])
    saved.append([{"id": 1, "k": "b"}])
    by_path = frame.write.format("lancepart").mode("append")
    with pytest.raises(Exception, match=r"too many|TOO_MANY|extra|EXTRA"):
        by_path.save(saved.root)
    by_path.option("mergeSchema", "true").save(saved.root)
    expected = [{"id": 1, "k": "a", "price": 2.5}, {"id": 1, "k": "b", "price": None}]
    assert sorted(saved.scan().to_arrow().to_pylist(), key=lambda row: row["k"]) == expected
    assert saved.schema.field("id").type == pa.int64()
    sql(f"ALTER TABLE lancepart.`{saved.root}` RENAME COLUMN price TO cost")
    assert saved.schema.names == ["id", "k", "cost"]
    with pytest.raises(Exception, match="no properties"):
        sql(f"ALTER TABLE lancepart.`{saved.root}` SET TBLPROPERTIES (a = 'b')")


@pytest.mark.slow
def test_plain_tables_are_written(sql: Sql) -> None:
    vectors = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))
    lance.write_dataset(pa.table({"id": [1, 2], "v": vectors}), f"{sql.root}/plain.lance")
    held = lance.dataset(f"{sql.root}/plain.lance")
    sql("INSERT INTO @.plain SELECT id + 10, array(0.5F, 1F) FROM range(2)")
    assert sorted(row[0] for row in sql("SELECT id FROM @.plain")) == [1, 2, 10, 11]
    sql.spark.sql("SELECT 20L AS id, CAST(NULL AS ARRAY<FLOAT>) AS v").writeTo(f"{sql.name}.plain").append()
    newest = lance.dataset(f"{sql.root}/plain.lance")
    assert newest.schema == held.schema
    assert newest.version == held.version + 2
    assert sql(f"SELECT count(*) FROM @.plain VERSION AS OF {held.version}") == [(2,)]
    sql("INSERT OVERWRITE @.plain VALUES (7, array(1F, 1F))")
    assert sql("SELECT * FROM @.plain") == [(7, [1.0, 1.0])]
    assert lance.dataset(f"{sql.root}/plain.lance").schema == held.schema
    with pytest.raises(Exception, match=r"'v'|length|FixedSize"):
        sql("INSERT INTO @.plain VALUES (8, array(1F, 1F, 1F))")
    assert sql("SELECT count(*) FROM @.plain") == [(1,)]


def test_spark_knows_how_large_plain_tables_are(sql: Sql) -> None:
    rows = pa.table({"id": range(1000), "t": ["x" * 1000] * 1000})
    lance.write_dataset(rows, f"{sql.root}/plain.lance").delete("id >= 900")

    def size(columns: str) -> int:
        plan = sql.spark.sql(f"SELECT {columns} FROM {sql.name}.plain")._jdf.queryExecution().optimizedPlan()
        return int(plan.stats().sizeInBytes())

    assert size("id") < size("*") < 2_000_000


def test_rows_of_plain_tables_are_changed(sql: Sql) -> None:
    vectors = pa.array([[1.0, 2.0]] * 6, pa.list_(pa.float32(), 2))
    place = f"{sql.root}/plain.lance"
    lance.write_dataset(pa.table({"id": range(6), "k": ["a"] * 6, "v": vectors}), place, max_rows_per_file=2)
    schema = lance.dataset(place).schema
    sql("UPDATE @.plain SET k = 'b' WHERE id * 2 = 4")
    sql("DELETE FROM @.plain WHERE id = 5")
    source = "(SELECT id + 3 AS id FROM range(4)) s ON t.id = s.id"
    matched = "WHEN MATCHED AND t.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET k = 'c'"
    added = "WHEN NOT MATCHED THEN INSERT (id, k, v) VALUES (s.id, 'new', array(3F, 4F))"
    sql(f"MERGE INTO @.plain t USING {source} {matched} {added} WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN DELETE")

    held = lance.dataset(place)
    expected = [(1, "a"), (2, "b"), (4, "c"), (5, "new"), (6, "new")]
    assert sorted((row[0], row[1]) for row in sql("SELECT * FROM @.plain")) == expected
    assert (held.version, held.schema) == (4, schema)
    sql("UPDATE @.plain SET k = 'z' WHERE id = 77")
    assert lance.dataset(place).version == 4
