"""TPC-H through ``lp.connect(…).sql``: the answers of DuckDB on the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import tpch


@pytest.mark.slow
def test_all_queries_of_tpch_answer_as_duckdb_does(tmp_path: Path) -> None:
    queries = tpch.generate(tmp_path, 0.01)
    if queries is None:
        pytest.skip(f"{tpch.GENERATOR}, which makes the data, can't be installed")
    ours, theirs = tpch.warehouse(tmp_path), tpch.in_duckdb(tmp_path)

    different = [
        number
        for number, text in queries.items()
        if not tpch.same(ours.sql(text).to_arrow(), theirs.sql(text).to_arrow_table())
    ]

    assert len(queries) == 22
    assert different == []
