"""TPC-DS in Spark SQL: the rows of the same queries over Parquet, and a session that keeps nothing of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from benchmarks.tpc import differing
from benchmarks.tpc_data import DS, GENERATOR
from benchmarks.tpc_session import Held, held, parsed, settled
from benchmarks.tpc_tables import OURS, PARQUET, Suite, opened

pytestmark = pytest.mark.slow

SCALE = 0.01
SPOKEN = 91
"""How many of the 99 texts are Spark's SQL too."""
DEEP = ("ds4", "ds14", "ds23", "ds64", "ds72")
MORE_HEAP = 32 << 20
ROUNDS = 3
"""What leaks does so in each round; Spark lets go of some things late, so that a single round may show more."""


@pytest.fixture(scope="module")
def suite(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """TPC-DS's tables, ours and Parquet files, in a session with Spark's own settings of joins."""
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "1m")
    session.conf.unset("spark.lancepart.inlineBytes")
    made = opened(session, DS, tmp_path_factory.mktemp("tpcds"), SCALE)
    if made is None:
        pytest.skip(f"{GENERATOR}, which makes the data, can't be installed")
    made.prepare((OURS, PARQUET))
    return made


def test_all_queries_of_tpcds_give_the_rows_of_parquet(suite: Suite) -> None:
    known = parsed(suite)
    assert len(known) >= SPOKEN
    found = {each: differing(suite.rows(OURS, each), suite.rows(PARQUET, each)) for each in known}
    assert {name: difference for name, difference in found.items() if difference} == {}


def test_the_deepest_queries_leave_nothing_behind(suite: Suite) -> None:
    first = {each: suite.rows(OURS, each) for each in DEEP}
    held(suite.spark)
    rounds = []
    for _ in range(ROUNDS):
        before = held(suite.spark)
        again = {each: suite.rows(OURS, each) for each in DEEP}
        assert {each for each in DEEP if differing(first[each], again[each])} == set()
        after = settled(suite.spark, partial(leaves_nothing, before))
        rounds.append((before, after))
        if leaves_nothing(before, after):
            break

    assert leaves_nothing(*rounds[-1]), rounds


def leaves_nothing(before: Held, after: Held) -> bool:
    return (
        after.plans <= before.plans
        and after.heap <= before.heap + MORE_HEAP
        and after.own_threads <= before.own_threads
        and after.processes <= before.processes + 2
        and after.files <= before.files + 16
        and after.python_files <= before.python_files + 16
        and after.temporary <= before.temporary
    )
