"""Rows deleted, columns and partitionings changed."""

from __future__ import annotations

from typing import Any

import pytest

import lancepart as lp


def test_a_delete_is_shown_first_and_needs_a_yes(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    tried = ask("delete", "t", "id < 5", "--dry-run")
    assert (tried["rows"], tried["leaves"], table.scan().count()) == (5, 3, 22)
    assert "this deletes 5 rows in at most 3 partitions: give --yes" in run("delete", "t", "id < 5", code=2).stderr
    assert "this deletes 1 row in" in run("delete", "t", "id = 5", code=2).stderr
    assert table.scan().count() == 22

    assert ask("delete", "t", "id < 5", "--yes")["version"] == table.version
    assert table.scan().count() == 17
    assert "'true'" in run("delete", "t", " ", "--yes", code=2).stderr


def test_a_new_partitioning_holds_for_new_rows(ask: Any, table: lp.PartitionedTable) -> None:
    (field,) = ask("evolve", "t", "bucket(id, 4)")
    assert (field["spec_id"], field["source"], field["transform"]) == (2, "id", "bucket")
    assert len(table.specs) == 2


def test_columns_are_shown_added_renamed_widened_and_dropped(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    assert [row["column"] for row in ask("columns", "t")] == ["id", "country", "v"]
    ask("columns", "t", "--add", "n int8", "--rename", "v=vector")
    ask("columns", "t", "--widen", "n int32")
    assert "--yes" in run("columns", "t", "--drop", "n", code=2).stderr
    assert ask("columns", "t", "--drop", "n", "--dry-run")["changes"] == [{"change": "drop", "column": "n", "to": ""}]
    assert str(table.schema.field("n").type) == "int32"
    assert [row["column"] for row in ask("columns", "t", "--drop", "n", "--yes")] == ["id", "country", "vector"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("--add", "id int64"), "'id': that is taken"),
        (("--rename", "nope=x"), "no column 'nope'"),
        (("--widen", "id string"), "can't become string"),
        (("--rename", "id=x", "--rename", "country=x"), "'x': that is taken"),
    ],
)
def test_a_dry_run_refuses_what_the_table_would(
    run: Any, table: lp.PartitionedTable, change: tuple[str, ...], words: str
) -> None:
    before = table.version
    assert words in run("columns", "t", *change, "--dry-run", code=1).stderr
    assert table.version == before
