"""Small leaves read together give the rows that reading each gives, in the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidTableStateError
from lancepart.read import packs
from lancepart.read import union as read_union
from tests.support.catalogs import Place

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.int64()), ("s", pa.struct([("a", pa.int32())])), ("x", pa.float64())])
QUESTIONS: tuple[tuple[str | None, list[str] | None], ...] = (
    (None, None),
    (None, ["x", "id"]),
    ("id > 20 AND p <> 7", ["id", "s.a"]),
    ("x = -0.0", ["id"]),
    ("abs(id) = 12 OR x IS NULL", None),
    ("s.a IN (1, 2)", ["p"]),
    ("p BETWEEN 5 AND 30", ["id"]),
    ("id < 0", None),
)


@pytest.fixture(params=[1, 3, 1_000])
def together(request: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many leaves are read together at most; two are many already."""
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    monkeypatch.setattr(packs, "MOST_LEAVES", request.param)
    return int(request.param)


def table_at(place: Place, **options: Any) -> lp.PartitionedTable:
    table = lp.create_table(place.root, SCHEMA, ["p"], storage_options=place.storage_options, **options)
    rows = [
        {"id": n, "p": n % 12, "s": None if n % 5 == 0 else {"a": n % 4}, "x": [0.0, -0.0, None, 1.5][n % 4]}
        for n in range(48)
    ]
    table.append(rows)
    table.append([{**row, "id": row["id"] + 100} for row in rows[:20]])
    table.delete("id % 7 = 3")
    return table


def assert_same(table: lp.PartitionedTable) -> None:
    for where, columns in QUESTIONS:
        scan = table.scan(where, columns)
        each = pa.Table.from_batches(
            [batch for task in scan.tasks() for batch in packs.read_each(packs.Pack(tasks=(task,)))],
            schema=scan.schema.remove_metadata(),
        )
        assert scan.to_arrow().to_pylist() == each.to_pylist(), where


def test_packs_read_what_leaves_hold(local: Place, together: int) -> None:
    table = table_at(local)

    assert_same(table)
    assert [len(each.tasks) for each in packs.packed(table.scan().tasks())] == {
        1: [1] * 12,
        3: [3] * 4,
        1_000: [12],
    }[together]


def test_columns_are_matched_in_packs_too(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    table = table_at(local)
    table.rename_column("x", "y")
    table.add_column(pa.field("x", pa.float64()))
    table.append([{"id": 500, "p": 3, "y": 2.0, "x": -0.0}, {"id": 501, "p": 99, "y": None, "x": 0.0}])
    assert_same(table)
    table.update_spec(["p", "bucket(2, id)"])
    table.append([{"id": 600 + n, "p": n, "y": 0.5, "x": 0.5} for n in range(4)])
    assert_same(table)
    with table.transaction() as tx:
        tx.delete("id = 1")
        tx.append([{"id": 700, "p": 1000, "y": 1.0}])
        assert sorted(tx.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == sorted(
            [*(key for key in table.scan().to_arrow()["id"].to_pylist() if key != 1), 700]
        )


def test_leaves_that_hold_narrower_types_are_read_each(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    table = lp.create_table(local.root, pa.schema([("id", pa.int32()), ("p", pa.int64())]), ["p"])
    table.append([{"id": n, "p": n % 6} for n in range(12)])
    table.widen_column("id", pa.int64())
    table.append([{"id": 2**40, "p": 2}])

    found = table.scan("id > 4").to_arrow()

    assert sorted(found["id"].to_pylist()) == [5, 6, 7, 8, 9, 10, 11, 2**40]
    assert found.schema.field("id").type == pa.int64()


@pytest.mark.parametrize("options", [{"transactions": "weak"}, {"layout": "hive"}])
def test_tables_without_snapshots_are_read_leaf_by_leaf(
    local: Place, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    table = table_at(local, **options)

    assert {len(each.tasks) for each in packs.packed(table.scan().tasks())} == {1}
    assert_same(table)


def test_large_leaves_stand_alone(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_at(local)
    sizes = table.inspect.partitions()["bytes"].to_pylist()
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    monkeypatch.setattr(packs, "SMALL_BYTES", sorted(sizes)[len(sizes) // 2])

    found = packs.packed(table.scan().tasks())

    assert sum(len(each.tasks) for each in found) == 12
    assert len(found) > 1
    assert_same(table)


def test_the_next_scan_opens_only_what_changed(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    table = table_at(local)
    before = table.scan().to_arrow()
    looked_at: list[str | None] = []
    plain = read_union.open_source

    def noted(task: Any, opener: Any) -> Any:
        looked_at.append(task.leaf.values[0])
        return plain(task, opener)

    monkeypatch.setattr(read_union, "open_source", noted)
    assert table.scan().to_arrow() == before
    assert looked_at == []
    table.append([{"id": 900, "p": 4, "x": 1.0}])
    assert table.scan().to_arrow().num_rows == before.num_rows + 1
    assert looked_at == ["4"]


def test_a_broken_leaf_is_named(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    table = table_at(local)
    broken = table.inspect.partitions().to_pylist()[5]
    for path in (Path(local.root) / broken["location"] / "_versions").iterdir():
        path.unlink()

    with pytest.raises(InvalidTableStateError, match=broken["object_id"].replace("$", r"\$")):
        table.scan().to_arrow()
