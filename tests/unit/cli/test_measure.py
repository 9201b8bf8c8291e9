"""``bench``: figures of a table that is only read, and of a temporary one."""

from __future__ import annotations

from typing import Any

import lancepart as lp


def test_a_table_is_measured_and_not_changed(ask: Any, table: lp.PartitionedTable) -> None:
    before = table.version
    found = ask("bench", "t", "--runs", "2", "--where", "country = 'US'")
    assert {each["call"]: each["rows"] for each in found} == {
        "open": None, "plan": None, "count": 22, "head": 10, "scan": 22, "filter": 20, "search v": 10,
    }  # fmt: skip
    assert all(0 < each["best_ms"] <= each["median_ms"] and each["runs"] == 2 for each in found)
    assert lp.open_table("t").version == before


def test_without_a_table_a_temporary_one_is_made(ask: Any, tmp_path: Any) -> None:
    found = {each["call"]: each["rows"] for each in ask("bench", "--rows", "500", "--runs", "1")}
    assert (found["append"], found["scan"], found["search embedding"]) == (500, 500, 10)
    assert not any(tmp_path.iterdir())
