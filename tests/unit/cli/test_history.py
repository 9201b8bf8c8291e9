"""Snapshots, changes, tags, rollback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lancepart as lp


def test_history_is_shown_named_compared_and_gone_back_to(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    newest, first = ask("snapshots", "t", "-n", "2")
    assert (newest["operation"], newest["rows_added"], first["rows_added"]) == ("append", 2, 20)

    assert ask("tag", "t", "first", "--version", str(first["version"])) == [
        {"tag": "first", "version": first["version"]}
    ]
    assert ask("snapshots", "t", "-n", "2")[1]["tags"] == "first"
    changed = ask("changes", "t", "first")
    assert sorted(row["id"] for row in changed) == [20, 21]
    assert {row["_change"] for row in changed} == {"insert"}

    assert "--yes" in run("rollback", "t", "first", code=2).stderr
    planned = ask("rollback", "t", "first", "--dry-run")
    assert (planned["dry_run"], planned["rows"] >= planned["rows_after"]) == (True, True)
    assert ask("tag", "t", "first", "--delete", "--dry-run")["tag"] == "first"
    assert ask("rollback", "t", "first", "--yes")["rows"] == 20
    assert ask("tag", "t", "first", "--delete", "--yes") == []
    assert "no tag 'first'" in run("changes", "t", "first", code=3).stderr
    assert table.scan().count() == 20


def test_a_tag_that_is_not_named_is_refused(run: Any, table: lp.PartitionedTable) -> None:
    assert "name the tag" in run("tag", "t", "--delete", code=2).stderr
    assert "no snapshot" in run("tag", "t", "x", "--version", "999", code=3).stderr


def test_version_numbers_are_explained_to_people_where_they_are_shown(run: Any, ask: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,day\n1,a\n")
    for words in (
        ["create", "c", "--schema", "id int64"],
        ["load", "l", "rows.csv", "--by", "day"],
        ["snapshots", "l"],
    ):
        assert "--version N reads" in run(*words).stdout
    ask("snapshots", "l")
