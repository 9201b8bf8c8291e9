"""Filters that Python applies just as Spark would are not applied again, and columns only for them do not travel."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from tests.spark.data import Pair
from tests.support.tiers import one_in

VALUES = {
    "id": ["0", "7", "39", "-1"],
    "i8": ["-128Y", "0Y", "127Y"],
    "i32": ["-60000", "0", "59000"],
    "text": ["''", "'ab'", "'é'", "'it''s'"],
    "big": ["''", "'ab'"],
    "day": ["DATE '2023-12-28'", "DATE '2024-06-30'"],
    "ts": ["TIMESTAMP '2023-11-05 03:59:59.999999Z'", "TIMESTAMP '2024-02-01 00:00:00Z'"],
    "ntz": ["TIMESTAMP_NTZ '2023-11-05 03:59:59.999999'"],
    "price": ["-125.00", "0.00", "3.25", "12345678.90", "3.255", "3"],
    "wide": ["0", "99999999999999999999.9999999999"],
    "u64": ["18446744073709551615", "0", "-1"],
    "f64": ["0.0D", "1.5D"],
    "flag": ["true"],
    "country": ["'US'", "'O''Neil'"],
}
CONDITIONS = [
    *(f"{column} {sign} {value}" for column, values in VALUES.items() for value in values for sign in ("=", "<", ">=")),
    *(f"NOT ({column} <=> {values[0]})" for column, values in VALUES.items()),
    *(f"{column} IN ({', '.join(values)})" for column, values in VALUES.items()),
    *(f"{column} NOT IN ({', '.join(values)})" for column, values in VALUES.items()),
    *(f"{column} IS NULL OR {column} > {values[0]}" for column, values in VALUES.items()),
]


@pytest.fixture
def session(spark: Any, pairs: dict[str, Pair]) -> Any:
    made = spark.newSession()
    for name in ("types", "b16", "b8"):
        made.read.format("lancepart").load(pairs[name].root).createOrReplaceTempView(f"l_{name}")
        made.read.parquet(pairs[name].parquet).createOrReplaceTempView(f"p_{name}")
    return made


def answers(session: Any, query: str) -> list[Counter[str]]:
    """A query's rows over our tables and over Parquet."""
    return [Counter(repr(tuple(row)) for row in session.sql(query.format(side)).collect()) for side in "lp"]


def plan(session: Any, query: str) -> str:
    return str(session.sql(query.format("l"))._jdf.queryExecution().sparkPlan().toString())


@pytest.mark.parametrize("start", one_in(8, range(8)))
def test_filters_keep_the_rows_that_spark_keeps(session: Any, start: int) -> None:
    """Alone, and with another one that Spark applies itself, on a column of its own or on the same."""
    for condition, more in itertools.islice(zip(CONDITIONS, reversed(CONDITIONS), strict=True), start, None, 8):
        ours, theirs = answers(session, f"SELECT i16, code FROM {{0}}_types WHERE {condition}")
        assert ours == theirs, condition
        ours, theirs = answers(session, f"SELECT i16 FROM {{0}}_types WHERE ({condition}) AND i16 % 2 = 0 AND ({more})")
        assert ours == theirs, (condition, more)


@pytest.mark.parametrize(
    ("where", "columns", "filtered"),
    [
        ("day >= DATE '2024-01-01' AND price < 3.25", {"i16"}, False),
        ("text = 'ab' AND text IS NOT NULL", {"i16"}, False),
        ("f64 > 1.5D AND day >= DATE '2024-01-01'", {"i16", "f64"}, True),
        ("length(text) = 2 AND text > 'a'", {"i16", "text"}, True),
        ("price < 3.255", {"i16", "price"}, None),
    ],
)
def test_columns_of_applied_filters_do_not_travel(
    session: Any, where: str, columns: set[str], filtered: bool | None
) -> None:
    found = plan(session, f"SELECT i16 FROM {{0}}_types WHERE {where}")

    scanned = next(line for line in found.splitlines() if "BatchScan" in line)
    shown = {part.split("#")[0].strip() for part in scanned.partition("[")[2].partition("]")[0].split(",")}
    assert shown <= columns
    assert filtered is None or ("Filter " in found) is filtered, found


@pytest.mark.slow
def test_a_count_under_a_filter_needs_some_column(session: Any) -> None:
    for query in ("SELECT count(*) FROM {}_types WHERE price > 0.00", "SELECT 1 FROM {}_types WHERE day IS NOT NULL"):
        ours, theirs = answers(session, query)
        assert ours == theirs


@pytest.mark.slow
def test_a_join_by_keys_keeps_them_under_applied_filters(session: Any) -> None:
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    query = "SELECT a.i32, b.text FROM {0}_b16 a JOIN {0}_b8 b ON a.id = b.id WHERE a.price > 0.00 AND b.id < 30"

    ours, theirs = answers(session, query)

    assert ours == theirs
    assert "Exchange" not in str(session.sql(query.format("l"))._jdf.queryExecution().executedPlan().toString())
