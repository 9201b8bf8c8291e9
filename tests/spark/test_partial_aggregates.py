"""Aggregates right above a scan are begun in Python, and give what Spark gives over Parquet."""

from __future__ import annotations

import itertools
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from tests.spark.data import Pair
from tests.support.tiers import one_in

KEYS = (
    "",
    "text",
    "code",
    "day",
    "flag, i8",
    "ts",
    "ntz",
    "nanos",
    "price",
    "wide",
    "u64",
    "i16, text",
    "big, flag",
)
CONDITIONS = (
    "true",
    "price > 0.00",
    "day >= DATE '2024-06-30' AND i8 < 100Y",
    "id = 7",
    "text IS NULL",
    "i32 > 999999",
)
AGGREGATES = (
    "sum(price), count(*)",
    "sum(price * (1 - price)), avg(price * price), sum(price + 2 * price - 0.5)",
    "sum(i8), sum(i16), sum(i32), count(i32), count(text, day)",
    "min(day), max(day), min(ts), max(ntz), min(nanos), max(i8), min(id), max(price), min(wide), max(u64)",
    "count(1), sum(price * price * price)",
    "sum(price) / count(price) + max(i16)",
)
LEFT_TO_SPARK = (
    "sum(f64)",
    "sum(id)",
    "avg(i32)",
    "sum(wide)",
    "count(DISTINCT text)",
    "sum(price) FILTER (WHERE i8 > 0)",
    "min(f64)",
    "min(text)",
    "try_sum(price)",
    "sum(price / 3)",
    "sum(cast(price AS DECIMAL(10,1)))",
    "bit_and(i8)",
)


@pytest.fixture
def session(spark: Any, pairs: dict[str, Pair]) -> Any:
    made = spark.newSession()
    for name in ("types", "b16", "b8", "evolved"):
        made.read.format("lancepart").load(pairs[name].root).createOrReplaceTempView(f"l_{name}")
        made.read.parquet(pairs[name].parquet).createOrReplaceTempView(f"p_{name}")
    return made


def answers(session: Any, query: str) -> list[Counter[str]]:
    """A query's rows over our tables and over Parquet."""
    return [Counter(repr(tuple(row)) for row in session.sql(query.format(side)).collect()) for side in "lp"]


def is_begun(session: Any, query: str) -> bool:
    """Whether Python begins the aggregation of a query over our tables."""
    return "partial aggregates by" in str(session.sql(query.format("l"))._jdf.queryExecution().sparkPlan().toString())


def asked(aggregates: str, keys: str, condition: str = "true", table: str = "types") -> str:
    grouped = f"GROUP BY {keys}" if keys else ""
    return f"SELECT {', '.join(filter(None, [keys, aggregates]))} FROM {{0}}_{table} WHERE {condition} {grouped}"


@pytest.mark.parametrize("start", one_in(12, range(12)))
def test_aggregates_are_those_of_spark(session: Any, start: int) -> None:
    for aggregates, keys, condition in itertools.islice(
        itertools.product(AGGREGATES, KEYS, CONDITIONS), start, None, 72
    ):
        query = asked(aggregates, keys, condition)
        ours, theirs = answers(session, query)
        assert ours == theirs, query
        assert is_begun(session, query), query


@pytest.mark.parametrize("start", one_in(4, range(4)))
def test_what_may_differ_is_left_to_spark(session: Any, start: int) -> None:
    for aggregate in LEFT_TO_SPARK[start::4]:
        query = asked(f"{aggregate}, count(*)", "flag")
        ours, theirs = answers(session, query)
        assert not is_begun(session, query), query
        if "f64" not in query:
            assert ours == theirs, query


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "SELECT flag, count(*) FROM {}_types WHERE i8 % 2 = 0 GROUP BY flag",
        "SELECT i8 % 3, count(*) FROM {}_types GROUP BY i8 % 3",
        "SELECT f64, count(*) FROM {}_types GROUP BY f64",
        "SELECT flag, count(*) FROM {}_types WHERE f64 > 1.5D GROUP BY flag",
        "SELECT country, count(*) FROM {}_types GROUP BY country",
        "SELECT sum(price) FROM (SELECT price FROM {}_types LIMIT 7)",
    ],
)
def test_what_is_not_right_above_a_scan_is_left_to_spark(session: Any, query: str) -> None:
    assert not is_begun(session, query)


def test_aggregates_come_twice_and_below_joins(session: Any) -> None:
    """One in a subquery, the same again, and one above which a join, a window and a sort are."""
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "1m")
    revenue = "(SELECT day, sum(price) AS total FROM {0}_types WHERE price > 0.00 GROUP BY day)"
    queries = (
        f"SELECT * FROM {revenue} r WHERE total = (SELECT max(total) FROM {revenue} s)",
        f"SELECT t.i16, r.total FROM {{0}}_types t JOIN {revenue} r ON t.day = r.day WHERE t.price < r.total",
        "SELECT i16 FROM {0}_types WHERE price < (SELECT avg(price * price) FROM {0}_b16)",
        f"SELECT day, total, rank() OVER (ORDER BY total DESC) AS place FROM {revenue} ORDER BY place LIMIT 5",
        "SELECT DISTINCT country, flag FROM {0}_types",
        "SELECT flag, sum(price) AS s FROM {0}_evolved GROUP BY flag HAVING sum(price) > 0 AND count(*) > 1",
        "SELECT flag, day, sum(price) FROM {0}_types GROUP BY ROLLUP(flag, day)",
    )
    for query in queries:
        ours, theirs = answers(session, query)
        assert ours == theirs, query


@pytest.mark.slow
def test_overflow_is_sparks(spark: Any, tmp_path: Any) -> None:
    """A product of more digits than decimals have fails, or is NULL where Spark is told so and computes all itself."""
    schema = pa.schema([("k", pa.int32()), ("d", pa.decimal128(18, 2))])
    rows = [{"k": n % 2, "d": Decimal("9999999999999999.99") if n % 2 else Decimal("1.00")} for n in range(10)]
    table = lp.create_table(tmp_path / "t", schema, ["bucket(2, k)"])
    table.append(rows)
    session = spark.newSession()
    session.read.format("lancepart").load(str(tmp_path / "t")).createOrReplaceTempView("t")
    query = "SELECT k, sum(d * d), sum(d * d * d), avg(d) FROM t GROUP BY k"
    answers = []
    for enabled in ("true", "false"):
        session.conf.set("spark.lancepart.partialAggregates", enabled)
        session.conf.set("spark.sql.ansi.enabled", "false")
        answers.append(Counter(map(tuple, session.sql(query).collect())))
        session.conf.set("spark.sql.ansi.enabled", "true")
        with pytest.raises(Exception, match=r"more than 38 digits|NUMERIC_VALUE_OUT_OF_RANGE|ARITHMETIC_OVERFLOW"):
            session.sql(query).collect()
    assert answers[0] == answers[1]

    session.conf.set("spark.lancepart.partialAggregates", "true")
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW lenient AS {query}")
    session.conf.set("spark.sql.ansi.enabled", "true")
    assert Counter(map(tuple, session.sql("SELECT * FROM lenient").collect())) == answers[1]
