"""The catalog from the command line."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp


def test_namespaces_are_made_listed_described_and_dropped(ask: Any, run: Any) -> None:
    ask("ns", "create", "w:db", "--property", "owner=ada")
    ask("ns", "create", "w:db.inner")
    assert ask("ns", "list", "w") == [{"name": "db", "kind": "namespace"}]
    assert [row["name"] for row in ask("ns", "list", "w", "-r")] == ["db", "db.inner"]
    assert ask("ns", "describe", "w:db")["properties"] == {"owner": "ada"}

    assert ask("ns", "drop", "w:db", "--dry-run")["inside"] == ["db.inner"]
    assert "--yes" in run("ns", "drop", "w:db", "--cascade", code=2).stderr
    assert "not empty" in run("ns", "drop", "w:db", "--yes", code=1).stderr
    ask("ns", "drop", "w:db", "--yes", "--cascade")
    assert ask("ns", "list", "w") == []
    assert "none" in run("ns", "describe", "w:none", code=3).stderr
    assert "warehouse:namespace" in run("ns", "create", "w", code=2).stderr


def test_plain_tables_are_listed_migrated_and_dropped(ask: Any, run: Any) -> None:
    lance.write_dataset(pa.table({"id": [1]}), "w/plain.lance")
    assert ask("ns", "list", "w") == [{"name": "plain", "kind": "plain table"}]
    assert ask("ns", "migrate", "w") == {"migrated": 1}
    ask("ns", "drop", "w:plain", "--yes")
    assert ask("ns", "list", "w") == []
    assert "plain" in run("ns", "drop", "w:plain", "--yes", code=3).stderr


@pytest.mark.parametrize(
    "line",
    [
        "create t:more",
        "create t:v1.more",
        "describe t:v1",
        "drop t:v1 --cascade --yes",
        "drop t:v1 --dry-run",
        "migrate t",
    ],
)
def test_the_insides_of_a_table_are_no_namespaces(run: Any, table: lp.PartitionedTable, line: str) -> None:
    before = table.version
    assert "/t' is a table and not a warehouse" in run("ns", *line.split(), code=1).stderr
    assert (table.version, table.count_rows()) == (before, 22)
