"""Indices that are declared: built in one commit where they serve, kept up with new rows, and dropped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, TableIndexNotFoundError
from lancepart.maintain import leaf_tasks

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


def covered(table: lp.PartitionedTable, name: str) -> dict[str, tuple[int, int, int]]:
    """Rows, indexed rows and parts of an index by partition."""
    values = {row["object_id"]: row["partition"][0][1] for row in table.inspect.partitions().to_pylist()}
    return {
        values[row["object_id"]]: (row["rows"], row["indexed_rows"], row["segments"])
        for row in table.inspect.indices().to_pylist()
        if row["name"] == name
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
