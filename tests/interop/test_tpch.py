"""TPC-H through ``lp.connect(…).sql``: the answers of DuckDB on the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import tpc_data, tpch
from lancepart.queries import sources as query_sources


@pytest.mark.slow
def test_all_queries_of_tpch_answer_as_duckdb_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = tpc_data.generate(tmp_path, 0.01)
    if queries is None:
        pytest.skip(f"{tpc_data.GENERATOR}, which makes the data, can't be installed")
    ours, theirs = tpch.warehouse(tmp_path), tpch.in_duckdb(tmp_path)
    answers = {number: theirs.sql(text).to_arrow_table() for number, text in queries.items()}

    def different() -> list[int]:
        return [number for number, text in queries.items() if not tpch.same(ours.sql(text).to_arrow(), answers[number])]

    assert len(queries) == 22
    assert different() == [], "small tables are kept in memory"
    monkeypatch.setattr(query_sources, "_SMALL", -1)
    assert different() == [], "Lance evaluates all filters"
    monkeypatch.setattr(query_sources, "_SAMPLED", 1)
    assert different() == [], "DataFusion evaluates filters that keep many rows"
