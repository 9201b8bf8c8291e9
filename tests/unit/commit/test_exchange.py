"""Rows that are removed and added by one commit: one version of each leaf, whatever its columns and deletions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp

COUNT, PARTS = 40, 4


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    ids = np.arange(COUNT)
    return lp.create_table_from(
        tmp_path / "t", pa.table({"id": ids, "part": ids % PARTS, "n": ids * 10}), partition_by=["part"]
    )


def _manifests(table: lp.PartitionedTable) -> int:
    return len(list(Path(table.root).glob("*/_versions/*.manifest"))) - len(
        list(Path(table.root).glob("__manifest/_versions/*.manifest"))
    )


def _rows(table: lp.PartitionedTable) -> dict[int, tuple[int, int]]:
    found = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found), "no row is there twice"
    return {row["id"]: (row["part"], row["n"]) for row in found}


def test_an_update_makes_one_version_of_a_leaf(table: lp.PartitionedTable) -> None:
    before = _manifests(table)

    done = table.update({"n": "n + 1"}, "part = 3 AND id > 10")

    assert _manifests(table) == before + 1
    assert done is not None
    assert (done.rows_updated, done.partitions) == (8, 1)
    assert _rows(table) == {i: (i % PARTS, i * 10 + (i % PARTS == 3 and i > 10)) for i in range(COUNT)}


def test_an_upsert_makes_one_version_of_each_leaf_that_it_touches(table: lp.PartitionedTable) -> None:
    before = _manifests(table)

    table.upsert(pa.table({"id": [1, 2, 100], "part": [1, 2, 1], "n": [-1, -2, -3]}), on=["id"])

    assert _manifests(table) == before + 2
    assert _rows(table) == {i: (i % PARTS, i * 10) for i in range(COUNT)} | {1: (1, -1), 2: (2, -2), 100: (1, -3)}


def test_rows_that_change_their_partition_leave_one_leaf_and_enter_another(table: lp.PartitionedTable) -> None:
    table.update({"part": "(part + 1) % 5", "n": "-n"}, "id < 8")

    assert _rows(table) == {
        i: ((i % PARTS + 1) % 5 if i < 8 else i % PARTS, -i * 10 if i < 8 else i * 10) for i in range(COUNT)
    }


@pytest.mark.parametrize("change", ["add", "widen"])
def test_a_leaf_with_older_columns_takes_changed_rows(tmp_path: Path, change: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("part", pa.int64()), ("n", pa.int32())])
    table = lp.create_table(tmp_path / "t", schema, ["part"])
    table.append([{"id": i, "part": i % 2, "n": i} for i in range(10)])
    if change == "add":
        table.add_column(pa.field("more", pa.int64()))
    else:
        table.widen_column("n", pa.int64())

    table.update({"n": "n + 100"}, "part = 1")
    table.upsert([{"id": 0, "part": 0, "n": -5}], on=["id"])

    expected = {i: (i % 2, i + 100 if i % 2 else i) for i in range(10)} | {0: (0, -5)}
    assert _rows(table) == expected


def test_an_exchange_is_put_on_top_of_what_others_committed(table: lp.PartitionedTable) -> None:
    with table.transaction() as transaction:
        transaction.update({"n": "0"}, "id = 3")
        table.append([{"id": 103, "part": 3, "n": 7}])
        table.delete("id = 7")

    expected = {i: (i % PARTS, i * 10) for i in range(COUNT) if i != 7} | {3: (3, 0), 103: (3, 7)}
    assert _rows(table) == expected


def test_two_exchanges_in_one_transaction_add_up(table: lp.PartitionedTable) -> None:
    with table.transaction() as transaction:
        transaction.update({"n": "n + 1"}, "part = 2")
        transaction.update({"n": "n + 1"}, "part = 2 AND id < 20")
        transaction.upsert([{"id": 2, "part": 2, "n": -1}], on=["id"])

    own = {i: (2, i * 10 + (2 if i < 20 else 1)) for i in range(COUNT) if i % PARTS == 2} | {2: (2, -1)}
    assert _rows(table) == {i: (i % PARTS, i * 10) for i in range(COUNT)} | own


def test_an_index_still_finds_rows_after_an_exchange(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("n", "BTREE", scope="leaf")

    table.update({"n": "n + 5"}, "part = 1")

    assert table.scan("n = 15").to_arrow()["id"].to_pylist() == [1]
    assert table.scan("n = 10").count() == 0
    assert table.scan("n = 20").to_arrow()["id"].to_pylist() == [2]
