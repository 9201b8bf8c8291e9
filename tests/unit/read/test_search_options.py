"""What options of a search mean, how long its steps took, and the forms in which its rows come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.read import search_vectors

PARTS, EACH = 2, 50
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("t", pa.string()), ("v", pa.list_(pa.float32(), 2))])


@pytest.fixture(params=["leaf", "table"])
def table(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> lp.PartitionedTable:
    """Two clusters far from each other, each of which is a part of the index; no leaf is searched in memory."""
    for name in ("LEAF_BYTES", "UNION_BYTES", "_INDEX_BYTES"):
        monkeypatch.setattr(search_vectors, name, 0)
    draw = np.random.default_rng(3)
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"] if request.param == "table" else [])
    made.append(
        [
            {"id": n, "k": n % 4, "t": f"word{n % 5}", "v": [1_000.0 * (n % PARTS), float(draw.normal())]}
            for n in range(PARTS * EACH)
        ]
    )
    made.maintenance.create_index("v", scope=request.param, num_partitions=PARTS, progress=False)
    return made


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"nprobes": 1}, EACH),
        ({"nprobes": 2}, 60),
        ({"maximum_nprobes": 1}, EACH),
        ({"minimum_nprobes": 1}, 60),
        ({"minimum_nprobes": 1, "maximum_nprobes": 2}, 60),
        ({"nprobes": 1, "exact": True}, 60),
        ({}, 60),
    ],
)
def test_as_many_parts_of_an_index_are_looked_into_as_it_is_said(
    table: lp.PartitionedTable, options: dict[str, Any], rows: int
) -> None:
    search = table.search([0.0, 0.0], k=60, columns=["id"], **options)

    found = search.to_arrow()["id"].to_pylist()

    assert ("index 'v_idx'" in search.explain()) == ("exact" not in options)
    assert len(found) == rows
    assert {number % PARTS for number in found[:EACH]} == {0}


def test_recall_is_that_of_the_parts_that_are_looked_into(table: lp.PartitionedTable) -> None:
    assert table.search([0.0, 0.0], k=60, nprobes=1).recall(8) == pytest.approx(EACH / 60)
    assert table.search([0.0, 0.0], k=60).recall(8) == 1.0


def test_the_time_of_building_an_index_in_memory_is_reported_apart(table: lp.PartitionedTable) -> None:
    first, again = (table.search("word3", "t", where="k = 1", statistics="partition") for _ in range(2))
    first.to_arrow()
    again.to_arrow()
    near = table.search([0.0, 0.0])
    near.to_arrow()

    assert set(first.seconds) == set(again.seconds) == {"index", "text", "rows"}
    assert first.seconds["index"] > again.seconds["index"]
    assert set(near.seconds) == {"vector", "rows"}


def test_rows_come_as_a_table_batches_a_frame_or_a_list(table: lp.PartitionedTable) -> None:
    search = table.search([0.0, 0.0], k=7, where="k = 0")
    rows = search.to_arrow()

    assert pa.Table.from_batches(search.to_batches()) == rows
    assert search.to_list() == rows.to_pylist()
    assert search.to_pandas()["id"].tolist() == rows["id"].to_pylist()
    empty = table.search([0.0, 0.0], where="id < 0")
    assert empty.to_list() == list(empty.to_batches()) == []
    assert list(empty.to_pandas().columns) == empty.schema.names
