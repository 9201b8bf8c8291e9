"""Rows deleted, columns and partitionings changed."""

from __future__ import annotations

from typing import Any

import lancepart as lp


def test_a_delete_is_shown_first_and_needs_a_yes(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    tried = ask("delete", "t", "id < 5", "--dry-run")
    assert (tried["rows"], tried["leaves"], table.scan().count()) == (5, 3, 22)
    assert "--yes" in run("delete", "t", "id < 5", code=2).stderr
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
