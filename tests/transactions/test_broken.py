"""Leaves whose files are gone or damaged: they can be named, cleared and replaced, and stop no other leaf."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lancepart.commit import distributed_write
from lancepart.errors import InvalidTableStateError, LanceNamespaceError
from tests.support.catalogs import Place
from tests.transactions.tables import Row, assert_whole, content, data, make, opened

ROWS: tuple[Row, ...] = ((1, "A", 1), (2, "A", 2), (3, "B", 3))
HOW = ("manifest", "cut", "all")


def folder(table: Any, bank: str) -> tuple[Path, int]:
    """A leaf's directory and the version that is read."""
    (leaf,) = table.scan(f"bank = '{bank}'").plan().leaves
    return Path(table.root) / leaf.location, leaf.read_version


def broken(place: Place, how: str, **options: Any) -> tuple[Any, int]:
    """A table one of whose leaves has lost its newest version's manifest, a part of it, its data, or all."""
    table = make(place, ROWS, **options)
    before = table.version
    table.append(data([(4, "A", 4)]))
    path, version = folder(table, "A")
    manifest = path / "_versions" / f"d{version}.manifest"
    if how == "manifest":
        manifest.unlink()
    elif how == "cut":
        manifest.write_bytes(manifest.read_bytes()[:40])
    else:
        shutil.rmtree(path if how == "all" else path / how)
    return table, before


@pytest.mark.parametrize("how", HOW)
def test_a_whole_partition_that_can_not_be_opened_is_deleted(local: Place, how: str) -> None:
    table, _ = broken(local, how)

    table.delete("bank = 'A'")

    assert content(table) == Counter([(3, "B", 3)])
    assert table.inspect.broken().num_rows == 0
    last = table.inspect.snapshots().to_pylist()[-1]
    assert (last["operation"], last["rows_deleted"]) == ("delete", 3)
    table.append(data([(9, "A", 9)]))
    assert content(table) == Counter([(3, "B", 3), (9, "A", 9)])
    assert_whole(table)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("where", [None, "bank = 'A'"])
def test_a_partition_that_can_not_be_opened_is_overwritten(local: Place, how: str, where: str | None) -> None:
    table, _ = broken(local, how)

    table.overwrite(data([(9, "A", 9)]), where)

    assert content(table) == Counter([(3, "B", 3), (9, "A", 9)])
    table.update({"x": "x + 1"}, "bank = 'A'")
    table.append(data([(10, "A", 10)]))
    assert content(table) == Counter([(3, "B", 3), (9, "A", 10), (10, "A", 10)])
    assert_whole(table)


def test_what_tasks_write_over_a_partition_that_can_not_be_opened_is_taken(local: Place) -> None:
    table, _ = broken(local, "all")
    job = distributed_write.plan(table._manifest, mode=distributed_write.OVERWRITE)
    reports = [
        distributed_write.write(job, data([(9, "A", 9)])),
        distributed_write.write(job, data([(10, "A", 10), (11, "C", 11)])),
    ]

    distributed_write.commit(table._manifest, job, reports)

    assert content(table) == Counter([(3, "B", 3), (9, "A", 9), (10, "A", 10), (11, "C", 11)])
    assert_whole(table)


@pytest.mark.parametrize("how", ["manifest", "cut"])
def test_a_rollback_leads_out_of_a_version_that_can_not_be_opened(local: Place, how: str) -> None:
    table, before = broken(local, how)

    table.maintenance.rollback(before)

    assert content(table) == Counter(ROWS)
    assert_whole(table)


@pytest.mark.parametrize("how", ["all", "data"])
def test_a_rollback_to_rows_that_are_gone_says_so_and_changes_nothing(local: Place, how: str) -> None:
    table, before = broken(local, how)
    version = table.version

    with pytest.raises(InvalidTableStateError, match=r"\$dataset"):
        table.maintenance.rollback(before)

    assert table.version == version


def test_a_rollback_to_before_a_partition_that_can_not_be_opened_removes_it(local: Place) -> None:
    table = make(local, [(3, "B", 3)])
    before = table.version
    table.append(data([(1, "A", 1)]))
    shutil.rmtree(folder(table, "A")[0])

    table.maintenance.rollback(before)

    assert content(table) == Counter([(3, "B", 3)])
    assert_whole(table)


@pytest.mark.parametrize("how", [*HOW, "data"])
def test_inspect_names_what_can_not_be_read_and_the_error_says_what_to_do(local: Place, how: str) -> None:
    table, _ = broken(local, how)
    path, version = folder(table, "A")

    (found,) = table.inspect.broken().to_pylist()

    assert found["partition"] == [("bank", "A")]
    assert (found["location"], found["read_version"]) == (path.name, version)
    assert found["error"]
    assert {row["object_id"] for row in table.inspect.fragments().to_pylist()} >= {folder_id(table, "B")}
    table.inspect.indices()
    table.inspect.unpublished_commits()
    assert table.inspect.partitions().num_rows == 2
    with pytest.raises(InvalidTableStateError, match=r"\$dataset"):
        content(table)
    if how != "data":
        with pytest.raises(InvalidTableStateError, match=r"delete or overwrite the whole partition"):
            table.append(data([(9, "A", 9)]))


def folder_id(table: Any, bank: str) -> str:
    return str(table.scan(f"bank = '{bank}'").plan().leaves[0].object_id)


@pytest.mark.parametrize("how", [*HOW, "data"])
def test_the_other_leaves_are_not_stopped(local: Place, how: str) -> None:
    table, _ = broken(local, how)
    name = folder_id(table, "A")
    table.append(data([(5, "B", 5)]))
    table.update({"x": "x + 1"}, "bank = 'B'")
    table.upsert(data([(5, "B", 7)]), ["id", "bank"])

    report = table.maintenance.compact(progress=False)
    indexed = table.maintenance.create_index("x", "BTREE", progress=False)
    table.update_spec(["truncate(bank, 4)"])
    moved = table.maintenance.rewrite(progress=False)

    assert [each.skipped for each in (report, indexed, moved)] == [(name,)] * 3
    assert content(table, "bank = 'B'") == Counter([(3, "B", 4), (5, "B", 7)])


def test_who_changes_a_leaf_while_it_is_made_anew_is_not_lost(local: Place) -> None:
    table = make(local, ROWS)
    tx = table.transaction()
    path, _ = folder(table, "A")
    hidden = path.with_name("hidden")
    path.rename(hidden)
    tx.delete("bank = 'A'")
    hidden.rename(path)
    opened(local).append(data([(5, "A", 5)]))

    with pytest.raises(LanceNamespaceError, match="being rewritten"):
        tx.commit()

    assert content(table) == Counter([*ROWS, (5, "A", 5)])
    assert_whole(table)


def test_changes_and_snapshots_follow_a_leaf_to_its_new_place(local: Place) -> None:
    table, before = broken(local, "manifest")
    last = table.version
    table.overwrite(data([(9, "A", 9)]))
    after = table.version
    table.append(data([(10, "A", 10)]))

    found = Counter(zip(*table.changes(after).to_pydict().values(), strict=True))

    assert found == Counter([(10, "A", 10, "insert")])
    assert content(opened(local, before)) == Counter(ROWS)
    with pytest.raises(InvalidTableStateError):
        table.changes(last).to_arrow()
    table.maintenance.rollback(before)
    assert content(table) == Counter(ROWS)
    assert_whole(table)


def test_a_weak_leaf_that_is_gone_is_replaced_where_it_was(local: Place) -> None:
    table = make(local, ROWS, mode="weak")
    (leaf,) = table.scan("bank = 'A'").plan().leaves
    shutil.rmtree(Path(table.root) / leaf.location)

    table.overwrite(data([(9, "A", 9)]))

    assert content(table) == Counter([(3, "B", 3), (9, "A", 9)])
