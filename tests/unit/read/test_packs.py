"""Small leaves read together give the rows that reading each gives, in the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidTableStateError
from lancepart.read import packs, union_sources
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"transactions": "weak"}, {"layout": "hive"}])
def test_tables_without_snapshots_are_read_leaf_by_leaf(
    local: Place, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    table = table_at(local, **options)

    assert {len(each.tasks) for each in packs.packed(table.scan().tasks())} == {1}
    assert_same(table)


@pytest.mark.slow
def test_large_leaves_stand_alone(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_at(local)
    sizes = table.inspect.partitions()["bytes"].to_pylist()
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    monkeypatch.setattr(packs, "LARGE_LEAF", sorted(sizes)[len(sizes) // 2])

    found = packs.packed(table.scan().tasks())

    assert sum(len(each.tasks) for each in found) == 12
    assert len(found) > 1
    assert_same(table)


def test_the_next_scan_opens_only_what_changed(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    table = table_at(local)
    before = table.scan().to_arrow()
    looked_at: list[str | None] = []
    plain = union_sources.open_source

    def noted(task: Any, opener: Any) -> Any:
        looked_at.append(task.leaf.values[0])
        return plain(task, opener)

    monkeypatch.setattr(union_sources, "open_source", noted)
    assert table.scan().to_arrow() == before
    assert looked_at == []
    table.append([{"id": 900, "p": 4, "x": 1.0}])
    assert table.scan().to_arrow().num_rows == before.num_rows + 1
    assert looked_at in ([], ["4"]), "the manifest records the files of what changed, but for its deletions"


@pytest.mark.parametrize("lost", ["_versions", "data"])
def test_a_broken_leaf_is_named(local: Place, monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    table = table_at(local)
    broken = table.inspect.partitions().to_pylist()[5]
    for path in (Path(local.root) / broken["location"] / lost).iterdir():
        path.unlink()

    with pytest.raises(InvalidTableStateError, match=broken["object_id"].replace("$", r"\$")):
        table.scan().to_arrow()


@pytest.mark.slow
def test_packs_count_what_leaves_hold(local: Place, together: int) -> None:
    table = table_at(local)

    for where, _ in QUESTIONS:
        scan = table.scan(where)
        assert scan.count() == scan.to_arrow().num_rows, where


def test_a_union_is_made_once_for_a_snapshot(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    table = table_at(local)
    made: list[int] = []
    plain = packs.union.of_leaves

    def noted(rows: Any, options: Any) -> Any:
        made.append(len(rows.leaves))
        return plain(rows, options)

    monkeypatch.setattr(packs.union, "of_leaves", noted)
    before = table.scan().to_arrow()

    assert table.scan(columns=["id"]).to_arrow() == before.select(["id"])
    assert table.count_rows("id > 20") == sum(key > 20 for key in before["id"].to_pylist())
    assert made == [12]
    table.append([{"id": 900, "p": 4, "x": 1.0}])
    assert table.count_rows("id = 900") == 1
    assert made == [12, 12]


def test_packs_hold_no_more_than_some_bytes(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_at(local)
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    monkeypatch.setattr(packs, "MOST_BYTES", 3 * max(table.inspect.partitions()["bytes"].to_pylist()))

    assert max(len(each.tasks) for each in packs.packed(table.scan().tasks())) in (3, 4, 5)
    assert_same(table)


@pytest.mark.slow
def test_large_leaves_with_an_index_on_the_filter_are_read_by_it(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    monkeypatch.setattr(packs, "INDEXED_ROWS", 1)
    table = table_at(local)
    table.maintenance.create_index("id", "BTREE", scope="leaf")

    def sizes(where: str) -> set[int]:
        scan = table.scan(where)
        return {len(each.tasks) for each in packs.packed(scan.tasks(), scan.snapshot)}

    assert sizes("id = 20") == {1}
    assert sizes("x = 1.5") == {12}
    assert_same(table)


def test_few_matches_are_looked_up_by_the_filter_first(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    monkeypatch.setattr(packs, "_SAMPLED", 1)
    late: list[bool | None] = []
    plain = packs.leaf.scanned

    def noted(*given: Any, **options: Any) -> Any:
        late.append(options.get("late"))
        return plain(*given, **options)

    table = table_at(local)
    monkeypatch.setattr(packs.leaf, "scanned", noted)

    assert table.scan("id = 5000").to_arrow().num_rows == 0
    assert table.scan("id IN (20, 5000) AND p <> 7", ["x"]).to_arrow().num_rows == 1
    assert table.scan("p = p AND s.a = 1").to_arrow().num_rows > 3
    assert late == [True, None, None]


def test_a_filter_that_the_partition_answers_is_not_evaluated_again(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["p"])
    table.append([{"id": n, "p": None if n % 3 == 0 else n % 3} for n in range(12)])

    def left(where: str) -> set[bool]:
        return {task.predicate is not None for task in table.scan(where).tasks()}

    assert left("p = 1") == left("p IS NULL") == left("p >= 1 OR p IS NULL") == {False}
    assert left("p = 1 AND id > 3") == left("id = 3 OR p = 2") == {True}
    assert sorted(table.scan("p = 1").to_arrow()["id"].to_pylist()) == [1, 4, 7, 10]
    assert sorted(table.scan("p = 1 OR id = 3").to_arrow()["id"].to_pylist()) == [1, 3, 4, 7, 10]
    assert table.scan("p <> 1").to_arrow()["id"].to_pylist() == [2, 5, 8, 11]
    with table.transaction() as tx:
        tx.append([{"id": 100, "p": 1}])
        assert sorted(tx.scan("p = 1").to_arrow()["id"].to_pylist()) == [1, 4, 7, 10, 100]


def test_partitions_without_rows_are_packed_and_compacted_too(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "LEAST_LEAVES", 2)
    table = table_at(local)
    table.delete("p = 0")
    table.update({"x": "x + 1"}, "p = 1")
    table.maintenance.compact(progress=False)

    assert_same(table)
