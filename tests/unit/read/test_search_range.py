"""Ranges of distances: all rows in them are found, whatever kind of index there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.read import search_vectors
from tests.support.search import distances

WIDTH, ROWS = 8, 6_000
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("v", pa.list_(pa.float32(), WIDTH))])
KINDS = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 4},
    "IVF_SQ": {},
    "IVF_RQ": {},
    "IVF_HNSW_SQ": {},
    "IVF_HNSW_FLAT": {},
}


def vectors() -> Any:
    draw = np.random.default_rng(5)
    centers = draw.normal(scale=20, size=(60, WIDTH))
    return (centers[draw.integers(0, 60, ROWS)] + draw.normal(size=(ROWS, WIDTH))).astype("f4")


VECTORS = vectors()


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> lp.PartitionedTable:
    """A table that is too large to be searched in memory."""
    for name in ("UNION_BYTES", "LEAF_BYTES", "_INDEX_BYTES"):
        monkeypatch.setattr(search_vectors, name, 0)
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    values = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.reshape(-1)), WIDTH)
    tenants = pa.array(np.arange(ROWS) % 2, pa.int32())
    made.append(pa.table([pa.array(range(ROWS)), tenants, values], schema=SCHEMA))
    return made


def found(table: lp.PartitionedTable, query: Any, between: Any, k: int, **options: Any) -> Any:
    search = table.search(query, k=k, distance_range=between, **options)
    return search.to_arrow().column("_distance").to_numpy()


@pytest.mark.parametrize("scope", ["leaf", "table"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_rows_in_a_range_are_found(table: lp.PartitionedTable, kind: str, scope: str) -> None:
    table.maintenance.create_index("v", kind, scope=scope, num_partitions=30, progress=False, **KINDS[kind])

    for query in VECTORS[:15:7]:
        away = np.sort(distances(VECTORS, query))
        middle, next_to_it, far = (float(np.quantile(away, share)) for share in (0.5, 0.502, 0.9))
        for low, high in ((far, None), (middle, next_to_it), (None, middle), (0.0, next_to_it)):
            for k in (10, ROWS):
                expected = away[(away >= (low or 0)) & (away < (high or np.inf))][:k]
                np.testing.assert_allclose(found(table, query, (low, high), k), expected, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(found(table, query, (None, None), 5), away[:5], rtol=1e-4, atol=1e-3)


def test_a_batch_with_a_range_is_as_many_searches(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("v", "IVF_PQ", scope="table", num_partitions=30, num_sub_vectors=4, progress=False)
    high = float(np.sort(distances(VECTORS, VECTORS[0]))[30])

    batch = table.search(VECTORS[:3], k=20, distance_range=(None, high)).to_arrow()

    for number in range(3):
        own = batch.filter(pa.compute.equal(batch.column("_query_index"), number)).column("_distance").to_numpy()
        np.testing.assert_array_equal(own, found(table, VECTORS[number], (None, high), 20))


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_SQ"])
def test_a_fast_search_of_a_range_uses_the_index_all_the_same(table: lp.PartitionedTable, kind: str) -> None:
    table.maintenance.create_index("v", kind, scope="table", num_partitions=30, progress=False)
    low = float(np.quantile(distances(VECTORS, VECTORS[0]), 0.9))
    table.append([{"id": ROWS, "k": 0, "v": (VECTORS[0] + 1_000).tolist()}])

    far = found(table, VECTORS[0], (low, None), ROWS, fast_search=True)

    assert 590 <= len(far) <= 600
    assert len(found(table, VECTORS[0], (low, None), ROWS)) == 601


def test_a_range_with_a_least_distance_is_searched_row_by_row(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("v", scope="table", num_partitions=30, progress=False)

    assert "table-wide" in table.search(VECTORS[0], distance_range=(0.0, 50.0)).explain()
    assert "(flat)" in table.search(VECTORS[0], distance_range=(10.0, 50.0)).explain()
