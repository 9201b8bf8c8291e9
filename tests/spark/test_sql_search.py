"""``lance_search`` in SQL: the rows that ``table.search`` finds, with constants and for the rows of another table."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from tests.spark.warehouse import Sql

pytest.importorskip("pyspark")
SECRET = "very-secret-value"
WORDS = ("red", "green", "blue", "apple", "pear", "plum", "old", "new")


@pytest.fixture(scope="module")
def table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lp.PartitionedTable]:
    """A table of a path, with vectors, texts and columns of many types, and a second snapshot."""
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("k", pa.string()),
            ("t", pa.string()),
            ("v", pa.list_(pa.float32(), 4)),
            ("at", pa.timestamp("us", "UTC")),
            ("price", pa.decimal128(10, 2)),
            ("tags", pa.map_(pa.string(), pa.int32())),
            ("day", pa.date32()),
        ]
    )
    made = lp.create_table(str(tmp_path_factory.mktemp("search") / "t"), schema, ["k"])
    draw = np.random.default_rng(5)
    made.append(pa.Table.from_pylist([row(draw, n) for n in range(60)], schema))
    made.tags.create("first", made.version)
    made.append(pa.Table.from_pylist([row(draw, n) for n in range(60, 70)], schema))
    draws = [(n, [float(x) for x in draw.normal(size=4)], f"{WORDS[n]} apple", "abc"[n % 3]) for n in range(5)]
    frame = spark.createDataFrame(
        [*draws, (9, None, None, "a")], "q bigint, vec array<float>, words string, part string"
    )
    frame.createOrReplaceTempView("queries")
    yield made
    spark.catalog.dropTempView("queries")


def row(draw: np.random.Generator, n: int) -> dict[str, Any]:
    return {
        "id": n,
        "k": "abc"[n % 3],
        "t": " ".join(draw.choice(WORDS, 4)),
        "v": draw.normal(size=4).tolist(),
        "at": n * 1_000_000,
        "price": None if n % 7 == 0 else n,
        "tags": [("n", n)],
        "day": n,
    }


def ranked(spark: Any, call: str, value: str = "_distance") -> list[tuple[int, float]]:
    return [(each["id"], round(each[value], 4)) for each in spark.sql(f"SELECT id, {value} FROM {call}").collect()]


def expected(search: Any, value: str = "_distance") -> list[tuple[int, float]]:
    return [(each["id"], round(each[value], 4)) for each in search.to_list()]


def test_a_search_with_constants_finds_what_python_finds(spark: Any, table: lp.PartitionedTable) -> None:
    given = "query => array(0.1, 0.2, -0.3, 0), column => 'v', k => 4"
    query = [0.1, 0.2, -0.3, 0.0]
    assert ranked(spark, f"lance_search(table => '{table.root}', {given})") == expected(table.search(query, "v", 4))
    narrowed = f"lance_search(table => '{table.root}', {given}, where => \"k <> 'b' AND id > 10\", version => 'first')"
    wanted = table.search(query, "v", 4, "k <> 'b' AND id > 10", version="first")
    assert ranked(spark, narrowed) == expected(wanted)


def test_a_search_for_the_rows_of_another_table_finds_the_best_of_each(spark: Any, table: lp.PartitionedTable) -> None:
    found = spark.sql(
        f"""SELECT q.q, s.id, s._distance FROM queries q,
            LATERAL lance_search(table => '{table.root}', query => q.vec, k => 3,
                                 where => concat("k = '", q.part, "'")) s"""
    ).collect()
    given = spark.table("queries").where("vec IS NOT NULL").collect()
    wanted = [
        (each["q"], *hit)
        for each in given
        for hit in expected(table.search(each["vec"], k=3, where=f"k = '{each['part']}'"))
    ]
    assert sorted((q, n, round(d, 4)) for q, n, d in found) == sorted(wanted)


@pytest.mark.slow
def test_the_plan_shows_no_credentials_and_explaining_searches_nothing(
    spark: Any, table: lp.PartitionedTable, tmp_path: Any
) -> None:
    name = "secretive_search"
    spark.conf.set(f"spark.sql.catalog.{name}", "io.lancepart.spark.LanceCatalog")
    spark.conf.set(f"spark.sql.catalog.{name}.warehouse", str(tmp_path))
    spark.conf.set(f"spark.sql.catalog.{name}.storage.aws_secret_access_key", SECRET)
    spark.sql(f"CREATE NAMESPACE {name}.ns")
    spark.sql(f"CREATE TABLE {name}.ns.t (id BIGINT, t STRING) PARTITIONED BY (id)")
    spark.sql(f"INSERT INTO {name}.ns.t VALUES (1, 'red apple'), (2, 'plum')")
    constant = spark.sql(f"SELECT * FROM lance_search('{name}.ns.t', 't', 'apple', 5)")
    lateral = spark.sql(f"SELECT s.* FROM queries q, LATERAL lance_search('{name}.ns.t', 't', q.words) s")
    for frame, count in ((constant, 1), (lateral, 5)):
        shown = explained(frame)
        assert "lance_search" in shown
        assert SECRET not in shown + str(frame._jdf.queryExecution().toString())
        assert frame.count() == count


def explained(frame: Any) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.explain(True)
    return printed.getvalue()


@pytest.mark.slow
def test_texts_both_kinds_and_all_columns(spark: Any, table: lp.PartitionedTable) -> None:
    text = f"lance_search(table => '{table.root}', query => 'red plum', column => 't', k => 5)"
    assert ranked(spark, text, "_score") == expected(table.search("red plum", "t", 5), "_score")
    own = text[:-1] + ", where => \"k = 'a'\", statistics => 'partition')"
    wanted = table.search("red plum", "t", 5, "k = 'a'", statistics="partition")
    assert ranked(spark, own, "_score") == expected(wanted, "_score")
    both = f"lance_search('{table.root}', 'v', array(0, 0, 1, 0.5D), 5, text => 'red plum', text_column => 't')"
    wanted = table.search(hybrid=([0, 0, 1, 0.5], "red plum"), column=("v", "t"), k=5)
    assert ranked(spark, both, "_relevance_score") == expected(wanted, "_relevance_score")

    whole = spark.sql(
        f"SELECT * FROM lance_search('{table.root}', 'v', array(1, 1, 1, 1), 70, with_row_id => true)"
    ).collect()
    by_python = table.search([1, 1, 1, 1], "v", 70, with_row_id=True).to_list()
    plain = spark.read.format("lancepart").load(table.root).collect()
    columns = table.schema.names
    assert [each["_rowid"] for each in whole] == [each["_rowid"] for each in by_python]
    assert sorted([each[name] for name in columns] for each in whole) == sorted(
        [each[name] for name in columns] for each in plain
    )
    lateral = spark.sql(
        f"SELECT s.* FROM queries q, LATERAL lance_search('{table.root}', 'v', q.vec, 70) s WHERE q.q = 1"
    ).collect()
    assert sorted([each[name] for name in columns] for each in lateral) == sorted(
        [each[name] for name in columns] for each in plain
    )


@pytest.mark.slow
def test_counts_joins_filters_and_batches_of_constants(spark: Any, table: lp.PartitionedTable) -> None:
    call = f"lance_search('{table.root}', 'v', array(1, 1, 1, 1), 7)"
    assert spark.sql(f"SELECT count(*) FROM {call}").collect()[0][0] == 7
    best = [each["id"] for each in table.search([1] * 4, "v", 7, columns=["id"]).to_list()]
    assert [each["id"] for each in spark.sql(f"SELECT id FROM {call} WHERE id % 2 = 0").collect()] == [
        n for n in best if n % 2 == 0
    ]
    joined = spark.sql(f"SELECT a.id FROM {call} a JOIN {call} b ON a.id = b.id ORDER BY a._distance").collect()
    assert [each["id"] for each in joined] == best
    many = spark.sql(f"SELECT * FROM lance_search('{table.root}', 'v', array(array(1, 1, 1, 1), array(0, 0, 0, 1)), 2)")
    assert [each["_query_index"] for each in many.collect()] == [0, 0, 1, 1]
    given = spark.sql(
        f"SELECT id FROM lance_search('{table.root}', 'v', :query, :k)", args={"query": [1.0, 1.0, 1.0, 1.0], "k": 7}
    )
    assert [each["id"] for each in given.collect()] == best
    left = spark.sql(
        f"SELECT q.q, s.id FROM queries q LEFT JOIN LATERAL lance_search('{table.root}', 'v', q.vec, 1) s ON true"
    ).collect()
    assert [each["id"] for each in left if each["q"] == 9] == [None]
    assert len(left) == 6
    tagged = f"SELECT count(*) FROM lance_search('{table.root}', 'v', array(1, 1, 1, 1), 100, version => 'first')"
    assert spark.sql(tagged).collect()[0][0] == 60
    hybrid = spark.sql(
        f"""SELECT q.q, s.id, s._relevance_score FROM queries q, LATERAL lance_search(table => '{table.root}',
            column => 'v', query => q.vec, text => q.words, text_column => 't', k => 2, columns => array('id')) s"""
    ).collect()
    assert len(hybrid) == 10


@pytest.mark.slow
def test_names_of_tables_are_those_of_the_session(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.notes (id BIGINT, t STRING) PARTITIONED BY (id)")
    sql("INSERT INTO @.ns.notes VALUES (1, 'red apple'), (2, 'plum')")
    before = sql.spark.catalog.currentCatalog()
    try:
        sql("USE @.ns")
        for name in ("@.ns.notes", "ns.notes", "notes", "`ns`.`notes`"):
            assert sql(f"SELECT id FROM lance_search(table => '{name}', query => 'apple')") == [(1,)]
    finally:
        sql.spark.catalog.setCurrentCatalog(before)
        sql("USE default")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("query => array(1, 1, 1, 1)", "needs a table"),
        ("table => '#', query => array(1, 1)", "2 numbers, and column 'v' holds vectors of 4"),
        ("table => '#', query => 'x', colum => 'v'", "no argument 'colum'.*column"),
        ("table => '#', query => 'x', k => 0", "k is 0"),
        ("table => '#', query => 'x', column => 'none'", "no column 'none'"),
        ("table => '#', query => array(1, 1, 1, 1), where => 'nonsense ='", "nonsense"),
        ("table => '#', query => map('a', 1)", "give a text, a number"),
        ("table => '#', query => array(CAST('NaN' AS DOUBLE), 1, 1, 1)", "query"),
        ("table => '#', query => array(1, 1, 1, 1), version => 'nothing'", "nothing"),
        ("table => 'lance_nowhere', query => 'x'", "no tables of lancepart"),
        ("table => '#/missing', query => 'x'", "missing"),
        ("'#', 'v', array(1, 1, 1, 1), 3, NULL, 5", "name all others"),
    ],
)
def test_what_makes_no_sense_is_refused(spark: Any, table: lp.PartitionedTable, call: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        spark.sql(f"SELECT * FROM lance_search({call.replace('#', table.root)})").collect()


@pytest.mark.slow
def test_only_queries_texts_and_filters_may_vary(spark: Any, table: lp.PartitionedTable) -> None:
    for arguments, said in (
        ("query => q.vec, k => q.q", "k of lance_search is not a constant"),
        ("query => q.q", "give a vector or a text"),
        ("query => q.vec, column => 't'", "'t'"),
    ):
        with pytest.raises(Exception, match=said):
            spark.sql(f"SELECT * FROM queries q, LATERAL lance_search(table => '{table.root}', {arguments})").collect()
    with pytest.raises(Exception, match="not a constant"):
        spark.sql("SELECT * FROM queries q, LATERAL lance_search(table => q.part, query => q.vec)").collect()
