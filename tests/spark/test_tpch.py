"""TPC-H in Spark SQL: the rows of the same queries over Parquet."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import tpc
from benchmarks.tpc_data import GENERATOR, H
from benchmarks.tpc_tables import BY_COLUMNS, HIVE, OURS, PARQUET, Suite, opened

SCALE = 0.01
PRUNED = ("h3", "h4", "h12", "h14", "h19")
"""Queries that filter or join by the columns that the tables of directories are partitioned by."""


@pytest.fixture(scope="module")
def suite(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """TPC-H's tables, ours and Parquet files, in a session with Spark's own settings of joins."""
    session = spark.newSession()
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "1m")
    session.conf.unset("spark.lancepart.inlineBytes")
    made = opened(session, H, tmp_path_factory.mktemp("tpch"), SCALE)
    if made is None:
        pytest.skip(f"{GENERATOR}, which makes the data, can't be installed")
    return made


@pytest.mark.slow
def test_all_queries_of_tpch_give_the_rows_of_parquet(suite: Suite) -> None:
    suite.prepare((OURS, PARQUET))
    assert len(suite.queries) == 22
    found = {each: tpc.differing(suite.rows(OURS, each), suite.rows(PARQUET, each)) for each in suite.queries}
    assert {name: difference for name, difference in found.items() if difference} == {}


@pytest.mark.slow
def test_tables_partitioned_by_columns_give_the_rows_of_hives(suite: Suite) -> None:
    suite.prepare((BY_COLUMNS, HIVE))
    found = {each: tpc.differing(suite.rows(BY_COLUMNS, each), suite.rows(HIVE, each)) for each in PRUNED}
    assert {name: difference for name, difference in found.items() if difference} == {}


def test_answers_are_compared_as_multisets_with_floats_to_nine_digits() -> None:
    rows = [(1, "a", 0.1 + 0.2), (1, "a", 5.0), (2, None, float("nan"))]
    assert tpc.differing(rows, [(2, None, float("nan")), (1, "a", 5.0), (1, "a", 0.3)]) is None
    assert tpc.differing(rows, rows[:2]) is not None
    assert tpc.differing(rows, [*rows, rows[0]]) is not None
    assert tpc.differing(rows, [*rows[:2], (2, "b", float("nan"))]) is not None
    assert tpc.differing([(1.0,)], [(1.00001,)]) is not None
