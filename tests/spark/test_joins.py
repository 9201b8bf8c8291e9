"""Joins that read both sides as they lie: no Exchange in the plan, and the rows of a join over Parquet."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from tests.spark.test_sweep import rows_of
from tests.support.tiers import one_in

JOINED = [
    ("b16", "b8", "a.id = b.id"),
    ("b8", "b16", "a.id = b.id"),
    ("b16", "b12", "a.id = b.id"),
    ("b8", "b8", "a.id = b.id"),
    ("mixed", "b8", "a.id = b.id"),
    ("one", "b16", "a.id = b.id"),
    ("places", "places", "a.country = b.country"),
    ("places", "places2", "a.country = b.country"),
    ("places2", "places2", "a.country = b.country AND a.id = b.id"),
    ("types", "places2", "a.id = b.id AND a.country = b.country"),
    ("days", "months", "a.day = b.day"),
    ("days", "years", "a.day = b.day"),
    ("months", "years", "a.day = b.day"),
    ("hours", "tsyears", "a.ts = b.ts"),
    ("days", "days", "a.day = b.day"),
    ("dates", "dates", "a.day = b.day"),
    ("dates", "months", "a.day = b.day"),
    ("dom", "dom", "a.day = b.day"),
    ("prefix", "prefix", "a.text = b.text"),
    ("tens", "tens", "a.i32 = b.i32"),
    ("b16", "b8", "a.id = b.id AND a.text = b.text"),
]
SHUFFLED = [
    ("dom", "moy", "a.day = b.day"),
    ("dom", "months", "a.day = b.day"),
    ("b8", "b8", "a.text = b.text"),
    ("b8", "places", "a.id = b.id"),
    ("evolved", "b8", "a.id = b.id"),
    ("many", "many", "a.id = b.id AND a.country = b.country"),
]
KINDS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]


def query(side: str, left: str, kind: str, right: str, on: str) -> str:
    """A join of two views; a semi join shows only its left side."""
    shown = "a.id, a.text" if "SEMI" in kind or "ANTI" in kind else "a.id, a.text, b.id, b.text"
    return f"SELECT {shown} FROM {side}_{left} a {kind} {side}_{right} b ON {on}"


def plan_of(frame: Any, mode: str = "simple") -> str:
    """The physical plan as EXPLAIN prints it."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.explain(mode)
    assert "Physical Plan" in printed.getvalue()
    return printed.getvalue()


@pytest.mark.parametrize(("left", "right", "on"), one_in(3, JOINED))
def test_a_join_reads_both_sides_as_they_lie(left: str, right: str, on: str, spark: Any, pairs: dict[str, Any]) -> None:
    frame = spark.sql(query("l", left, "JOIN", right, on))

    assert "Exchange" not in plan_of(frame)
    assert rows_of(frame) == rows_of(spark.sql(query("p", left, "JOIN", right, on)))


@pytest.mark.parametrize(("left", "right", "on"), one_in(3, SHUFFLED))
def test_a_join_that_partitions_do_not_serve_is_shuffled(
    left: str, right: str, on: str, spark: Any, pairs: dict[str, Any]
) -> None:
    frame = spark.sql(query("l", left, "JOIN", right, on))

    assert "Exchange" in plan_of(frame)
    assert rows_of(frame) == rows_of(spark.sql(query("p", left, "JOIN", right, on)))


@pytest.mark.parametrize("kind", one_in(3, KINDS))
@pytest.mark.parametrize(("left", "right", "on"), [("b16", "b8", "a.id = b.id"), ("days", "months", "a.day = b.day")])
def test_every_kind_of_join(left: str, right: str, on: str, kind: str, spark: Any, pairs: dict[str, Any]) -> None:
    frame = spark.sql(query("l", left, kind, right, on))

    assert "Exchange" not in plan_of(frame)
    assert rows_of(frame) == rows_of(spark.sql(query("p", left, kind, right, on)))


def test_sixteen_buckets_meet_eight_in_eight_groups(spark: Any, pairs: dict[str, Any]) -> None:
    frame = spark.sql("SELECT o.*, c.text FROM l_b16 o JOIN l_b8 c ON o.id = c.id WHERE o.id IS NOT NULL")

    assert frame.rdd.getNumPartitions() == 8
    assert "Exchange" not in plan_of(frame)


def test_a_group_by_the_partition_column_needs_no_shuffle(spark: Any, pairs: dict[str, Any]) -> None:
    frame = spark.sql("SELECT country, count(*), sum(i32) FROM l_places GROUP BY country")

    assert "Exchange" not in plan_of(frame)
    assert rows_of(frame) == rows_of(spark.sql("SELECT country, count(*), sum(i32) FROM p_places GROUP BY country"))


def test_a_filter_that_leaves_one_spec_version_brings_its_partitioning_back(spark: Any, pairs: dict[str, Any]) -> None:
    on = "a.country = b.country"
    shuffled = spark.sql(f"SELECT a.id FROM l_evolved a JOIN l_places b ON {on}")
    filtered = spark.sql(f"SELECT a.id, b.id FROM l_evolved a JOIN l_places b ON {on} WHERE a.day < DATE '2023-12-31'")

    assert "Exchange" in plan_of(shuffled)
    assert "Exchange" not in plan_of(filtered)
    assert rows_of(filtered) == rows_of(
        spark.sql(f"SELECT a.id, b.id FROM p_evolved a JOIN p_places b ON {on} WHERE a.day < DATE '2023-12-31'")
    )


def test_a_key_column_that_is_not_read_is_left_out_of_the_keys(spark: Any, pairs: dict[str, Any]) -> None:
    frame = spark.sql("SELECT a.text, b.text FROM l_places2 a JOIN l_places b ON a.country = b.country")

    assert "Exchange" not in plan_of(frame)
    assert rows_of(frame) == rows_of(
        spark.sql("SELECT a.text, b.text FROM p_places2 a JOIN p_places b ON a.country = b.country")
    )


def test_three_tables_join_without_a_shuffle(spark: Any, pairs: dict[str, Any]) -> None:
    text = "SELECT a.id FROM {0}_b16 a JOIN {0}_b8 b ON a.id = b.id JOIN {0}_one c ON b.id = c.id"

    assert "Exchange" not in plan_of(spark.sql(text.format("l")))
    assert rows_of(spark.sql(text.format("l"))) == rows_of(spark.sql(text.format("p")))


@pytest.fixture(scope="module")
def uneven(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two tables of which one is much smaller, with keys that are only in one of them, doubled or NULL."""
    folder = tmp_path_factory.mktemp("uneven")
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    for name, buckets, rows in (("large", 16, 20_000), ("small", 8, 700)):
        table = lp.create_table(str(folder / name), schema, [f"bucket(id, {buckets})"])
        ids = [None if n % 50 == 0 else n % 1_000 + (400 if name == "small" else 0) for n in range(rows)]
        table.append(pa.table({"id": ids, "text": [f"{name} {n}" for n in range(rows)]}, schema))
        spark.read.format("lancepart").load(table.root).createOrReplaceTempView(f"uneven_{name}")
    return str(folder)


@pytest.mark.parametrize("kind", one_in(3, KINDS))
@pytest.mark.parametrize(("left", "right"), [("large", "small"), ("small", "large")])
def test_a_side_that_is_much_smaller_is_held_in_memory(
    left: str, right: str, kind: str, spark: Any, uneven: str
) -> None:
    statement = query("uneven", left, kind, right, "a.id = b.id")
    hashed = spark.sql(statement)
    plan, rows = plan_of(hashed), rows_of(hashed)
    spark.conf.set("spark.lancepart.hashJoinBytes", "0")
    try:
        merged = spark.sql(statement)
        assert "SortMergeJoin" in plan_of(merged)
        assert rows == rows_of(merged)
    finally:
        spark.conf.unset("spark.lancepart.hashJoinBytes")

    kept = {"JOIN": True, "LEFT JOIN": right == "small", "RIGHT JOIN": left == "small", "FULL JOIN": False}
    assert ("ShuffledHashJoin" in plan) == kept.get(kind, right == "small")
    assert "Exchange" not in plan


def test_a_join_with_a_further_condition_is_sorted(spark: Any, uneven: str) -> None:
    by_keys = "SELECT a.id FROM uneven_large a JOIN uneven_small b ON a.id = b.id"
    assert "ShuffledHashJoin" in plan_of(spark.sql(by_keys))
    merged = spark.sql(f"{by_keys} AND a.text < b.text")
    assert "SortMergeJoin" in plan_of(merged)
    assert "Exchange" not in plan_of(merged)


def test_what_a_user_says_of_a_join_goes_before(spark: Any, uneven: str) -> None:
    hint = "SELECT /*+ MERGE(b) */ a.id FROM uneven_large a JOIN uneven_small b ON a.id = b.id"
    own = "spark.sql.autoBroadcastJoinThreshold"
    spark.conf.set(own, str(10 << 20))
    try:
        sent = spark.sql("SELECT a.id FROM uneven_large a JOIN uneven_small b ON a.id = b.id")
        assert "BroadcastHashJoin" in plan_of(sent)
    finally:
        spark.conf.set(own, "-1")

    assert "SortMergeJoin" in plan_of(spark.sql(hint))
