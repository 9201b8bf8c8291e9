"""Searches of leaves that another client wrote, with vectors and texts in encodings of its own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from tests.conformance.partitioned.handmade import Leaf, column, make, partition_field

VECTOR, TENSOR = pa.list_(pa.float32(), 2), pa.fixed_shape_tensor(pa.float32(), [2])


def rows(key: str, first: int, *, encoded: bool) -> pa.Table:
    ids = range(first, first + 10)
    texts, vectors = pa.array([f"word{n % 3} all" for n in ids]), pa.array([[float(n), 0.0] for n in ids], VECTOR)
    if encoded:
        texts, vectors = texts.dictionary_encode(), pa.ExtensionArray.from_storage(TENSOR, vectors)
    return pa.table({"id": pa.array(ids, pa.int64()), "k": [key] * 10, "t": texts, "v": vectors})


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    """Partition a as the table declares its columns, b with a tensor and a dictionary."""
    kinds = {"id": pa.int64(), "k": pa.string(), "t": pa.string(), "v": VECTOR}
    columns = [column(name, kind, number) for number, (name, kind) in enumerate(kinds.items())]
    spec = [partition_field("k", [1], {"type": "identity"}, pa.string())]
    leaves = [
        Leaf(values={"k": key}, rows=rows(key, first, encoded=key == "b"), name=key)
        for key, first in (("a", 0), ("b", 10))
    ]
    make(str(tmp_path / "t"), columns, spec, leaves, results=[pa.string()])
    return lp.open_table(tmp_path / "t")


@pytest.mark.parametrize("within", ["", "k = 'b' AND "])
def test_a_filter_comes_before_or_after_the_ranking_as_it_is_said(table: lp.PartitionedTable, within: str) -> None:
    where = f"{within}id % 2 = 0"
    before, after = (table.search([12.2, 0.0], k=4, where=where, prefilter=each) for each in (True, False))

    assert before.to_arrow()["id"].to_pylist() == [12, 14, 10, 16]
    assert after.to_arrow()["id"].to_pylist() == [12, 14]


def test_leaves_whose_encoding_can_not_be_indexed_are_searched_without(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("t", "FTS", scope="leaf", progress=False)
    table.maintenance.create_index("v", scope="leaf", num_partitions=1, progress=False)

    covered = {(row["name"], row["indexed_rows"]) for row in table.inspect.indices().to_pylist()}
    assert covered == {("t_idx", 0), ("t_idx", 10), ("v_idx", 10)}
    assert table.search("word1", "t", k=20).to_arrow()["id"].to_pylist() == [1, 4, 7, 10, 13, 16, 19]
    assert table.search([12.2, 0.0], k=3).to_arrow()["id"].to_pylist() == [12, 13, 11]
