"""Small tables whose rows come with their plan: the rows that Parquet has, of every type, and joins by key."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.spark.data import Pair
from tests.spark.test_joins import plan_of

JOIN = "SELECT a.id, b.text FROM {0} a JOIN {0} b ON a.id = b.id WHERE a.i32 > 0"


@pytest.fixture
def session(spark: Any) -> Any:
    """A session that takes rows with a plan, as sessions do unless they are told otherwise."""
    made = spark.newSession()
    made.conf.unset("spark.lancepart.inlineBytes")
    return made


def views(session: Any, pair: Pair) -> None:
    session.read.format("lancepart").load(pair.root).createOrReplaceTempView("ours")
    session.read.parquet(pair.parquet).createOrReplaceTempView("theirs")


def answer(session: Any, query: str) -> Counter[str]:
    return Counter(map(str, session.sql(query).collect()))


def has_worker(session: Any, query: str) -> bool:
    """Whether a query's scans read with Python workers."""
    frame = session.sql(query)
    frame.collect()
    return "returned from Python" in str(_metrics(frame._jdf.queryExecution().executedPlan()))


def _metrics(plan: Any) -> list[str]:
    inner = plan.executedPlan() if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec" else plan
    leaves = inner.collectLeaves()
    each = [leaves.apply(at) for at in range(leaves.size())]
    scans = [leaf.plan() if leaf.getClass().getSimpleName().endswith("StageExec") else leaf for leaf in each]
    return [str(scan.metrics()) for scan in scans]


@pytest.mark.slow
def test_small_tables_have_the_rows_of_parquet(session: Any, pairs: dict[str, Pair]) -> None:
    for name in ("types", "mixed", "evolved", "many"):
        views(session, pairs[name])
        columns = ", ".join(f"cast({each} AS string) AS {each}" for each in session.table("ours").columns)
        query = f"SELECT {columns} FROM {{}}"
        assert answer(session, query.format("ours")) == answer(session, query.format("theirs")), name


def test_small_tables_need_no_worker_and_keep_their_keys(session: Any, pairs: dict[str, Pair]) -> None:
    views(session, pairs["b16"])
    assert not has_worker(session, "SELECT id, text FROM ours WHERE i32 > 0")
    assert answer(session, JOIN.format("ours")) == answer(session, JOIN.format("theirs"))
    session.conf.set("spark.lancepart.inlineBytes", "0")
    assert has_worker(session, "SELECT id, text FROM ours WHERE i32 > 0")


@pytest.mark.slow
def test_keys_of_rows_that_are_there_save_a_shuffle(session: Any, pairs: dict[str, Pair]) -> None:
    views(session, pairs["b16"])
    assert "Exchange hashpartitioning" not in plan_of(session.sql(JOIN.format("ours")))
