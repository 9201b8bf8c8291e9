"""Commands that only look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lancepart as lp
from lancepart.layout import leaves
from tests.support.metadata_only import many_partitions

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
    assert "use bytes" in run("partitions", "t", "--sort", "color", code=2).stderr


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


def test_partitionings_are_shown_with_their_numbers(ask: Any) -> None:
    (field,) = ask("evolve", "t", "bucket(id, 4)")
    assert field["partition_by"] == "bucket(4, id)"
    assert ask("info", "t")["partition_by"] == ["bucket(4, id)"]


def test_partitions_are_in_the_order_of_their_values(ask: Any, table: lp.PartitionedTable) -> None:
    table.update_spec(["id"])
    table.append([{"id": 10, "country": "US"}, {"id": 9, "country": "US"}, {"id": None, "country": "US"}])
    _, newest = ask("tree", "t")["specs"]
    assert [each["name"] for each in newest["children"]] == ["id=9", "id=10", "id=NULL"]
    named = ask("partitions", "t", "--sort", "name")["leaves"]
    assert [leaf["partition"] for leaf in named][:3] == [{"country": "FR"}, {"country": "US"}, {"country": None}]


def test_null_is_not_shown_as_an_empty_text(run: Any) -> None:
    assert run("head", "t", "-w", "id = 21", "-c", "country").stdout.split() == ["country", "NULL"]


def test_rows_that_a_limit_leaves_out_are_counted(run: Any, table: lp.PartitionedTable) -> None:
    first = str(table.inspect.snapshots().column("version").to_pylist()[-2])
    assert "and 1 more row" in run("changes", "t", first, "-n", "1").stdout


def test_programs_get_all_rows_and_people_some(run: Any, ask: Any, table: lp.PartitionedTable) -> None:
    first = str(table.version)
    table.append([{"id": n, "country": f"c{n}"} for n in range(100, 230)])
    for n in range(25):
        table.append([{"id": n, "country": "DE"}])

    assert len(ask("changes", "t", first)) == 155
    assert len(ask("changes", "t", first, "-n", "3")) == 3
    assert len(ask("sql", "SELECT * FROM t", "t=t")) == 177
    assert len(ask("join", "t", "t", "--on", "id", "-c", "id")) > 177
    assert len(ask("partitions", "t")["leaves"]) == 134
    assert len(ask("partitions", "t", "-n", "2")["leaves"]) == 2
    assert len(ask("snapshots", "t")) == table.inspect.snapshots().num_rows > 25
    assert "and 135 more rows" in run("changes", "t", first).stdout
    assert f"and {table.inspect.snapshots().num_rows - 20} more snapshots" in run("snapshots", "t").stdout
    assert "84 not shown" in run("partitions", "t").stdout


def test_info_makes_no_value_of_each_leaf(ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many_partitions(tmp_path / "many", 500)

    def refused(*given: object) -> None:
        raise AssertionError("a value was made of every leaf")

    monkeypatch.setattr(leaves, "manifest_leaves", refused)
    assert ask("info", "many")["partitions"] == 500
