"""Maintenance from the command line."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import lancepart as lp
from lancepart.report import health
from lancepart.storage import leaf_data, leaf_handle
from lancepart.storage.root import Root


def test_fragments_are_compacted_and_rows_moved(ask: Any, table: lp.PartitionedTable) -> None:
    for n in range(3):
        table.append([{"id": n, "country": "US"}])
    assert ask("compact", "t")["changed"] == 1
    table.update_spec(["bucket(id, 2)"])
    assert ask("rewrite", "t", "-w", "id < 5")["changed"] >= 1
    assert table.scan().count() == 25


def test_an_index_has_a_scope_and_parameters_of_its_own(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    ask("index", "t", "id", "--scope", "table")
    assert [row["scope"] for row in ask("index", "t")] == ["table"]
    assert "use auto, leaf, table" in run("index", "t", "id", "--scope", "everywhere", code=2).stderr
    for name in ("column", "kind", "name", "scope", "where"):
        assert (
            f"--param '{name}' is the command's own" in run("index", "t", "id", "--param", f"{name}=x", code=2).stderr
        )
    for name in ("spark", "progress"):
        assert "no parameter of an index" in run("index", "t", "id", "--param", f"{name}=1", code=2).stderr


def test_an_index_is_built_shown_kept_up_and_dropped(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    assert ask("index", "t", "id", "btree", "--name", "by_id")["changed"] == 3
    table.append([{"id": 30, "country": "US"}])
    (found,) = ask("index", "t")
    assert (found["name"], found["columns"], found["rows"], found["indexed_rows"]) == ("by_id", "id", 23, 22)
    ask("index", "t", "--optimize")
    assert ask("index", "t")[0]["indexed_rows"] == 23

    assert "--yes" in run("index", "t", "--drop", "by_id", code=2).stderr
    assert ask("index", "t", "--drop", "by_id", "--dry-run")["name"] == "by_id"
    ask("index", "t", "--drop", "by_id", "--yes")
    assert ask("index", "t") == []
    assert "unknown" in run("index", "t", "id", "magic", code=1).stderr
    assert "one of" in run("index", "t", "id", "--optimize", code=2).stderr


def test_an_expiry_is_shown_first_and_needs_a_yes(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    assert ask("expire", "t", "--older-than", "7d", "--dry-run") == []
    assert "--yes" in run("expire", "t", "--older-than", "7d", code=2).stderr
    assert ask("expire", "t", "--older-than", "7d", "--yes")["action"] == "expire"
    assert "no age" in run("expire", "t", "--older-than", "soon", code=2).stderr


def test_the_snapshots_that_would_go_are_the_old_ones_without_a_name(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        table.append([{"id": n, "country": "US"}])
    versions = table.inspect.snapshots().column("version").to_pylist()
    table.tags.create("kept", versions[1])
    assert health.expiring(table, timedelta(0)) == []  # the last hour always stays

    monkeypatch.setattr(health, "SAFE_AGE", timedelta(0))
    assert [row["version"] for row in health.expiring(table, timedelta(0))] == [versions[0], *versions[2:-1]]


def test_orphan_files_are_removed_after_a_yes(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    leaf = table.scan("country = 'FR'").plan().leaves[0]
    root = Root.parse(table.root)
    rows = leaf_handle.open_leaf(root, leaf.location, leaf.read_version).to_table()
    leaf_data.stage(root, leaf.location, rows, base=leaf.read_version)
    ages = ["--older-than", "0s"]
    found = ask("orphans", "t", *ages, "--dry-run")
    assert found["removed_files"] > 0
    assert "--yes" in run("orphans", "t", *ages, code=2).stderr
    assert ask("orphans", "t", *ages, "--yes")["removed_files"] == found["removed_files"]
    assert ask("orphans", "t", *ages)["removed_files"] == 0
    assert table.scan().count() == 22


def test_an_older_layout_is_upgraded(ask: Any, run: Any) -> None:
    ask("create", "h", "--schema", "id int64, day string", "--by", "day", "--layout", "hive")
    lp.open_table("h").append([{"id": 1, "day": "a"}])
    assert ask("health", "h", code=5)[0]["run"] == "lancepart upgrade h"
    assert ask("upgrade", "h")["layout"] == "manifest"
    assert ask("head", "h") == [{"id": 1, "day": "a"}]
    assert "--yes" in run("upgrade", "h", "--remove-old", code=2).stderr


def test_a_leaf_that_lost_its_files_is_found(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    assert ask("check", "t") == {"broken": [], "unpublished": [], "unions": [], "indices": []}
    leaf = table.scan("country = 'FR'").plan().leaves[0]
    shutil.rmtree(Path(table.root) / leaf.location / "data")

    found = ask("check", "t", code=5)
    assert [row["object_id"] for row in found["broken"]] == [leaf.object_id]
    assert "1 leaves can't be read" in run("check", "t", code=5).stdout


def test_a_union_and_an_index_that_lost_files_are_found(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    table.publish_lance()
    table.maintenance.create_index("id", "BTREE", scope="table")
    assert ask("check", "t")["unions"] == []
    shutil.rmtree(f"{table.root}/union.lance")
    shutil.rmtree(f"{table.root}/table_indices")

    found = ask("check", "t", code=5)
    assert [row["error"] for row in found["unions"]] == ["there is no dataset"]
    assert [row["name"] for row in found["indices"]] == ["id_idx"]
    assert "1 published unions can't be read" in run("check", "t", code=5).stdout


def test_leaves_that_can_not_be_read_are_emptied_after_a_yes(ask: Any, run: Any, table: lp.PartitionedTable) -> None:
    (leaf,) = table.scan("country = 'FR'").plan().leaves
    shutil.rmtree(f"{table.root}/{leaf.location}/data")
    before = table.version
    assert ask("check", "t", code=5)["broken"][0]["object_id"] == leaf.object_id
    assert ask("check", "t", "--repair", "--dry-run")["skipped"] == [leaf.object_id]
    assert "--yes" in run("check", "t", "--repair", code=2).stderr
    assert lp.open_table("t").version == before
    assert ask("check", "t", "--repair", "--yes")["changed"] == 1
    assert ask("check", "t")["broken"] == []
    assert table.count_rows() == table.scan().to_arrow().num_rows == 21
    assert table.inspect.snapshots().to_pylist()[-1]["operation"] == "repair"
    assert ask("check", "t", "--repair")["changed"] == 0
    table.append([{"id": 99, "country": "FR"}])
    assert table.count_rows("country = 'FR'") == 1
