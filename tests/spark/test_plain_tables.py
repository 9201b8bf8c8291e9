"""Plain Lance tables of the warehouse in SQL: read with pushdown, overwritten, altered, searched and maintained."""

from __future__ import annotations

import io
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateTableRequest

import lancepart as lp
from tests.spark.elsewhere import explained
from tests.spark.test_metrics import shown
from tests.spark.warehouse import Sql

pytest.importorskip("pyspark")
VECTOR = pa.list_(pa.float32(), 2)


@pytest.fixture
def plain(sql: Sql) -> Sql:
    """A warehouse with the plain table ``plain``: ten rows in two fragments."""
    vectors = pa.array([[float(n), 0.0] for n in range(10)], VECTOR)
    rows = pa.table(
        {"id": range(10), "k": [n % 2 for n in range(10)], "t": [f"word {n}" for n in range(10)], "v": vectors}
    )
    lance.write_dataset(rows, f"{sql.root}/plain.lance", max_rows_per_file=5, max_rows_per_group=5)
    return sql


def held(sql: Sql) -> lance.LanceDataset:
    return lance.dataset(f"{sql.root}/plain.lance")


def ids(sql: Sql, where: str = "true") -> list[int]:
    return sorted(row[0] for row in sql(f"SELECT id FROM @.plain WHERE {where}"))


def test_filters_limits_and_counts_are_pushed(plain: Sql) -> None:
    frame = plain.spark.sql(f"SELECT t FROM {plain.name}.plain WHERE id > 6 AND t LIKE 'word%'")
    assert "id > 6" in explained(frame)
    assert sorted(row.t for row in frame.collect()) == ["word 7", "word 8", "word 9"]
    assert shown(plain.spark)["leaves read"] == "1"
    assert plain("SELECT count(*) FROM @.plain") == [(10,)]
    assert "aggregates" in explained(plain.spark.sql(f"SELECT count(*), max(id) FROM {plain.name}.plain"))
    assert plain("SELECT count(*), max(id) FROM @.plain") == [(10, 9)]
    assert len(plain("SELECT id FROM @.plain LIMIT 3")) == 3
    plain("DELETE FROM @.plain WHERE id = 0")
    with pytest.raises(Exception, match="loaded at snapshot"):
        plain.spark.read.option("version", "1").table(f"{plain.name}.plain").count()


def test_a_table_that_was_replaced_is_not_taken_for_the_old_one(plain: Sql) -> None:
    assert ids(plain, "k = 1") == [1, 3, 5, 7, 9]
    plain("DROP TABLE @.plain")
    lance.write_dataset(pa.table({"id": [100], "k": [1]}), f"{plain.root}/plain.lance")
    assert ids(plain, "k = 1") == [100]


def test_overwriting_by_a_condition_and_as_a_whole(plain: Sql) -> None:
    table = f"{plain.name}.plain"
    rows = plain.spark.sql("SELECT id + 100 AS id, 7L AS k, 'new' AS t, CAST(NULL AS ARRAY<FLOAT>) AS v FROM range(2)")
    before = held(plain).version
    rows.writeTo(table).overwrite(_condition("k = 1"))
    assert ids(plain) == [0, 2, 4, 6, 8, 100, 101]
    assert held(plain).version == before + 1
    assert held(plain).schema.field("v").type == VECTOR
    rows.where("id = 100").writeTo(table).overwritePartitions()
    assert ids(plain) == [100]
    plain("INSERT OVERWRITE @.plain SELECT id, 1, 'x', NULL FROM range(3)")
    assert ids(plain) == [0, 1, 2]
    with pytest.raises(Exception, match="can't be found exactly"):
        rows.writeTo(table).overwrite(_condition("upper(t) = 'X'"))
    assert ids(plain) == [0, 1, 2]


def _condition(text: str) -> Any:
    from pyspark.sql import functions

    return functions.expr(text)


def test_rows_are_deleted_updated_and_merged(plain: Sql) -> None:
    before = held(plain).version
    plain("DELETE FROM @.plain WHERE id < 2")
    assert (ids(plain), held(plain).version) == (list(range(2, 10)), before + 1)
    plain("DELETE FROM @.plain WHERE length(t) > 6 OR id % 5 = 2")
    assert ids(plain) == [3, 4, 5, 6, 8, 9]
    plain("UPDATE @.plain SET t = concat(t, '!') WHERE id = 3")
    plain("""MERGE INTO @.plain p USING (SELECT id FROM range(4, 12)) s ON p.id = s.id
             WHEN MATCHED AND s.id = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET k = 9
             WHEN NOT MATCHED THEN INSERT (id, k, t, v) VALUES (s.id, 5, 'in', NULL)""")
    assert plain("SELECT id, k, t FROM @.plain ORDER BY id") == [
        *((3, 1, "word 3!"), (5, 9, "word 5"), (6, 9, "word 6"), (7, 5, "in"), (8, 9, "word 8"), (9, 9, "word 9")),
        *((10, 5, "in"), (11, 5, "in")),
    ]
    plain("DELETE FROM @.plain WHERE id > 1000")
    plain("TRUNCATE TABLE @.plain")
    assert (ids(plain), held(plain).count_rows(), held(plain).schema.names) == ([], 0, ["id", "k", "t", "v"])
    plain("INSERT INTO @.plain VALUES (1, 1, 'again', array(1F, 2F))")
    assert ids(plain) == [1]


def test_columns_are_altered(plain: Sql) -> None:
    plain("ALTER TABLE @.plain ADD COLUMNS (a INT COMMENT 'new', b STRING)")
    plain("ALTER TABLE @.plain RENAME COLUMN k TO kind")
    plain("ALTER TABLE @.plain DROP COLUMN b")
    plain("ALTER TABLE @.plain ALTER COLUMN a TYPE BIGINT")
    plain("ALTER TABLE @.plain ALTER COLUMN t COMMENT 'texts'")
    assert plain("DESCRIBE @.plain") == [
        ("id", "bigint", None),
        ("kind", "bigint", None),
        ("t", "string", "texts"),
        ("v", "array<float>", None),
        ("a", "bigint", "new"),
    ]
    assert plain("SELECT id, kind, a FROM @.plain WHERE kind = 1 AND id < 3") == [(1, 1, None)]
    assert held(plain).schema.names == ["id", "kind", "t", "v", "a"]
    before = held(plain).version
    for statement, error in {
        "ADD COLUMN id INT": "id",
        "DROP COLUMN nothing": "nothing",
        "ALTER COLUMN id TYPE INT": "id",
        "SET TBLPROPERTIES (a = 'b')": "no properties",
        "ADD COLUMN c INT FIRST": "added last",
    }.items():
        with pytest.raises(Exception, match=error):
            plain(f"ALTER TABLE @.plain {statement}")
    assert held(plain).version == before


def test_columns_come_with_rows(plain: Sql) -> None:
    frame = plain.spark.sql("SELECT 50L AS id, 1L AS k, 'x' AS t, CAST(NULL AS ARRAY<FLOAT>) AS v, 2.5D AS price")
    frame.writeTo(f"{plain.name}.plain").option("mergeSchema", "true").append()
    assert plain("SELECT id, price FROM @.plain WHERE id >= 9 ORDER BY id") == [(9, None), (50, 2.5)]


def test_procedures_on_a_plain_table(plain: Sql) -> None:
    plain("DELETE FROM @.plain WHERE id = 3 OR id % 100 = 50")
    first = held(plain).version
    assert plain("CALL @.system.create_tag(table => 'plain', name => 'first')") == [("first", first)]
    assert plain("CALL @.system.compact(table => 'plain')")[0][0] == 1
    assert len(held(plain).get_fragments()) == 1
    assert plain("CALL @.system.create_index(table => 'plain', column => 'id')")[0][0] == 1
    assert [index.name for index in held(plain).describe_indices()] == ["id_idx"]
    plain("INSERT INTO @.plain VALUES (20, 0, 'late', NULL)")
    plain("CALL @.system.optimize_indices(table => 'plain')")
    assert held(plain).stats.index_stats("id_idx")["num_unindexed_rows"] == 0
    assert ids(plain, "id = 20") == [20]
    plain("CALL @.system.drop_index(table => 'plain', name => 'id_idx')")
    assert not held(plain).describe_indices()
    assert plain("SELECT count(*) FROM @.plain VERSION AS OF 'first'") == [(9,)]
    plain("CALL @.system.rollback(table => 'plain', version => 'first')")
    assert 20 not in ids(plain)
    plain("CALL @.system.expire(table => 'plain', age => '0s')")
    assert sorted(each["version"] for each in held(plain).versions()) == [first, held(plain).version]
    assert plain("CALL @.system.drop_tag(table => 'plain', name => 'first')") == [("first", first)]
    for call, error in {
        "rewrite(table => 'plain')": "no rewrite",
        "add_partition_field(table => 'plain', field => 'k')": "no add_partition_field.*PARTITIONED BY",
        "drop_index(table => 'plain', name => 'gone')": "no index 'gone'",
        "drop_tag(table => 'plain', name => 'gone')": "no tag 'gone'",
        "create_index(table => 'plain', column => 'nope')": "no column 'nope'",
        "rollback(table => 'plain', version => '999')": "no version 999",
        "rollback(table => 'plain', timestamp => TIMESTAMP '2026-01-31 12:00:00')": "not to a moment",
    }.items():
        with pytest.raises(Exception, match=error):
            plain(f"CALL @.system.{call}")


@pytest.mark.slow
def test_plain_tables_are_searched(plain: Sql) -> None:
    found = plain("SELECT id FROM lance_search(table => '@.plain', query => array(3.2F, 0F), k => 2)")
    assert [row[0] for row in found] == [3, 4]
    found = plain("SELECT id FROM lance_search(table => '@.plain', text => 'word 7', text_column => 't', k => 1)")
    assert found == [(7,)]
    lateral = plain("""SELECT q.n, s.id FROM (SELECT id AS n, array(CAST(id AS FLOAT), 0F) AS q FROM range(2)) q,
                       LATERAL lance_search(table => '@.plain', query => q.q, k => 1) s ORDER BY 1""")
    assert lateral == [(0, 0), (1, 1)]


@pytest.mark.parametrize("registered", [False, True])
def test_a_plain_table_is_replaced_by_a_partitioned_one(plain: Sql, registered: bool) -> None:
    name = "ns.plain" if registered else "plain"
    if registered:
        catalog = lp.DirectoryNamespace(root=plain.root, manifest_enabled=True)
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, pa.schema([("id", pa.int64())])) as stream:
            stream.write_table(pa.table({"id": [1]}))
        catalog.create_table(CreateTableRequest(id=["ns", "plain"]), sink.getvalue())
        assert plain(f"SELECT * FROM @.{name}") == [(1,)]
    directories = plain.directories
    with pytest.raises(Exception, match="wrong"):
        plain(f"CREATE OR REPLACE TABLE @.{name} AS SELECT raise_error('wrong') AS a FROM range(3)")
    assert plain(f"SELECT count(*) FROM @.{name}") == [(1 if registered else 10,)]
    plain(f"CREATE OR REPLACE TABLE @.{name} PARTITIONED BY (k) AS SELECT id, id % 3 AS k FROM range(9)")
    assert plain(f"SELECT count(*), sum(id) FROM @.{name} WHERE k = 1") == [(3, 12)]
    assert plain(f"SHOW PARTITIONS @.{name}") == [("k=0",), ("k=1",), ("k=2",)]
    assert plain.directories == directories
    plain(f"DROP TABLE @.{name}")
    assert plain("SHOW TABLES IN @.ns" if registered else "SHOW TABLES IN @") == []
