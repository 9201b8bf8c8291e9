"""Keys cost a task each: a scan has them where a join or a grouping has a use for them, and nowhere else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.spark.data import Pair

BROADCAST = "spark.sql.autoBroadcastJoinThreshold"


@pytest.fixture
def session(spark: Any, pairs: dict[str, Pair]) -> Any:
    """A session that sends small sides of joins around, which the others do not."""
    made = spark.newSession()
    made.conf.set(BROADCAST, "10m")
    for name in ("b16", "b8", "places"):
        made.read.format("lancepart").load(pairs[name].root).createOrReplaceTempView(f"l_{name}")
        made.read.parquet(pairs[name].parquet).createOrReplaceTempView(f"p_{name}")
    return made


def keys(frame: Any) -> list[int]:
    """How many keys each scan of a query has."""
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    return [leaves.apply(at).outputPartitioning().numPartitions() for at in range(leaves.size())]


def check(session: Any, query: str) -> list[int]:
    """The keys of the scans of a query whose rows are those of Parquet."""
    frame = session.sql(query.format("l"))
    answer, expected = (Counter(map(tuple, each.collect())) for each in (frame, session.sql(query.format("p"))))
    assert answer == expected
    return keys(frame)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "RIGHT JOIN", "FULL JOIN"])
def test_a_join_by_broadcast_needs_no_keys(session: Any, kind: str) -> None:
    query = f"SELECT a.id, a.text FROM {{0}}_b16 a {kind} {{0}}_b8 b ON a.id = b.id AND a.day < b.day"
    assert (check(session, query) == [0, 0]) is (kind != "FULL JOIN")
    session.conf.set(BROADCAST, "-1")
    assert min(check(session, query)) > 1


@pytest.mark.slow
def test_a_grouping_by_other_columns_needs_no_keys(session: Any) -> None:
    assert check(session, "SELECT text, count(*) FROM {0}_places GROUP BY text, day") == [0]
    assert check(session, "SELECT country, count(*) FROM {0}_places GROUP BY country, day")[0] > 1
    ranked = "SELECT id, row_number() OVER (PARTITION BY {} ORDER BY id, i32) FROM {{0}}_places"
    assert check(session, ranked.format("text")) == [0]
    assert check(session, ranked.format("country"))[0] > 1


@pytest.mark.slow
def test_a_side_that_is_sent_around_below_a_join_by_key_lies_as_it_likes(session: Any) -> None:
    query = """SELECT /*+ MERGE(b) */ a.id, c.text FROM {0}_b16 a JOIN {0}_b8 b ON a.id = b.id
        JOIN {0}_places c ON a.country = c.country"""
    least, *others = sorted(check(session, query))
    assert least == 0
    assert min(others) > 1


@pytest.mark.slow
def test_a_join_has_a_use_for_the_keys_that_it_goes_by(session: Any) -> None:
    """Under another name too, out of a grouping, and where a union hides what became of a column."""
    session.conf.set(BROADCAST, "-1")
    joined = "SELECT a.i32, b.text FROM {{0}}_b16 a JOIN {} b ON {}"

    assert check(session, joined.format("{0}_b8", "a.country = b.country AND a.i32 = b.i32")) == [0, 0]
    assert min(check(session, joined.format("{0}_b8", "a.id = b.id"))) > 1
    renamed = "(SELECT id AS other, text FROM {0}_b8)"
    assert min(check(session, joined.format(renamed, "a.id = b.other"))) > 1
    grouped = "(SELECT id AS other, max(text) AS text FROM {0}_b8 GROUP BY id)"
    assert min(check(session, joined.format(grouped, "a.id = b.other"))) > 1
    both = "(SELECT id AS other, text FROM {0}_b8 UNION ALL SELECT id, text FROM {0}_b16)"
    assert min(check(session, joined.format(both, "a.id = b.other"))) > 1
