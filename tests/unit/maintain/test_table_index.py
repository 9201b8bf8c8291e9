"""Table-wide indices: nearest vectors over all leaves, and look-ups of the leaves that hold a key."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.layout.declared_indices import Index
from lancepart.maintain import indices, leaf_maintenance
from lancepart.read import leaf as reading
from lancepart.read import search_vectors
from lancepart.read.leaf import LeafTask
from lancepart.storage.cache import cache
from lancepart.storage.leaf_handle import LeafHandle
from tests.support.search import distances

WIDTH, TENANTS, ROWS = 8, 6, 6_000
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("v", pa.list_(pa.float32(), WIDTH))])


def rows(start: int, count: int, tenants: int = TENANTS) -> pa.Table:
    draw = np.random.default_rng(start)
    centers = np.random.default_rng(1).normal(scale=4, size=(20, WIDTH))
    vectors = (centers[draw.integers(0, 20, count)] + draw.normal(size=(count, WIDTH))).astype("f4")
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), WIDTH)
    ids = pa.array(range(start, start + count))
    return pa.table([ids, pa.array([n % tenants for n in range(count)], pa.int32()), values], schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    made.append(rows(0, ROWS))
    return made


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no leaf be small enough to be searched in memory."""
    monkeypatch.setattr(search_vectors, "UNION_BYTES", 0)
    monkeypatch.setattr(search_vectors, "LEAF_BYTES", 0)


def check(table: lp.PartitionedTable, where: str | None = None, at_least: float = 0.95) -> None:
    """Compare with the true nearest rows of all that the table holds."""
    held = table.scan(where).to_arrow()
    vectors = np.stack(held.column("v").to_numpy(zero_copy_only=False))
    ids = held.column("id").to_numpy()
    shares = []
    for query in vectors[:: max(1, len(vectors) // 20)]:
        found = table.search(query, k=10, where=where, columns=["id"]).to_arrow()
        away = distances(vectors, query)
        np.testing.assert_allclose(found.column("_distance").to_numpy()[0], 0, atol=1e-5)
        known = dict(zip(ids.tolist(), away, strict=True))
        for number, distance in zip(*(found.column(name).to_pylist() for name in ("id", "_distance")), strict=True):
            assert distance == pytest.approx(known[number], rel=1e-4, abs=1e-4)
        shares.append(np.count_nonzero(found.column("_distance").to_numpy() <= np.sort(away)[9] + 1e-4) / 10)
    assert np.mean(shares) >= at_least


@pytest.mark.usefixtures("large")
def test_one_index_serves_all_leaves_some_and_one_through_changes(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("v", scope="table", progress=False)
    assert "table-wide index 'v_idx'" in table.search([0.0] * WIDTH).explain()
    for where in (None, "k < 3", "k = 2", "k = 2 AND id % 2 = 0"):
        check(table, where)

    table.append(rows(10_000, 60))
    check(table)
    table.delete("id % 7 = 3")
    check(table)
    table.maintenance.compact(progress=False)
    check(table)
    table.delete("k = 1")
    table.rename_column("v", "w")
    table.rename_column("w", "v")
    check(table, "k <> 4")


@pytest.mark.usefixtures("large")
def test_new_rows_get_parts_and_fast_search_needs_them(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("v", scope="table", num_partitions=8, progress=False)
    table.append(rows(10_000, 600, tenants=8))
    newest = rows(10_000, 600).column("v")[5].as_py()
    assert table.search(newest, k=1).to_list()[0]["id"] == 10_005
    assert table.search(newest, k=1, fast_search=True).to_list()[0]["id"] != 10_005

    assert table.maintenance.optimize_indices(progress=False).changed == 1

    assert table.search(newest, k=1, fast_search=True).to_list()[0]["id"] == 10_005
    check(table)
    assert table.maintenance.optimize_indices(progress=False).changed == 0


def test_what_can_not_be_over_the_whole_table_is_refused(table: lp.PartitionedTable) -> None:
    with pytest.raises(InvalidInputError, match="BITMAP can't be over the whole table"):
        table.maintenance.create_index("id", "BITMAP", scope="table", progress=False)
    with pytest.raises(InvalidInputError, match="takes no where"):
        table.maintenance.create_index("id", scope="table", where="k = 1", progress=False)


def test_a_look_up_tells_the_leaves_that_hold_a_key(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("id", scope="table", progress=False)
    assert [len(table.scan(f"id = {n}").tasks()) for n in (0, 17, 5_999, 6_000)] == [1, 1, 1, 0]
    assert len(table.scan("id IN (0, 1, 2)").tasks()) == 3
    assert len(table.scan("id = 0 OR k = 3").tasks()) == TENANTS
    assert len(table.scan("id <> 0").tasks()) == TENANTS
    assert table.scan("id = 17 AND k = 5").to_arrow().column("id").to_pylist() == [17]

    table.append(rows(20_000, 2))
    assert table.scan("id = 20001").count() == 1
    assert table.scan("id = 17").count() == 1
    table.upsert([{"id": 17, "k": 3, "v": [9.0] * WIDTH}], on=["id"])
    table.delete("id = 18")
    assert table.scan("id = 17").to_arrow().select(["k", "v"]).to_pylist() == [{"k": 3, "v": [9.0] * WIDTH}]
    assert table.scan("id = 18").count() == 0

    table.maintenance.optimize_indices(progress=False)

    assert len(table.scan("id = 17").tasks()) == 1
    assert table.scan("id = 17").count() == table.scan("id = 20001").count() == 1
    table.widen_column("k", pa.int64())
    assert table.scan("id = 17").count() == 1


def test_a_look_up_serves_through_other_indices_and_deletions(table: lp.PartitionedTable) -> None:
    """Leaves get versions then that it was not built of, but no key that it lacks."""
    table.maintenance.create_index("id", scope="table", progress=False)
    table.maintenance.create_index("k", scope="leaf", progress=False)
    assert table.maintenance.optimize_indices(progress=False).changed == 0
    table.delete("id % 9 = 3")
    table.maintenance.drop_index("k_idx", progress=False)

    for each in (table, lp.open_table(table.root)):
        assert [len(each.scan(f"id = {n}").tasks()) for n in (0, 17, 6_000)] == [1, 1, 0]
    shown = table.inspect.indices().to_pylist()
    assert all(row["indexed_rows"] == row["rows"] for row in shown if row["scope"] == "table")
    table.append(rows(20_000, 1))
    assert table.scan("id = 20000").count() == 1


def test_a_look_up_that_was_built_after_deletions_knows_no_rows_that_come_back(table: lp.PartitionedTable) -> None:
    version = table.version
    table.delete("id = 17")
    table.maintenance.create_index("id", scope="table", progress=False)
    assert len(table.scan("id = 17").tasks()) == 0

    table.maintenance.rollback(version)

    assert table.scan("id = 17").count() == 1


def test_a_look_up_of_a_release_from_before_serves_for_its_versions(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("id", scope="table", progress=False)
    described = next(Path(table.root).glob("table_indices/*/_refs/segment.json"))
    described.write_text(json.dumps({"leaves": json.loads(described.read_text())["leaves"]}))
    cache.clear()
    assert len(table.scan("id = 17").tasks()) == 1

    table.delete("id = 0")

    found = table.scan("id = 17")
    assert (len(found.tasks()), found.count()) == (2, 1)


@pytest.mark.slow
def test_changes_by_a_key_read_only_the_leaf_that_holds_it(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.maintenance.create_index("id", scope="table", progress=False)
    read: list[str] = []
    kept_open = reading.kept_open

    def watched(task: LeafTask) -> LeafHandle:
        read.append(task.leaf.location)
        return kept_open(task)

    monkeypatch.setattr(reading, "kept_open", watched)
    for change in (
        lambda: table.delete("id = 8"),
        lambda: table.delete("id = 9 AND k < 100"),
        lambda: table.update({"k": "0"}, "id = 10"),
        lambda: table.upsert([{"id": 11, "k": 5, "v": [0.0] * WIDTH}], on=["id"]),
    ):
        read.clear()
        change()
        assert len(set(read)) == 1
        table.maintenance.optimize_indices(progress=False)
    assert table.scan("id IN (8, 9)").count() == 0
    assert table.count_rows() == ROWS - 2
    table.delete("k = 4 OR id = 1")
    assert table.count_rows("k = 4 OR id = 1") == 0


@pytest.mark.usefixtures("large")
def test_rows_that_a_rollback_brings_back_are_found_by_an_index_built_without_them(
    table: lp.PartitionedTable,
) -> None:
    version, wanted = table.version, rows(0, ROWS).column("v")[7].as_py()
    table.delete("id = 7")
    table.maintenance.create_index("v", scope="table", progress=False)
    assert table.search(wanted, k=1).to_list()[0]["id"] != 7

    table.maintenance.rollback(version)

    found = table.search(wanted, k=1)
    assert "table-wide index 'v_idx'" in found.explain()
    assert found.to_list()[0]["id"] == 7
    table.maintenance.optimize_indices(progress=False)
    assert table.search(wanted, k=1).to_list()[0]["id"] == 7
    check(table)


@pytest.mark.usefixtures("large")
def test_a_table_wide_index_is_kept_in_the_bounded_cache(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("v", scope="table", num_partitions=8, progress=False)
    query = rows(0, 1).column("v")[0].as_py()
    table.search(query, k=1, columns=["id"]).to_arrow()
    held = cache.session.size_bytes()
    for at in range(8):
        table.search(rows(0, 8).column("v")[at].as_py(), k=1, columns=["id"], nprobes=8).to_arrow()
    assert cache.session.size_bytes() > 100_000
    assert cache.session.size_bytes() >= held
    table.append(rows(30_000, 1))
    assert table.search(rows(30_000, 1).column("v")[0].as_py(), k=1).to_list()[0]["id"] == 30_000
    assert table.count_rows() == ROWS + 1


@pytest.mark.parametrize(("count", "parts"), [(4_096, 16), (262_144, 128), (1_000_000, 488)])
def test_parts_of_an_index_stay_small_however_many_rows_there_are(count: int, parts: int) -> None:
    index = Index(name="i", column=1, kind="IVF_FLAT")
    assert indices.fitted(index, count) == {"num_partitions": parts}


@pytest.mark.parametrize(("count", "parts"), [(4_096, 16), (35_000, 100), (122_500, 350), (1_000_000, 1_000)])
def test_parts_of_a_leafs_index_are_finer_up_to_the_root_of_its_rows(count: int, parts: int) -> None:
    index = Index(name="i", column=1, kind="IVF_FLAT")
    assert indices.fitted(index, count, in_leaf=True) == {"num_partitions": parts}
    assert indices.fitted(replace(index, params={"num_partitions": 7}), count, in_leaf=True) == {"num_partitions": 7}


def test_a_link_among_the_parts_of_indices_is_reported_and_not_followed(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("k", pa.int64())]), ["k"])
    table.append([{"k": 1}, {"k": 2}])
    root = Path(table.root)
    leaf = next(path for path in root.iterdir() if path.name.endswith("$dataset"))
    (root / "table_indices").mkdir()
    (root / "table_indices" / ("cd" * 16)).symlink_to(leaf)
    for path in [path for path in leaf.rglob("*") if path.is_file()]:
        os.utime(path, (1.6e9, 1.6e9))

    found = table.maintenance.remove_orphans(timedelta(days=7))

    assert any("cd" * 16 in note for note in found.kept)
    assert table.count_rows("k > 0") == 2


@pytest.mark.slow
@pytest.mark.parametrize("column", ["id", "v"])
def test_a_damaged_part_is_searched_without_reported_and_built_anew(
    table: lp.PartitionedTable, column: str, large: None
) -> None:
    table.maintenance.create_index(column, scope="table", progress=False)
    (facts,) = Path(table.root).glob("table_indices/*/_refs/segment.json")
    facts.write_text('{"facts": 3}')
    cache.clear()

    check(table)
    assert table.scan("id = 7").to_arrow().column("id").to_pylist() == [7]
    assert "damaged" in table.inspect.broken_indices().column("error")[0].as_py()

    table.maintenance.optimize_indices(progress=False)
    assert table.inspect.broken_indices().num_rows == 0
    check(table)


def ways(table: lp.PartitionedTable, **options: bool) -> list[str]:
    """How all leaves, and each of them, are searched for vectors."""
    return table.search([0.0] * WIDTH, **options).explain().split("vectors: ")[1].splitlines()


@pytest.mark.slow
@pytest.mark.usefixtures("large")
def test_a_table_wide_index_that_covers_few_rows_gives_way_to_those_of_leaves(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_vectors, "_INDEX_BYTES", 0)
    table.append(rows(ROWS, 60))
    table.maintenance.create_index("v", name="wide", scope="table", progress=False)
    table.maintenance.create_index("v", scope="leaf", num_partitions=2, progress=False)
    assert "table-wide index 'wide' (IVF_FLAT))" in ways(table)[0]

    leaf_maintenance.compact(table._manifest, progress=False)

    assert all("index 'v_idx' (IVF_FLAT)" in way and "table-wide" not in way for way in ways(table)[1:])
    assert len(table.search([0.0] * WIDTH, k=50, fast_search=True).to_list()) == 50
    check(table)
    table.maintenance.optimize_indices(progress=False)
    assert "table-wide index 'wide' (IVF_FLAT))" in ways(table)[0]
    assert not any("flat" in way for way in ways(table))


@pytest.mark.slow
@pytest.mark.usefixtures("large")
def test_a_plan_tells_the_rows_that_a_table_wide_index_does_not_cover(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("v", scope="table", progress=False)
    table.append(rows(ROWS, 60))
    table.append(rows(2 * ROWS, 7, tenants=7))
    table.delete(f"id = {2 * ROWS + 1}")

    found = ways(table)

    assert "table-wide index 'v_idx' (IVF_FLAT), 66 rows flat" in found[0]
    assert sum("(IVF_FLAT), 11 rows flat, 1011 rows" in way for way in found[1:]) == TENANTS - 1
    assert sum("(IVF_FLAT), 10 rows flat, 1010 rows" in way for way in found[1:]) == 1
    assert sum(way.endswith(": flat, 1 rows") for way in found[1:]) == 1
    leaf_maintenance.compact(table._manifest, progress=False)
    assert "together (flat)" in ways(table)[0]
