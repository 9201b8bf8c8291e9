"""Tables that SQL and ``writeTo`` make: without partitions, at a location, with vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from tests.spark.warehouse import Sql
from tests.support.waiting import until

pytest.importorskip("pyspark")
VECTOR = "arrow.fixed-size-list.size"


def test_a_table_without_partitions_takes_all_statements(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.dim (id BIGINT, name STRING)")
    sql("INSERT INTO @.ns.dim VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    sql("UPDATE @.ns.dim SET name = 'z' WHERE id = 2 OR name = 'none'")
    sql("DELETE FROM @.ns.dim WHERE id = 3")
    sql(
        """MERGE INTO @.ns.dim t USING (SELECT 1L AS id, 'm' AS name UNION ALL SELECT 4L, 'n') s ON t.id = s.id
           WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *"""
    )
    assert sorted(sql("SELECT * FROM @.ns.dim")) == [(1, "m"), (2, "z"), (4, "n")]
    assert len(sql.table("ns", "dim").scan().plan().leaves) == 1
    assert sql("SELECT count(*), max(id) FROM @.ns.dim") == [(3, 4)]


@pytest.mark.slow
def test_it_is_joined_partitioned_later_and_replaced(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.dim AS SELECT id, concat('n', id) AS name FROM range(20)")
    sql("CREATE TABLE @.ns.fact (id BIGINT, v INT) PARTITIONED BY (bucket(4, id))")
    sql("INSERT INTO @.ns.fact SELECT id, CAST(id AS INT) FROM range(20)")
    assert sql("SELECT count(*) FROM @.ns.fact f JOIN @.ns.dim d ON f.id = d.id WHERE d.name <> 'n3'") == [(19,)]
    before = sql.rows("@.ns.dim")
    sql("CALL @.system.add_partition_field(table => 'ns.dim', field => 'bucket(4, id)')")
    sql("INSERT INTO @.ns.dim VALUES (20, 'n20')")
    sql("CALL @.system.rewrite(table => 'ns.dim')")
    assert sql.rows("@.ns.dim") == before + type(before)([(20, "n20")])
    assert len(sql("SHOW PARTITIONS @.ns.dim")) == 4
    assert "bucket(4, id)" in str(sql("SHOW CREATE TABLE @.ns.dim"))
    assert sql("CALL @.system.drop_partition_field(table => 'ns.dim', field => 'id_bucket')") == []
    sql("INSERT OVERWRITE @.ns.dim VALUES (1, 'only')")
    assert sql("SELECT * FROM @.ns.dim") == [(1, "only")]
    assert "PARTITIONED" not in str(sql("SHOW CREATE TABLE @.ns.dim"))
    sql("CREATE OR REPLACE TABLE @.ns.dim AS SELECT 7L AS id")
    assert sql("SELECT * FROM @.ns.dim") == [(7,)]
    sql("TRUNCATE TABLE @.ns.dim")
    assert sql("SELECT * FROM @.ns.dim") == []


@pytest.mark.slow
def test_a_location_is_a_directory_of_the_warehouse(sql: Sql, tmp_path: Path) -> None:
    sql(f"CREATE TABLE @.ns.t (id BIGINT) LOCATION '{sql.root}/dims/people'")
    sql("INSERT INTO @.ns.t VALUES (1)")
    assert lp.open_table(f"{sql.root}/dims/people").scan().count() == 1
    assert f"{sql.root}/dims/people" in str(sql("DESCRIBE EXTENDED @.ns.t"))
    other = lp.create_table(f"{sql.root}/other", pa.schema([("id", pa.int64())]))
    other.append([{"id": 5}])
    for place, said in (
        (str(tmp_path / "elsewhere"), "outside of the warehouse"),
        (f"{sql.root}/dims/people", "another table"),
        (f"{sql.root}/dims", "another table"),
        (f"{sql.root}/other", "LOCATION can't be used"),
        (f"{sql.root}/plain.lance", "reserved"),
        (f"{sql.root}/a/../../b", "outside of the warehouse"),
    ):
        with pytest.raises(Exception, match=said):
            sql(f"CREATE TABLE @.ns.second (id BIGINT) LOCATION '{place}'")
    assert lp.open_table(other.root).scan().count() == 1
    assert sql("SELECT * FROM @.ns.t") == [(1,)]
    sql("DROP TABLE @.ns.t")
    assert not Path(sql.root, "dims", "people").exists()


@pytest.mark.slow
def test_vectors_keep_their_length(sql: Sql) -> None:
    sql(f"CREATE TABLE @.ns.v (id BIGINT, e ARRAY<FLOAT>) TBLPROPERTIES ('e.{VECTOR}' = '3')")
    assert sql.table("ns", "v").schema.field("e").type == pa.list_(pa.field("element", pa.float32()), 3)
    sql("INSERT INTO @.ns.v VALUES (1, array(0.5, 1, 2)), (2, NULL)")
    with pytest.raises(Exception, match=r"'e'|FixedSizeList|length"):
        sql("INSERT INTO @.ns.v VALUES (3, array(1.0F, 2.0F))")
    assert sorted(sql("SELECT * FROM @.ns.v")) == [(1, [0.5, 1.0, 2.0]), (2, None)]
    assert sql("SELECT id FROM lance_search('@.ns.v', 'e', array(0, 0, 0), 1)") == [(1,)]
    sql("CREATE TABLE @.ns.copied PARTITIONED BY (id) AS SELECT * FROM @.ns.v")
    assert sql.table("ns", "copied").schema.field("e").type.list_size == 3
    frame = sql.spark.table(f"{sql.name}.ns.v")
    frame.write.format("lancepart").option("partition_by", "id").save(f"{sql.root}_saved")
    assert lp.open_table(f"{sql.root}_saved").schema.field("e").type.list_size == 3
    for key, said in ((f"x.{VECTOR}", "no column 'x'"), (f"id.{VECTOR}", "no ARRAY")):
        with pytest.raises(Exception, match=said):
            sql(f"CREATE TABLE @.ns.w (id BIGINT) TBLPROPERTIES ('{key}' = '3')")


@pytest.mark.slow
def test_texts_keep_their_length(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id INT, c CHAR(4), v VARCHAR(3)) PARTITIONED BY (v)")
    assert [row[:2] for row in sql("DESCRIBE @.ns.t")[:3]] == [("id", "int"), ("c", "char(4)"), ("v", "varchar(3)")]
    assert "VARCHAR(3)" in sql("SHOW CREATE TABLE @.ns.t")[0][0]
    sql("INSERT INTO @.ns.t VALUES (1, 'x', 'abc'), (2, 'y', 'd')")
    for table in ("@.ns.t", "@.ns.copy"):
        assert sql(f"SELECT id, c, v FROM {table} WHERE c = 'x'") == [(1, "x   ", "abc")]
        with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
            sql(f"INSERT INTO {table} VALUES (3, 'x', 'abcd')")
        sql("CREATE TABLE IF NOT EXISTS @.ns.copy AS SELECT * FROM @.ns.t")
    sql("ALTER TABLE @.ns.t ADD COLUMN w VARCHAR(2)")
    sql("ALTER TABLE @.ns.t ALTER COLUMN v TYPE VARCHAR(4)")
    sql("INSERT INTO @.ns.t VALUES (3, 'x', 'abcd', 'ok')")
    with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
        sql("INSERT INTO @.ns.t VALUES (4, 'x', 'abcd', 'not')")
    assert sql.table("ns", "t").schema.field("v").type == pa.string()


@pytest.mark.slow
def test_a_frame_is_written_to_a_table_by_all_verbs(sql: Sql) -> None:
    from pyspark.sql import functions as f

    name = f"{sql.name}.ns.orders"
    frame = sql.spark.range(6).select("id", (f.col("id") % 3).alias("part"))
    frame.writeTo(name).using("lancepart").partitionedBy("part").tableProperty("owner", "me").create()
    assert [field.field_id for field in sql.table("ns", "orders").spec.fields] == ["part"]
    with pytest.raises(Exception, match=r"already exists|TABLE_OR_VIEW_ALREADY_EXISTS"):
        frame.writeTo(name).create()
    frame.where("id = 0").writeTo(name).append()
    assert sql(f"SELECT count(*) FROM {name}") == [(7,)]
    frame.where("part = 1").limit(1).selectExpr("id + 100 AS id", "part").writeTo(name).overwritePartitions()
    assert sorted(sql(f"SELECT id FROM {name} WHERE part = 1"))[0][0] >= 100
    assert sql(f"SELECT count(*) FROM {name}") == [(6,)]
    frame.where("part = 2 AND id > 3").writeTo(name).overwrite((f.col("part") == 2) & (f.col("id") > 3))
    assert sorted(sql(f"SELECT id FROM {name} WHERE part = 2")) == [(2,), (5,)]
    with pytest.raises(Exception, match=r"hash|overwrite|OVERWRITE|predicate|filter"):
        frame.writeTo(name).overwrite(f.hash("id") % 2 == 0)
    assert sql(f"SELECT count(*) FROM {name}") == [(6,)]
    frame.writeTo(name).partitionedBy(f.partitioning.bucket(4, "id")).createOrReplace()
    assert [field.field_id for field in sql.table("ns", "orders").spec.fields] == ["id_bucket"]
    frame.where("id < 2").writeTo(name).replace()
    assert sql.table("ns", "orders").spec.fields == ()
    assert sorted(sql(f"SELECT id FROM {name}")) == [(0,), (1,)]
    with pytest.raises(Exception, match=r"not found|cannot be found|does not exist|NOT_FOUND"):
        frame.writeTo(f"{sql.name}.ns.none").replace()


@pytest.mark.slow
def test_a_frame_that_says_no_format_makes_a_table_of_the_catalog(sql: Sql, tmp_path: Path) -> None:
    name = f"{sql.name}.ns.saved"
    frame = sql.spark.range(6).selectExpr("id", "id % 3 AS part")
    frame.write.partitionBy("part").saveAsTable(name)
    assert [field.field_id for field in sql.table("ns", "saved").spec.fields] == ["part"]
    frame.write.mode("append").saveAsTable(name)
    frame.where("id < 2").write.mode("overwrite").saveAsTable(name)
    assert sorted(sql(f"SELECT id FROM {name}")) == [(0,), (1,)]
    with pytest.raises(Exception, match="USING orc"):
        frame.write.format("orc").mode("overwrite").saveAsTable(name)
    stream = sql.spark.readStream.table(name).writeStream.option("checkpointLocation", str(tmp_path / "at"))
    stream.trigger(availableNow=True).toTable(f"{sql.name}.ns.followed").awaitTermination(120)
    assert sorted(sql("SELECT id FROM @.ns.followed")) == [(0,), (1,)]


@pytest.mark.slow
def test_a_failed_save_to_a_new_root_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    failing = spark.range(4).selectExpr("id", "assert_true(id < 3) AS ok")
    for options in ({"partition_by": "id"}, {"partition_by": ""}):
        with pytest.raises(Exception, match="not true"):
            failing.write.format("lancepart").options(**options).save(str(tmp_path / "new"))
        until(lambda: not (tmp_path / "new").exists())
    spark.range(4).write.format("lancepart").option("partition_by", "").save(str(tmp_path / "whole"))
    assert lp.open_table(tmp_path / "whole").spec.fields == ()
    with pytest.raises(Exception, match="empty partition_by"):
        spark.range(4).write.format("lancepart").save(str(tmp_path / "unsaid"))
    assert not (tmp_path / "unsaid").exists()
