"""Joins: kinds, names, filters, snapshots, types, memory, and clear words about what can't be."""

from __future__ import annotations

import gc
import shutil
import threading
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import (
    InvalidInputError,
    InvalidTableStateError,
    TableColumnNotFoundError,
    TableSchemaValidationError,
    UnsupportedOperationError,
)
from lancepart.read import group
from tests.support.tiers import one_in

ORDERS = pa.schema([("n", pa.int64()), ("k", pa.int32()), ("note", pa.string())])
NAMES = pa.schema([("k", pa.int64()), ("name", pa.string()), ("note", pa.string())])


@pytest.fixture
def orders(tmp_path: Path) -> lp.PartitionedTable:
    table = lp.create_table(tmp_path / "orders", ORDERS, ["bucket(k, 8)"])
    table.append([{"n": n, "k": None if n == 5 else n % 4, "note": f"o{n}"} for n in range(8)])
    return table


@pytest.fixture
def names(tmp_path: Path) -> lp.PartitionedTable:
    table = lp.create_table(tmp_path / "names", NAMES, ["bucket(k, 4)"])
    table.append([{"k": k, "name": f"name{k}", "note": None} for k in (2, 3, 9, None)])
    return table


def _rows(join: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in join.to_arrow().to_pylist()), key=repr)


MATCHED = [(2, 2, "name2"), (3, 3, "name3"), (6, 2, "name2"), (7, 3, "name3")]
ONLY_LEFT = [(0, 0, None), (1, 1, None), (4, 0, None), (5, None, None)]
ONLY_RIGHT = [(None, 9, "name9"), (None, None, "nameNone")]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", MATCHED),
        ("left", MATCHED + ONLY_LEFT),
        ("left_outer", MATCHED + ONLY_LEFT),
        ("right", MATCHED + ONLY_RIGHT),
        ("full", MATCHED + ONLY_LEFT + ONLY_RIGHT),
        ("outer", MATCHED + ONLY_LEFT + ONLY_RIGHT),
        ("FULL OUTER", MATCHED + ONLY_LEFT + ONLY_RIGHT),
    ],
)
def test_kinds_of_joins(orders: lp.PartitionedTable, names: lp.PartitionedTable, how: str, expected: list[Any]) -> None:
    assert _rows(orders.join(names, on=["k"], how=how, columns=["n", "k", "name"])) == sorted(expected, key=repr)


@pytest.mark.parametrize(("how", "expected"), [("semi", [2, 3, 6, 7]), ("left_anti", [0, 1, 4, 5])])
def test_kinds_that_show_only_the_left(
    orders: lp.PartitionedTable, names: lp.PartitionedTable, how: str, expected: list[int]
) -> None:
    join = orders.join(names, on=["k"], how=how)

    assert join.schema == ORDERS
    assert sorted(join.to_arrow().column("n").to_pylist()) == expected


def test_the_key_stands_there_once_in_the_wider_type_and_clashes_get_the_suffix(
    orders: lp.PartitionedTable, names: lp.PartitionedTable
) -> None:
    assert orders.join(names, on=["k"]).schema == pa.schema(
        [
            ("n", pa.int64()),
            ("k", pa.int64()),
            ("note", pa.string()),
            ("name", pa.string()),
            ("note_right", pa.string()),
        ]
    )
    assert "note#2" in orders.join(names, on=["k"], suffix="#2").schema.names
    with pytest.raises(InvalidInputError, match=r"two columns 'note'.*another suffix"):
        orders.join(names, on=["k"], suffix="")


def test_keys_of_different_names_both_stand_there(orders: lp.PartitionedTable, names: lp.PartitionedTable) -> None:
    names.rename_column("k", "key")

    join = orders.join(names, on=[("k", "key")], how="full", columns=["k", "key"], where="k IS NULL OR key IS NULL")

    assert Counter(_rows(join)) == Counter([(0, None), (0, None), (1, None), (None, None), (None, 9), (None, None)])


def test_a_filter_is_one_of_the_result(orders: lp.PartitionedTable, names: lp.PartitionedTable) -> None:
    join = orders.join(names, on=["k"], how="left", where="name IS NULL AND n > 0", columns=["n"])

    assert _rows(join) == [(1,), (4,), (5,)]
    assert join._filters.right is None
    assert join._filters.left.to_sql() == "(`n` > 0)"


def test_a_filter_on_the_key_prunes_both_sides(orders: lp.PartitionedTable, names: lp.PartitionedTable) -> None:
    orders.widen_column("k", pa.int64())

    join = orders.join(names, on=["k"], where="k = 3 AND name = 'name3' AND n <> 0 AND note < name", columns=["n"])

    (only,) = join.plan().groups
    assert (len(only.left), len(only.right)) == (1, 1)
    assert _rows(join) == []
    assert "filter on the joined rows" in join.explain()


def test_columns_of_the_filter_need_not_be_shown(orders: lp.PartitionedTable, names: lp.PartitionedTable) -> None:
    assert _rows(orders.join(names, on=["k"], where="n < length(name)", columns=["name"])) == [("name2",), ("name3",)]


def test_groups_without_the_other_side_are_skipped_where_they_give_nothing(tmp_path: Path) -> None:
    left = lp.create_table(tmp_path / "l", pa.schema([("k", pa.string()), ("a", pa.int32())]), ["k"])
    right = lp.create_table(tmp_path / "r", pa.schema([("k", pa.string()), ("b", pa.int32())]), ["k"])
    left.append([{"k": k, "a": 1} for k in ("x", "y", None)])
    right.append([{"k": k, "b": 2} for k in ("y", "z", None)])

    groups = {how: left.join(right, on=["k"], how=how).plan() for how in ("inner", "left", "right", "full", "anti")}

    assert {how: len(plan.groups) for how, plan in groups.items()} == {
        "inner": 1,
        "left": 3,
        "right": 3,
        "full": 5,
        "anti": 3,
    }
    assert groups["inner"].skipped == 4
    assert left.join(right, on=["k"], how="full").to_arrow().num_rows == 5


def test_fields_that_are_no_keys_are_put_together(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.int64()), ("day", pa.date32()), ("country", pa.string())])
    left = lp.create_table(tmp_path / "l", schema, ["country", "bucket(k, 4)", "year(day)"])
    right = lp.create_table(tmp_path / "r", schema, ["year(day)", "bucket(k, 2)"])
    rows = [{"k": k, "day": date(2024 + k % 2, 1, 1), "country": ("US", "FR")[k % 3 % 2]} for k in range(30)]
    left.append(rows)
    right.append(rows)

    join = left.join(right, on=["k"])

    assert len(join.plan().groups) == 2
    assert join.to_arrow().num_rows == 30


def test_a_join_stays_at_its_snapshots(orders: lp.PartitionedTable, names: lp.PartitionedTable) -> None:
    before = orders.version
    join = orders.join(names, on=["k"])
    names.delete("k = 2")
    orders.append([{"n": 100, "k": 3, "note": "late"}])

    assert join.to_arrow().num_rows == 4
    assert orders.join(names, on=["k"]).to_arrow().num_rows == 3
    assert lp.open_table(orders.root, version=before).join(names, on=["k"]).to_arrow().num_rows == 2


def test_a_join_is_lazy(orders: lp.PartitionedTable, names: lp.PartitionedTable) -> None:
    join = orders.join(names, on=["k"])
    for directory in Path(orders.root).glob("*$dataset"):
        shutil.rmtree(directory)

    assert join.explain().startswith("inner join on left.k = right.k")
    with pytest.raises(InvalidTableStateError, match="its files are gone"):
        join.to_arrow()


def test_a_table_joins_itself(names: lp.PartitionedTable) -> None:
    assert names.join(names, on=["k"], columns=["name", "name_right"]).to_arrow().num_rows == 3


def test_an_empty_side(orders: lp.PartitionedTable, names: lp.PartitionedTable) -> None:
    names.delete("true")

    assert orders.join(names, on=["k"]).to_arrow().num_rows == 0
    assert orders.join(names, on=["k"], how="left").to_arrow().num_rows == 8
    assert orders.join(names, on=["k"], how="right", where="k = 77").to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"on": []}, InvalidInputError, "give a list of column names"),
        ({"on": "k"}, InvalidInputError, "give a list of column names"),
        ({"on": [("k", "k", "k")]}, InvalidInputError, "a pair"),
        ({"on": ["x"]}, TableColumnNotFoundError, "left table has no column 'x'"),
        ({"on": [("k", "x")]}, TableColumnNotFoundError, "right table has no column 'x'"),
        ({"on": ["k", ("k", "name")]}, InvalidInputError, "no common type"),
        ({"on": ["k", ("k", "k")]}, InvalidInputError, "names a left column twice"),
        ({"on": ["k"], "how": "cross"}, InvalidInputError, "how is 'cross'"),
        ({"on": ["k"], "columns": ["zz"]}, TableColumnNotFoundError, "there is no column 'zz'"),
        ({"on": ["k"], "columns": []}, InvalidInputError, "columns is empty"),
        ({"on": ["k"], "columns": "n"}, InvalidInputError, "give a list of names"),
        ({"on": ["k"], "where": "zz = 1"}, InvalidInputError, "invalid filter"),
        ({"on": ["k"], "memory": 0}, InvalidInputError, "number of bytes"),
    ],
)
def test_what_is_wrong_is_said(
    orders: lp.PartitionedTable, names: lp.PartitionedTable, given: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        orders.join(names, **given)


def test_times_of_another_unit_and_zone_are_the_same_instants(tmp_path: Path) -> None:
    seconds, nanos = pa.timestamp("s", "UTC"), pa.timestamp("ns", "Europe/Paris")
    left = lp.create_table(tmp_path / "l", pa.schema([("t", seconds), ("a", pa.int32())]), ["bucket(t, 4)"])
    right = lp.create_table(tmp_path / "r", pa.schema([("t", nanos), ("b", pa.int32())]), ["t"])
    far = 10**11
    left.append(pa.table({"t": pa.array([1, 2, far], pa.int64()).cast(seconds), "a": pa.array([1, 2, 3], pa.int32())}))
    right.append(pa.table({"t": pa.array([10**9, 10**9 + 1]).cast(nanos), "b": pa.array([1, 2], pa.int32())}))

    join = left.join(right, on=["t"], how="left", columns=["a", "b"])

    assert _rows(join) == [(1, 1), (2, None), (3, None)]


def _wide(first: int, size: int) -> Any:
    """Texts that are small in a file and large in memory."""
    return pa.array([f"{i:0256d}" for i in range(first, first + size)])


@pytest.mark.slow
@pytest.mark.parametrize(("how", "expected"), [("inner", 500_000), ("full", 600_000)])
def test_what_does_not_fit_into_memory_is_joined_in_parts(tmp_path: Path, how: str, expected: int) -> None:
    left = lp.create_table(tmp_path / "l", pa.schema([("k", pa.int64()), ("a", pa.string())]), ["bucket(k, 2)"])
    right = lp.create_table(tmp_path / "r", pa.schema([("k", pa.int64()), ("b", pa.string())]), ["bucket(k, 2)"])
    size = 300_000
    left.append(pa.table({"k": [0 if i % 3 == 0 else i for i in range(size)], "a": _wide(0, size)}))
    right.append(pa.table({"k": range(1, size + 1), "b": _wide(0, size)}))
    right.append(pa.table({"k": [0] * 3, "b": ["zero"] * 3}))

    join = left.join(right, on=["k"], how=how, memory=1)

    assert sum(batch.num_rows for batch in join.to_batches()) == expected


@pytest.mark.slow
def test_a_single_key_that_does_not_fit_into_memory_goes_through_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = lp.create_table(tmp_path / "l", pa.schema([("k", pa.int64()), ("a", pa.string())]), ["truncate(k, 100)"])
    right = lp.create_table(tmp_path / "r", pa.schema([("k", pa.int64()), ("b", pa.string())]), ["truncate(k, 100)"])
    left.append(pa.table({"k": [7] * 200_000, "a": _wide(0, 200_000)}))
    right.append(pa.table({"k": [8] * 250_000, "b": _wide(0, 250_000)}))
    used = []
    run = group._run
    monkeypatch.setattr(group, "_run", lambda *given: used.append(given[2:]) or run(*given))

    (task,) = left.join(right, on=["k"], how="left").tasks()
    found = sum(batch.num_rows for batch in group.join_group(task, group.LEAST_MEMORY))

    assert found == 200_000
    assert any(batch_rows <= 8_192 for _, batch_rows in used)


@pytest.mark.parametrize("how", one_in(5, ["inner", "left", "full", "semi", "anti"]))
def test_parts_and_sorted_files_give_the_same_rows(
    orders: lp.PartitionedTable, names: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    join = orders.join(names, on=["k"], how=how)
    expected, used = _rows(join), []
    run = group._run

    def sparing(task: Any, memory: int, part: Any, batch_rows: int) -> Any:
        """As if only parts of 64 fitted, and of those every other one only when sorted."""
        if part.of < 64 or (part.number % 2 and batch_rows > 1_024):
            raise MemoryError("Resources exhausted: as a test")
        used.append((part.number, batch_rows))
        yield from run(task, memory, part, batch_rows)

    monkeypatch.setattr(group, "_run", sparing)

    assert _rows(join) == expected
    assert {(0, 32_768), (1, 1_024)} <= set(used)


@pytest.mark.slow
def test_what_is_known_to_be_too_large_is_cut_at_once(
    orders: lp.PartitionedTable, names: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = []
    run = group._run
    monkeypatch.setattr(group, "_run", lambda *given: used.append(given[2:]) or run(*given))
    tasks = orders.join(names, on=["k"]).tasks()

    rows = [batch.num_rows for task in tasks for batch in group.join_group(task, 1)]

    assert sum(rows) == 4
    assert {(part.of, batch_rows) for part, batch_rows in used} == {(64, 8_192)}


def test_an_abandoned_join_leaves_no_thread_behind(orders: lp.PartitionedTable, names: lp.PartitionedTable) -> None:
    before = threading.active_count()
    stream = orders.join(names, on=["k"], how="left").to_batches()
    next(stream)
    stream.close()

    assert threading.active_count() == before


def test_tables_whose_partitions_do_not_agree_are_joined_all_the_same(
    orders: lp.PartitionedTable, names: lp.PartitionedTable
) -> None:
    join = orders.join(names, on=["note"], how="left", columns=["n", "name"])

    assert _rows(join) == [(n, None) for n in range(8)]
    assert "the partitions do not agree: the left side" in join.explain()
    assert "k_bucket (not over join keys alone)" in join.explain()
    with pytest.raises(UnsupportedOperationError, match="join the DataFrames of both"):
        join.to_spark(None)


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("inner", "polars"),
        ("left", "pandas"),
        ("right", "arrow"),
        ("full", "dicts"),
        ("semi", "scan"),
        ("anti", "stream"),
        ("full", "stream"),
    ],
)
def test_a_table_is_joined_with_any_rows(orders: lp.PartitionedTable, how: str, kind: str) -> None:
    plain = pa.table({"k": pa.array([2, 3, 9, None], pa.int64()), "name": ["name2", "name3", "name9", "nameNone"]})
    given: Any = {
        "polars": lambda: pl.DataFrame(plain),
        "pandas": plain.to_pandas,
        "arrow": lambda: plain,
        "dicts": plain.to_pylist,
        "scan": lambda: lp.sql("SELECT * FROM p", p=plain),
        "stream": plain.to_reader,
    }[kind]()
    if kind == "pandas":
        plain, given = plain.slice(0, 3), given.iloc[:3].astype({"k": "int64"})
    columns = ["n", "k"] if how in ("semi", "anti") else ["n", "k", "name"]

    join = orders.join(given, on=["k"], how=how, columns=columns)

    expected = {
        "inner": MATCHED,
        "left": MATCHED + ONLY_LEFT,
        "right": MATCHED + ONLY_RIGHT,
        "full": MATCHED + ONLY_LEFT + ONLY_RIGHT,
        "semi": [row[:2] for row in MATCHED],
        "anti": [row[:2] for row in ONLY_LEFT],
    }[how]
    wanted = [row for row in expected if kind != "pandas" or row[-1] != "nameNone"]
    assert _rows(join) == sorted(wanted, key=repr) == _rows(join)
    assert join.count() == len(wanted) == len(join.to_pandas())
    folder = Path(join.right.root.uri)
    assert folder.exists()
    del join
    gc.collect()
    assert not folder.exists()


def test_a_join_of_what_does_not_agree_within_little_memory(tmp_path: Path) -> None:
    left = lp.create_table(tmp_path / "l", pa.schema([("id", pa.int64()), ("a", pa.string())]), ["truncate(a, 1)"])
    right = lp.create_table(tmp_path / "r", pa.schema([("id", pa.int64()), ("b", pa.string())]), ["truncate(b, 1)"])
    ids = list(range(20_000))
    left.append(pa.table({"id": ids, "a": [f"{i % 7}{'x' * 50}" for i in ids]}))
    right.append(pa.table({"id": ids[::-1], "b": [f"{i % 5}{'y' * 50}" for i in ids]}))

    join = left.join(right, on=["id"], columns=["id"], memory=1)

    assert sorted(join.to_arrow()["id"].to_pylist()) == ids


def test_whole_floats_of_pandas_are_keys_of_whole_numbers(tmp_path: Path) -> None:
    table = lp.create_table_from(tmp_path / "t", pa.table({"id": [1, 2, 3], "k": ["a", "b", "a"]}), ["k"])
    frame = pd.DataFrame({"key": [1.0, None, 3.0], "name": ["x", "y", "z"]})

    found = table.join(frame, on=[("id", "key")], columns=["id", "name"]).to_arrow()

    assert sorted(found.to_pylist(), key=str) == [{"id": 1, "name": "x"}, {"id": 3, "name": "z"}]
    with pytest.raises(TableSchemaValidationError, match=r"'key': 1\.5"):
        table.join(pd.DataFrame({"key": [2.0, 1.5]}), on=[("id", "key")])
