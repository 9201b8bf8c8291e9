"""Tables without partition fields: one leaf, the same transactions, and partitions later."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import lance_namespace
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import CommitConflictError, InvalidInputError

SCHEMA = pa.schema([("id", pa.int64()), ("c", pa.string()), ("v", pa.list_(pa.float32(), 2))])


def rows(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": n, "c": "ab"[n % 2], "v": [float(n), 0.0]} for n in numbers]


def ids(table: lp.PartitionedTable, where: str | None = None) -> list[int]:
    return sorted(table.scan(where).to_arrow().column("id").to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA)
    made.append(rows(0, 1, 2))
    made.append(rows(3, 4))
    return made


def test_all_verbs_work_on_one_leaf(table: lp.PartitionedTable) -> None:
    assert table.spec.fields == ()
    table.delete("id = 0")
    table.update({"c": "'z'"}, "id = 1")
    table.upsert([{"id": 2, "c": "y", "v": [9.0, 9.0]}, *rows(7)], on=["id"])
    with table.transaction() as tx:
        tx.append(rows(8))
        assert tx.scan().count() == 6
    assert len(table.scan("c = 'z'").plan().leaves) == 1
    assert ids(table) == [1, 2, 3, 4, 7, 8]
    assert [row["id"] for row in table.search([7.0, 0.0], k=2).to_list()] == [7, 8]
    assert sorted(table.join(table, on=["id"], columns=["id"]).to_arrow().column("id").to_pylist()) == ids(table)
    assert table.maintenance.compact().changed == 1
    table.overwrite(rows(5))
    assert ids(table) == [5]
    assert table.maintenance.remove_orphans(timedelta(days=3)).changed == 0


def test_it_is_partitioned_later_and_made_whole_again(table: lp.PartitionedTable) -> None:
    table.update_spec(["c"])
    table.append(rows(5, 6))
    assert ids(table, "c = 'a'") == [0, 2, 4, 6]
    table.maintenance.rewrite()
    assert len([leaf for leaf in table.scan("c = 'a'").plan().leaves if leaf.stats and leaf.stats.rows]) == 1
    assert ids(table) == [0, 1, 2, 3, 4, 5, 6]
    table.update_spec([])
    table.append(rows(7))
    assert ids(table) == [0, 1, 2, 3, 4, 5, 6, 7]
    table.overwrite(rows(8))
    assert ids(table) == [8]


def test_two_writers_of_the_only_leaf_meet_as_in_any_partition(table: lp.PartitionedTable) -> None:
    other = lp.open_table(table.root)
    threads = [threading.Thread(target=each.append, args=(rows(n),)) for n, each in ((10, table), (11, other))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert ids(lp.open_table(table.root)) == [0, 1, 2, 3, 4, 10, 11]
    with pytest.raises(CommitConflictError):
        overtaken(table, other)


def overtaken(table: lp.PartitionedTable, other: lp.PartitionedTable) -> None:
    """Update a row in a transaction while another writer updates it."""
    with table.transaction() as tx:
        tx.update({"c": "'x'"}, "id = 1")
        other.update({"c": "'y'"}, "id = 1")


def test_other_clients_find_the_leaf_beneath_the_spec(table: lp.PartitionedTable) -> None:
    catalog: Any = lance_namespace.connect("dir", {"root": table.root})
    assert catalog.list_namespaces(lance_namespace.ListNamespacesRequest(id=[])).namespaces == ["v1"]
    assert catalog.list_tables(lance_namespace.ListTablesRequest(id=["v1"])).tables == ["dataset"]
    (leaf,) = table.scan().plan().leaves
    assert lance.dataset(f"{table.root}/{leaf.location}").schema.names == SCHEMA.names
    assert table.inspect.partitions().column("object_id").to_pylist() == ["v1$dataset"]


def test_weak_tables_have_one_leaf_too_and_hive_style_ones_need_a_column(tmp_path: Path) -> None:
    weak = lp.create_table(tmp_path / "weak", SCHEMA, transactions="weak")
    weak.append(rows(1, 2))
    assert ids(weak) == [1, 2]
    with pytest.raises(InvalidInputError, match="no partition columns"):
        lp.create_table(tmp_path / "hive", SCHEMA, layout="hive")
    with pytest.raises(InvalidInputError, match="is a list of fields"):
        lp.create_table(tmp_path / "bad", SCHEMA, "c")


def test_a_leaf_that_was_never_committed_is_an_orphan(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "fresh", SCHEMA)
    (left,) = abandoned_leaves(table)
    assert table.maintenance.remove_orphans(timedelta(0)).changed == 1
    assert not left.exists()


def test_a_leaf_that_was_never_committed_goes_with_the_table(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "fresh", SCHEMA)
    assert len(abandoned_leaves(table)) == 1
    lp.drop_table(table.root)
    assert not (tmp_path / "fresh").exists()


def abandoned_leaves(table: lp.PartitionedTable) -> list[Path]:
    table.transaction().append(rows(1))
    return [each for each in Path(table.root).iterdir() if each.name.endswith("$dataset")]
