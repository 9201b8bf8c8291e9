"""Commands that only look."""

from __future__ import annotations

from typing import Any

import pytest

import lancepart as lp

pytestmark = pytest.mark.usefixtures("table")


def test_info_tells_columns_partitioning_and_size(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    found = ask("info", "t")
    assert (found["rows"], found["partitions"], found["partition_by"]) == (22, 3, ["country"])
    assert (found["layout"], found["transactions"], found["version"]) == ("manifest", "strong", table.version)
    assert found["columns"]["id"] == "int64"

    shown = run("info", "t").stdout
    assert table.root in shown
    assert "fixed_size_list" in shown


def test_an_older_snapshot_is_looked_at(ask: Any, table: lp.PartitionedTable) -> None:
    first = table.inspect.snapshots().column("version").to_pylist()[-2]
    assert ask("info", "t", "--version", str(first))["rows"] == 20


def test_the_tree_adds_up_level_by_level(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    table.update_spec(["country", "bucket(id, 2)"])
    table.append([{"id": 1, "country": "US"}, {"id": 2, "country": "US"}])
    first, second = ask("tree", "t")["specs"]
    assert (first["rows"], first["leaves"]) == (22, 3)
    assert [child["name"] for child in second["children"]] == ["country=US"]
    assert sum(child["rows"] for child in second["children"][0]["children"]) == 2

    assert "country=NULL" in run("tree", "t").stdout
    assert "and 2 more" in run("tree", "t", "-n", "1").stdout


def test_partitions_are_sorted_and_have_bars(ask: Any, run: Any) -> None:
    found = ask("partitions", "t", "--sort", "rows", "-n", "1")
    assert (found["partitions"], found["largest"], found["median"], found["empty"]) == (3, 20, 1, 0)
    assert [leaf["partition"] for leaf in found["leaves"]] == [{"country": "US"}]

    shown = run("partitions", "t", "--sort", "rows").stdout
    assert "█" * 24 in shown
    assert "20.0 times the rows of the median" in shown
    assert "use bytes" in run("partitions", "t", "--sort", "color", code=1).stderr


def test_rows_are_shown_some_columns_of_some(ask: Any, run: Any) -> None:
    assert ask("head", "t", "-w", "id >= 20", "-c", "id") == [{"id": 20}, {"id": 21}]
    assert len(ask("head", "t", "-n", "3")) == 3
    assert "[20, 0]" in run("head", "t", "-w", "id = 20").stdout


def test_a_sample_is_drawn_anew_but_for_its_seed(ask: Any) -> None:
    drawn = ask("sample", "t", "-n", "5", "--seed", "7", "-c", "id")
    assert drawn == ask("sample", "t", "-n", "5", "--seed", "7", "-c", "id")
    assert len({row["id"] for row in drawn}) == 5


def test_a_plan_tells_what_would_be_read_and_why(ask: Any, run: Any) -> None:
    found = ask("plan", "t", "country = 'FR'")
    assert (found["kept"], found["of"], found["rows"]) == (1, 3, 1)
    assert "'FR'" in found["specs"][0]["reasons"][0]
    assert "1 kept, 2 dropped" in run("plan", "t", "country = 'FR'").stdout
