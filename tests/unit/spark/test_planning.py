from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.spark import planning
from lancepart.spark.planning import Planned, plan
from lancepart.spark.running import gathered, rows
from lancepart.spark.spark_plan import SparkTask
from lancepart.spark.table_messages import ScanRequest
from lancepart.storage import leaf_handle

SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string()), ("value", pa.float64())])


def filled(root: Path, *, leaves: int = 4, appends: int = 3, **options: Any) -> lp.PartitionedTable:
    table = lp.create_table(root, SCHEMA, ["country"], **options)
    for append in range(appends):
        ids = range(append * leaves * 10, (append + 1) * leaves * 10)
        table.append([{"id": n, "country": f"c{n % leaves}", "value": float(n)} for n in ids])
    return table


def planned(table: lp.PartitionedTable, **asked: Any) -> Planned:
    return plan(table, ScanRequest(version=table.version, columns=asked.pop("columns", ("id",)), **asked))


def ids(found: Planned, tasks: Any = None) -> list[int]:
    """The ids that all tasks read, after a journey."""
    work = pickle.loads(pickle.dumps(found.scan))
    given = pickle.loads(pickle.dumps(found.tasks if tasks is None else tasks))
    return sorted(number for task in given for batch in rows(work, task) for number in batch.column("id").to_pylist())


def test_leaves_share_tasks_and_keys_divide_them(tmp_path: Path) -> None:
    table = filled(tmp_path / "t", leaves=5)

    without, keyed = planned(table), planned(table, columns=("id", "country"))

    assert len(without.tasks) == 1
    assert sorted(keyed.keys) == [(f"c{n}",) for n in range(5)]
    assert len(keyed.unkeyed_tasks) == 1
    assert ids(without) == ids(keyed) == ids(keyed, keyed.unkeyed_tasks) == list(range(150))


def test_a_large_leaf_is_split_by_its_fragments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_LEAST_BYTES", 1)
    table = filled(tmp_path / "t", leaves=1, appends=6)

    found = planned(table, parallelism=3)

    assert len(found.tasks) == 3
    assert all(piece.fragments for task in found.tasks for piece in task.pieces)
    assert ids(found) == list(range(60))


def test_some_fragments_of_a_leaf_that_lacks_the_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_LEAST_BYTES", 1)
    table = filled(tmp_path / "t", leaves=1, appends=4)
    table.add_column(pa.field("more", pa.int32()))

    found = planned(table, parallelism=2, columns=("more",))

    assert sum(batch.num_rows for task in found.tasks for batch in rows(found.scan, task)) == 40


@pytest.mark.parametrize("most", [1_000, 1])
def test_a_long_filter_found_at_run_time_only_chooses_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(planning, "_MOST_PUSHED_KEYS", most)
    table = filled(tmp_path / "t", leaves=4, appends=1)
    keys = [{"type": "string", "value": each} for each in ("c1", "c3")]
    found_by_join = {"name": "IN", "children": [{"column": ["country"]}, *keys]}
    given = {"name": ">", "children": [{"column": ["id"]}, {"type": "bigint", "value": "7"}]}

    found = planned(table, columns=("id", "country"), pushed=(given,), runtime=(found_by_join,))

    assert found.pruning.read == 2
    assert ids(found) == [n for n in range(8, 40) if n % 4 in (1, 3)]
    assert found.scan.side.predicate is not None
    assert found.scan.side.predicate.columns() == ({"id"} if most == 1 else {"id", "country"})


def test_counts_of_some_fragments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_LEAST_BYTES", 1)
    table = filled(tmp_path / "t", leaves=1, appends=4)
    tree = {"name": ">", "children": [{"column": ["id"]}, {"value": "4"}]}

    found = planned(table, parallelism=2, handled=(tree,), aggregates=({"name": "count"},))

    assert len(found.tasks) == 2
    assert sum(batch.column(0)[0].as_py() for task in found.tasks for batch in rows(found.scan, task)) == 35


def test_counting_everything_reads_nothing(tmp_path: Path) -> None:
    found = planned(filled(tmp_path / "t"), aggregates=({"name": "count"},))

    assert found.tasks == (SparkTask(),)
    assert [batch.to_pylist() for batch in rows(found.scan, SparkTask())] == [[{"count_0": 120}]]


def test_a_limit_takes_only_as_many_leaves_as_hold_it(tmp_path: Path) -> None:
    found = planned(filled(tmp_path / "t"), limit=31)

    assert sum(len(task.pieces) for task in found.tasks) == 2
    assert len(ids(found)) == 31


def test_leaves_of_a_table_without_transactions_are_measured_and_pinned(tmp_path: Path) -> None:
    table = filled(tmp_path / "t", leaves=2, appends=1, transactions="weak")
    found = planned(table)
    filled_again = lp.open_table(tmp_path / "t")
    filled_again.append([{"id": 99, "country": "c0", "value": 0.0}])

    assert found.rows == 20
    assert ids(found) == list(range(20))


def test_too_many_keys_are_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_LEAST_KEYS", 3)
    monkeypatch.setattr(planning, "_MOST_KEYS_A_CORE", 1)
    table = filled(tmp_path / "t", leaves=4)

    found = planned(table, columns=("id", "country"))

    assert (found.parts, found.keys) == ((), ())
    monkeypatch.setattr(planning, "_LEAST_BYTES", 1)
    assert len(set(planned(table, columns=("id", "country")).keys)) == 4


def test_keys_once_told_stay_the_same(tmp_path: Path) -> None:
    table = filled(tmp_path / "t", leaves=4)
    first = planned(table, columns=("id", "country"))
    only = {"name": "=", "children": [{"column": ["country"]}, {"value": "c1"}]}

    again = planned(
        table, columns=("id", "country"), pushed=(only,), partitioning=tuple([part.to_json() for part in first.parts])
    )

    assert again.parts == first.parts
    assert again.keys == (("c1",),)


@pytest.mark.parametrize("where", [None, 7])
def test_many_small_leaves_are_read_without_opening_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: int | None
) -> None:
    table = filled(tmp_path / "t", leaves=40, appends=1)
    tree = {"name": ">", "children": [{"column": ["id"]}, {"type": "bigint", "value": str(where)}]}
    found = planned(table, handled=() if where is None else (tree,))
    counted = planned(table, handled=() if where is None else (tree,), aggregates=({"name": "count"},))
    opened = []
    open_leaf = leaf_handle.open_leaf

    def counted_open(root: Any, location: str, version: int | None, **more: Any) -> Any:
        opened.append(location)
        return open_leaf(root, location, version, **more)

    monkeypatch.setattr(leaf_handle, "open_leaf", counted_open)

    assert ids(found) == [n for n in range(400) if where is None or n > where]
    assert len(opened) <= 1
    monkeypatch.undo()
    if where is not None:
        total = sum(batch.column(0)[0].as_py() for task in counted.tasks for batch in rows(counted.scan, task))
        assert total == 392


def test_leaves_are_opened_where_the_snapshot_is_not_the_plans(tmp_path: Path) -> None:
    table = filled(tmp_path / "t", leaves=20, appends=1)
    found = planned(table)
    elsewhere = replace(found.scan, side=replace(found.scan.side, version=10_000))

    assert [n for task in found.tasks for batch in rows(elsewhere, task) for n in batch.column("id").to_pylist()] == (
        [n for task in found.tasks for batch in rows(found.scan, task) for n in batch.column("id").to_pylist()]
    )


def test_small_batches_are_put_together_in_order() -> None:
    batches = [pa.RecordBatch.from_pydict({"n": [n] * size}) for n, size in enumerate([3, 2, 5_000, 1, 1])]

    together = list(gathered(iter(batches)))

    assert [batch.num_rows for batch in together] == [5_005, 2]
    assert pa.Table.from_batches(together).equals(pa.Table.from_batches(batches).combine_chunks())
