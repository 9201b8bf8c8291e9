"""Indices that are declared: built in one commit where they serve, kept up with new rows, and dropped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.commit.transaction import Transaction
from lancepart.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableIndexAlreadyExistsError,
    TableIndexNotFoundError,
)
from lancepart.format.names import INDICES
from lancepart.layout.declared_indices import Index, declared
from lancepart.maintain import leaf_tasks, table_index
from lancepart.read.engine import Executor
from lancepart.storage import leaf_handle

WIDTH = 4
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.list_(pa.float32(), WIDTH))])


def rows(k: str, count: int, start: int = 0) -> pa.Table:
    vectors = np.random.default_rng(start).random(count * WIDTH).astype("f4")
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors), WIDTH)
    return pa.table([pa.array(range(start, start + count)), pa.array([k] * count), values], schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    made.append(pa.concat_tables([rows("large", 5_000), rows("small", 50, 5_000)]))
    return made


def covered(table: lp.PartitionedTable, name: str, scope: str = "leaf") -> dict[str, tuple[int, int, int]]:
    """Rows, indexed rows and parts of an index by partition."""
    values = {row["object_id"]: row["partition"][0][1] for row in table.inspect.partitions().to_pylist()}
    return {
        values[row["object_id"]]: (row["rows"], row["indexed_rows"], row["segments"])
        for row in table.inspect.indices().to_pylist()
        if row["name"] == name and row["scope"] == scope
    }


def commits(table: lp.PartitionedTable) -> int:
    return sum(row["operation"] == "index" for row in table.inspect.snapshots().to_pylist())


def test_an_index_is_one_commit_and_leaves_small_partitions_flat(table: lp.PartitionedTable) -> None:
    done = table.maintenance.create_index("v", progress=False)

    assert done.changed == 1
    assert commits(table) == 1
    assert covered(table, "v_idx") == {"large": (5_000, 5_000, 1), "small": (50, 0, 0)}
    table.maintenance.create_index("id", progress=False)
    assert commits(table) == 2
    assert covered(table, "id_idx") == {"large": (5_000, 5_000, 1), "small": (50, 50, 1)}


def test_the_kind_follows_the_column_and_where_the_partitions(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("id", where="k = 'small'", progress=False)

    assert covered(table, "id_idx")["small"] == (50, 50, 1)
    assert covered(table, "id_idx")["large"][1] == 0
    (kind,) = {row["type"] for row in table.inspect.indices().to_pylist() if row["indexed_rows"]}
    assert kind == "BTree"


def test_new_rows_get_parts_of_their_own_until_there_are_many(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("id", progress=False)
    assert table.maintenance.optimize_indices(progress=False).changed == 0
    for number in range(leaf_tasks.MOST_SEGMENTS):
        table.append(rows("small", 10, 10_000 + 10 * number))
        done = table.maintenance.optimize_indices(progress=False)
        assert done.changed == 1
        count, indexed, segments = covered(table, "id_idx")["small"]
        assert count == indexed == 60 + 10 * number
        assert segments == (number + 2 if number + 2 <= leaf_tasks.MOST_SEGMENTS else 1)
        assert table.scan(f"id = {10_000 + 10 * number}").count() == 1


def test_a_new_partition_gets_its_index_at_the_next_upkeep(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("v", progress=False)
    table.append(rows("new", 4_200, 20_000))
    assert covered(table, "v_idx")["new"] == (4_200, 0, 0)

    table.maintenance.optimize_indices(progress=False)

    assert covered(table, "v_idx")["new"] == (4_200, 4_200, 1)


def test_an_index_that_no_partition_is_large_enough_for_is_refused(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "few", SCHEMA, ["k"])
    table.append(rows("a", 100))
    version = table.version
    for params in ({}, {"num_partitions": 1, "num_sub_vectors": 2}):
        with pytest.raises(InvalidInputError, match="the largest has 100"):
            table.maintenance.create_index("v", "IVF_PQ", progress=False, **params)
    with pytest.raises(InvalidInputError, match="scope is 'leaves'"):
        table.maintenance.create_index("v", scope="leaves", progress=False)
    assert table.version == version


def test_a_dropped_index_is_gone_and_not_built_again(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("id", progress=False)

    assert table.maintenance.drop_index("id_idx", progress=False).changed == 2

    assert covered(table, "id_idx") == {}
    table.maintenance.optimize_indices(progress=False)
    assert covered(table, "id_idx") == {}
    with pytest.raises(TableIndexNotFoundError, match="the table has none"):
        table.maintenance.drop_index("id_idx", progress=False)


@pytest.mark.parametrize("then", ["leaf", "table"])
def test_an_index_of_another_scope_replaces_the_one_before_it(table: lp.PartitionedTable, then: str) -> None:
    table.maintenance.create_index("id", progress=False)
    assert covered(table, "id_idx")["large"] == (5_000, 5_000, 1)

    where = "k = 'small'" if then == "leaf" else None
    table.maintenance.create_index("id", scope=then, where=where, progress=False)

    assert covered(table, "id_idx").get("large", (0, 0, 0))[1:] == (0, 0)
    assert covered(table, "id_idx").get("small", (0, 0, 0))[1:] == ((50, 1) if then == "leaf" else (0, 0))
    table.maintenance.drop_index("id_idx", progress=False)
    assert table.inspect.indices().num_rows == 0


def test_a_partition_that_is_too_small_for_an_index_loses_the_one_before_it(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("v", "IVF_FLAT", num_partitions=1, progress=False)
    assert covered(table, "v_idx")["small"] == (50, 50, 1)

    table.maintenance.create_index("v", progress=False)

    assert covered(table, "v_idx") == {"large": (5_000, 5_000, 1), "small": (50, 0, 0)}


def test_the_name_of_an_index_on_another_column_is_refused(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("id", name="mine", progress=False)
    version = table.version

    for scope in ("leaf", "table"):
        with pytest.raises(TableIndexAlreadyExistsError, match="index 'mine' is on column 'id'"):
            table.maintenance.create_index("v", name="mine", scope=scope, progress=False)

    assert table.version == version
    table.drop_column("id")
    with pytest.raises(TableIndexAlreadyExistsError, match="index 'mine' is on a dropped column"):
        table.maintenance.create_index("k", name="mine", progress=False)
    table.maintenance.drop_index("mine", progress=False)
    table.maintenance.create_index("k", name="mine", progress=False)
    assert covered(table, "mine")["small"] == (50, 50, 1)


class Killed(BaseException):
    """The end of a process."""


@pytest.mark.parametrize(("column", "scope"), [("id", "leaf"), ("id", "table"), ("v", "table")])
def test_an_index_comes_and_goes_in_one_commit_each(table: lp.PartitionedTable, column: str, scope: str) -> None:
    version = table.version

    done = table.maintenance.create_index(column, scope=scope, progress=False)
    assert (table.version, done.version) == (version + 1, version + 1)
    assert declared(table._manifest.snapshot(version)) == ()
    assert covered(table, f"{column}_idx", scope)["large"] == (5_000, 5_000, 1)

    done = table.maintenance.drop_index(f"{column}_idx", progress=False)
    assert (table.version, done.version) == (version + 2, version + 2)
    assert table.inspect.indices().num_rows == 0


def test_upkeep_is_one_commit_too(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("k", "FTS", scope="leaf", progress=False)
    (index,) = declared(table._manifest.snapshot())
    table.append(rows("new", 10, 90_000))
    version = table.version

    table.maintenance.optimize_indices(progress=False)

    assert table.version == version + 1
    assert declared(table._manifest.snapshot()) == (index,)


def test_an_index_whose_builder_dies_leaves_nothing_to_see(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object, **__: object) -> None:
        raise Killed

    version = table.version
    for scope in ("leaf", "table"):
        with monkeypatch.context() as patched:
            patched.setattr(Transaction, "commit", dies)
            with pytest.raises(Killed):
                table.maintenance.create_index("id", scope=scope, progress=False)
        assert table.version == version
        assert table.inspect.indices().num_rows == 0

    table.maintenance.create_index("id", progress=False)
    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "commit", dies)
        with pytest.raises(Killed):
            table.maintenance.drop_index("id_idx", progress=False)
    assert covered(table, "id_idx") == {"large": (5_000, 5_000, 1), "small": (50, 50, 1)}
    table.maintenance.drop_index("id_idx", progress=False)
    assert table.inspect.indices().num_rows == 0


def test_an_index_is_declared_where_others_changed_every_leaf_meanwhile(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Transaction.commit
    others = iter([True])

    def late(own: Transaction) -> Any:
        if own.operation == "index" and next(others, False):
            lp.open_table(table.root).update({"v": "v"}, "id >= 0")
        return plain(own)

    monkeypatch.setattr(Transaction, "commit", late)
    done = table.maintenance.create_index("id", scope="leaf", where="k = 'small'", progress=False)

    assert (done.changed, len(done.skipped)) == (0, 1)
    assert covered(table, "id_idx")["small"] == (50, 0, 0)
    table.maintenance.optimize_indices(progress=False)
    assert covered(table, "id_idx")["small"] == (50, 50, 1)


def test_two_indices_made_at_once_are_both_declared(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = table_index.built
    others = iter([True])

    def late(opening: Transaction, index: Index, executor: Executor) -> Index:
        made = plain(opening, index, executor)
        if next(others, False):
            lp.open_table(table.root).maintenance.create_index("id", scope="table", progress=False)
        return made

    monkeypatch.setattr(table_index, "built", late)
    table.maintenance.create_index("v", scope="table", progress=False)

    assert {each.name for each in declared(table._manifest.snapshot())} == {"id_idx", "v_idx"}


def test_an_index_that_was_declared_as_a_property_is_kept_by_the_next_one(table: lp.PartitionedTable) -> None:
    written = [{"name": "old", "column": 1, "kind": "BTREE", "params": {}}]
    table._manifest.swap_properties(table._manifest.snapshot(), {INDICES: json.dumps(written)})
    table.maintenance.create_index("v", scope="table", progress=False)

    assert {each.name for each in declared(table._manifest.snapshot())} == {"old", "v_idx"}
    assert {each.name for each in declared(lp.open_table(table.root)._manifest.snapshot())} == {"old", "v_idx"}
    table.maintenance.drop_index("old", progress=False)
    assert {each.name for each in declared(lp.open_table(table.root)._manifest.snapshot())} == {"v_idx"}


def test_an_index_that_can_not_be_built_is_not_declared(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("v", progress=False)

    for name in ("v_idx", "new"):
        with pytest.raises(LanceNamespaceError):
            table.maintenance.create_index("v", "IVF_PQ", name=name, num_sub_vectors=3, progress=False)

    assert [each.kind for each in declared(table._manifest.snapshot())] == ["IVF_FLAT"]
    assert covered(table, "v_idx")["large"] == (5_000, 5_000, 1)
    table.maintenance.optimize_indices(progress=False)


def test_a_table_wide_index_reports_what_was_built(table: lp.PartitionedTable) -> None:
    built = table.maintenance.create_index("v", scope="table", progress=False)

    assert (built.changed, built.version) == (1, table.version)
    table.append(rows("small", 10, 30_000))
    table.maintenance.create_index("id", scope="table", progress=False)
    assert table.maintenance.optimize_indices(progress=False).changed == 0
    dropped = table.maintenance.drop_index("v_idx", progress=False)
    assert (dropped.changed, dropped.version) == (1, table.version)


@pytest.mark.parametrize("kind", ["IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_SQ"])
def test_a_table_that_is_too_small_for_a_table_wide_index_is_refused(tmp_path: Path, kind: str) -> None:
    table = lp.create_table(tmp_path / "few", SCHEMA, ["k"])
    table.append(pa.concat_tables([rows("a", 60), rows("b", 40)]))

    for params in ({}, {"num_partitions": 1}):
        with pytest.raises(InvalidInputError, match=r"serves tables of at least .* rows, and this one has 100"):
            table.maintenance.create_index("v", kind, scope="table", progress=False, **params)
    assert declared(table._manifest.snapshot()) == ()


def test_an_index_on_an_emptied_table_is_declared_as_on_one_that_was_never_filled(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "empty", SCHEMA, ["k"])
    table.append(rows("a", 10))
    table.delete("true")

    for scope in ("leaf", "table"):
        assert table.maintenance.create_index("k", "FTS", scope=scope, progress=False).changed == 0
    table.append(rows("a", 10))
    assert table.maintenance.optimize_indices(progress=False).changed == 1


def test_the_coverage_of_table_wide_indices_is_shown_by_leaf(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("id", scope="table", progress=False)
    table.maintenance.create_index("v", scope="table", progress=False)
    whole = {"large": (5_000, 5_000, 1), "small": (50, 50, 1)}
    assert covered(table, "id_idx", "table") == covered(table, "v_idx", "table") == whole

    table.append(rows("small", 10, 40_000))
    assert covered(table, "id_idx", "table")["small"] == (60, 0, 0)
    assert covered(table, "v_idx", "table") == {**whole, "small": (60, 50, 1)}
    table.delete("id = 40000")
    table.maintenance.create_index("id", progress=False)
    table.maintenance.optimize_indices(progress=False)

    assert covered(table, "id_idx") == {"large": (5_000, 5_000, 1), "small": (59, 59, 1)}
    assert covered(table, "id_idx", "table") == {}
    assert covered(table, "v_idx") == {}
    kinds = {(row["name"], row["type"]) for row in table.inspect.indices().to_pylist() if row["scope"] == "table"}
    assert kinds == {("v_idx", "IVF_FLAT")}


def test_a_table_wide_index_serves_until_the_one_in_its_place_is_built(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.maintenance.create_index("v", scope="table", progress=False)
    (before,) = declared(table._manifest.snapshot())
    seen = []
    plain = table_index.built

    def noted(opening: Transaction, index: Index, executor: Executor) -> Index:
        seen.append(declared(table._manifest.snapshot())[0].segments)
        return plain(opening, index, executor)

    monkeypatch.setattr(table_index, "built", noted)
    table.maintenance.create_index("v", scope="table", num_partitions=4, progress=False)

    (after,) = declared(table._manifest.snapshot())
    assert seen == [before.segments]
    assert len(after.segments) == 1
    assert after.segments != before.segments


def segments(table: lp.PartitionedTable, partition: str) -> dict[str, set[str]]:
    """The parts of a leaf's indices by their ids."""
    (leaf,) = table.scan(f"k = '{partition}'").plan().leaves
    handle = leaf_handle.open_leaf(table._manifest.root, leaf.location, leaf.read_version)
    return {each.name: {str(part.uuid) for part in each.segments} for each in handle.describe_indices()}


def test_compaction_keeps_the_parts_of_indices_over_rows_that_stay(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("id", progress=False)
    table.maintenance.create_index("k", "FTS", progress=False)
    before = segments(table, "large")
    for start in range(10_000, 10_050, 10):
        table.append(rows("large", 10, start))
    table.delete("id IN (7, 10005)")

    table.maintenance.compact(target_rows=1_000, progress=False)

    after = segments(table, "large")
    assert len(after["id_idx"]) == 2
    assert before["id_idx"] < after["id_idx"]
    assert len(after["k_idx"]) == 1
    assert after["k_idx"] != before["k_idx"]
    for name in ("id_idx", "k_idx"):
        assert covered(table, name)["large"][:2] == (5_048, 5_048)
    for dataset in (table.to_lance(), table.publish_lance()):
        found = dataset.to_table(filter="id IN (6, 7, 4999, 10004, 10005, 10049)")
        assert sorted(found["id"].to_pylist()) == [6, 4_999, 10_004, 10_049]
    assert sorted(table.scan("id IN (6, 7, 10004, 10005)").to_arrow()["id"].to_pylist()) == [6, 10_004]


def test_compaction_lets_table_wide_indices_cover_what_moved_by_a_part_more(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("v", "IVF_FLAT", scope="table", num_partitions=2, progress=False)
    table.maintenance.create_index("id", "BTREE", scope="table", progress=False)
    (vectors, keys) = declared(table._manifest.snapshot())
    for start in range(10_000, 10_050, 10):
        table.append(rows("small", 10, start))

    table.maintenance.compact(progress=False)

    after = {each.name: each for each in declared(table._manifest.snapshot())}
    for before in (vectors, keys):
        assert after[before.name].segments[:1] == before.segments
        assert len(after[before.name].segments) == 2
        assert covered(table, before.name, "table")["large"] == (5_000, 5_000, 1)
        assert covered(table, before.name, "table")["small"] == (100, 100, 1)
    query = rows("small", 1, 10_000)["v"][0].as_py()
    assert table.search(query, "v", k=1, nprobes=2).to_arrow()["id"].to_pylist() == [10_000]

    table.append(pa.concat_tables([rows("large", 10, 20_000), rows("small", 10, 20_100)]))
    table.maintenance.compact(progress=False)
    assert [len(each.segments) for each in declared(table._manifest.snapshot())] == [1, 1]
