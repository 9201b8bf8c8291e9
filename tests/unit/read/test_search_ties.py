"""Rows at equal distances: the same order for every k, so that pages fit together, however leaves are searched."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.read import search_vectors
from lancepart.read.vector_block import VectorBlock
from lancepart.storage import search as storage

WIDTH, ROWS = 4, 900
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("v", pa.list_(pa.float32(), WIDTH))])
QUERY = [0.0] * WIDTH


def rows(start: int, count: int) -> pa.Table:
    """Corners of a cube: most of them are as far away as many others."""
    draw = np.random.default_rng(start)
    vectors = draw.integers(0, 2, (count, WIDTH)).astype("f4")
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), WIDTH)
    ids, tenants = pa.array(range(start, start + count)), pa.array(draw.integers(0, 4, count), pa.int32())
    return pa.table([ids, tenants, values], schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    made.append(rows(0, ROWS))
    return made


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no leaf be small enough to be searched in memory."""
    for name in ("UNION_BYTES", "LEAF_BYTES", "_INDEX_BYTES"):
        monkeypatch.setattr(search_vectors, name, 0)


def check(table: lp.PartitionedTable, where: str | None = None, **options: bool) -> None:
    """Compare the first rows, and pages of rows, with those of one search for all rows."""

    def found(k: int, offset: int = 0) -> list[int]:
        search = table.search(QUERY, "v", k, where, columns=["id"], offset=offset, **options)
        return search.to_arrow().column("id").to_pylist()

    whole = found(2 * ROWS)
    for k in (1, 3, 10, 40, 150):
        assert found(k) == whole[:k], (where, k)
    assert [number for offset in range(0, 120, 20) for number in found(20, offset)] == whole[:120]


FILTERS = (None, "id % 3 > 0", "k = 2", "k = 2 AND id > 100")


def test_ties_in_memory_are_those_of_every_k_after_a_table_wide_index(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("v", "IVF_FLAT", scope="table", num_partitions=1, progress=False)
    table.append(rows(2 * ROWS, 200))

    for where in FILTERS:
        check(table, where, exact=True)
        check(table, where)


@pytest.mark.slow
@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("scope", ["none", "leaf", "table"])
def test_ties_that_lance_finds_are_those_of_every_k(table: lp.PartitionedTable, scope: str) -> None:
    if scope != "none":
        table.maintenance.create_index("v", "IVF_FLAT", scope=scope, num_partitions=2, progress=False)
    table.append(rows(2 * ROWS, 200))

    for where in FILTERS:
        check(table, where)


@pytest.mark.usefixtures("large")
def test_a_graph_keeps_as_many_candidates_as_rows_are_ranked(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("v", "IVF_HNSW_SQ", scope="table", num_partitions=1, progress=False)

    assert len(table.search(QUERY, "v", 20, ef=20).to_list()) == 20


def test_a_block_gives_all_rows_as_far_away_as_the_last() -> None:
    held = pa.array([[float(n // 3), 0.0] for n in range(30)], pa.list_(pa.float32(), 2))
    block = VectorBlock.of(held, np.arange(30, dtype=np.uint64))
    assert block is not None

    for k, count in ((1, 3), (3, 3), (4, 6), (30, 30), (40, 30)):
        numbers, addresses, _ = block.nearest([[0.0, 0.0], [9.0, 0.0]], k, "l2", None)
        assert sorted(addresses[numbers == 0].tolist()) == list(range(count))
        assert sorted(addresses[numbers == 1].tolist()) == list(range(30 - count, 30))


def test_of_a_batch_only_queries_that_end_among_equal_distances_are_searched_again() -> None:
    values = [0.0] * 20 + [float(n) for n in range(5, 25)]
    held = pa.array([[value, 0.0] for value in values], pa.list_(pa.float32(), 2))
    handle = lance.write_dataset(pa.table({"v": held}), "memory://")
    queries = np.array([[24.0, 0.0], [0.0, 0.0], [15.0, 0.0]], dtype=np.float32)

    numbers, addresses, found = storage.nearest(handle, "v", queries, 3, use_index=False)

    assert sorted(addresses[numbers == 1].tolist())[:20] == list(range(20))
    assert sorted(found[numbers == 0].tolist())[:3] == [0.0, 1.0, 4.0]
    assert sorted(found[numbers == 2].tolist())[:3] == [0.0, 1.0, 1.0]
    assert np.count_nonzero(numbers == 0) == np.count_nonzero(numbers == 2) == 4
