"""Searches at the edges: unusual numbers, empty sides, queries of every kind and queries that can't be answered."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.read.vector_block import VectorBlock

WIDTH = 4


def _table(path: Path, vectors: Any, kind: pa.DataType | None = None) -> lp.PartitionedTable:
    """A table with these vectors in three partitions, and a word that is in every row."""
    width = next((len(each) for each in vectors if each is not None), WIDTH)
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("tenant", pa.int64()),
            ("body", pa.string()),
            ("v", pa.list_(kind or pa.float32(), width)),
        ]
    )
    rows = [{"id": at, "tenant": at % 3, "body": "apple", "v": each} for at, each in enumerate(vectors)]
    table = lp.create_table(path / "t", schema, ["tenant"])
    if rows:
        table.append(pa.Table.from_pylist(rows, schema=schema))
    return table


def _found(table: lp.PartitionedTable, query: Any, **options: Any) -> dict[int, float]:
    rows = table.search(query, "v", columns=["id"], **{"k": 50, **options}).to_list()
    return {row["id"]: row["_distance"] for row in rows}


ODD: list[Any] = [
    [0.0] * 4,
    [float("nan")] * 4,
    [float("inf"), 0, 0, 0],
    None,
    [1.0, 2, 3, 4],
    [-1.0, 0, 0, 0],
    [1e30] * 4,
    [1e-30] * 4,
    [None, 1.0, 1.0, 1.0],
]


@pytest.mark.parametrize("where", [None, "id >= 0", "tenant = 1"])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("query", [[1.0] * 4, [0.0] * 4, [1e30] * 4], ids=str)
def test_odd_numbers_are_ranked_as_in_one_table(tmp_path: Path, query: Any, metric: Any, where: str | None) -> None:
    table = _table(tmp_path, ODD)
    plain = lance.write_dataset(table.scan().to_arrow(), "memory://")
    asked = {"column": "v", "q": np.array(query, np.float32), "k": 50, "metric": metric}
    true = plain.to_table(columns=["id", "_distance"], nearest=asked, filter=where, prefilter=True).to_pylist()

    found = _found(table, query, distance_type=metric, where=where)

    assert found == {row["id"]: pytest.approx(row["_distance"], rel=1e-5, abs=1e-5) for row in true}


@pytest.mark.parametrize("metric", ["l2", "dot"])
def test_rows_too_far_away_for_a_float_are_found_in_memory_as_by_lance(tmp_path: Path, metric: Any) -> None:
    table = _table(tmp_path, np.random.default_rng(1).normal(size=(200, WIDTH)).tolist())

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = _found(table, [1e30] * WIDTH, k=5, distance_type=metric)
    read = _found(table, [1e30] * WIDTH, k=5, distance_type=metric, where="id >= 0")

    assert "in memory" in table.search([1e30] * WIDTH, "v").explain()
    assert held == read
    assert len(held) == 5


def test_a_block_ranks_by_angle_however_short_or_long_the_query_is() -> None:
    vectors = np.random.default_rng(5).normal(size=(300, WIDTH)).astype(np.float32)
    block = VectorBlock.of(pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), WIDTH), np.arange(300))
    assert block is not None
    query = vectors[7] + np.float32(0.1)

    found = [block.nearest([query * np.float32(scale)], 5, "cosine", None)[1].tolist() for scale in (1, 1e-18, 1e15)]

    assert found[0] == found[1] == found[2]


def test_a_block_of_vectors_with_lengths_that_floats_can_not_square_is_none() -> None:
    for value in (1e-30, 1e30):
        column = pa.array([[1.0] * WIDTH, [value] * WIDTH], pa.list_(pa.float32(), WIDTH))
        assert VectorBlock.of(column, np.arange(2)) is None
    assert VectorBlock.of(pa.array([[0.0] * WIDTH], pa.list_(pa.float32(), WIDTH)), np.arange(1)) is not None


@pytest.mark.parametrize("kind", [pa.float16(), pa.float64(), pa.uint8()], ids=str)
@pytest.mark.parametrize("where", [None, "id > 3"])
def test_vectors_of_other_numbers(tmp_path: Path, kind: pa.DataType, where: str | None) -> None:
    numbers = np.random.default_rng(2).integers(0, 100, (40, 8)).astype(kind.to_pandas_dtype())
    table = _table(tmp_path, numbers, kind)
    wide = numbers.astype(np.int64)
    true = np.array(
        [
            sum(bin(int(x) ^ int(y)).count("1") for x, y in zip(row, wide[5], strict=True))
            if kind == pa.uint8()
            else ((row - wide[5]) ** 2).sum()
            for row in wide
        ]
    )

    found = _found(table, numbers[5], k=40, where=where)

    first = 0 if where is None else 4
    assert found == {at: float(true[at]) for at in range(first, 40)}


def test_a_distance_that_the_numbers_do_not_have_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    table = _table(tmp_path / "floats", [])
    with pytest.raises(InvalidInputError, match="vectors of float, and there is no hamming distance of these: use"):
        table.search([1.0] * WIDTH, distance_type="hamming")
    bytes_only = _table(tmp_path / "bytes", [[1] * WIDTH], pa.uint8())
    with pytest.raises(InvalidInputError, match="use distance_type='hamming'"):
        bytes_only.search([1] * WIDTH, distance_type="l2")
    with pytest.raises(InvalidInputError, match="whole numbers from 0 to 255"):
        bytes_only.search([0.5] * WIDTH)


def test_numbers_that_lance_can_not_search_are_no_vectors(tmp_path: Path) -> None:
    table = _table(tmp_path, [[1] * WIDTH], pa.int8())
    with pytest.raises(
        InvalidInputError, match=r"fixed length of floats or of uint8: .*v \(fixed_size_list<item: int8>"
    ):
        table.search([1] * WIDTH)
    with pytest.raises(InvalidInputError, match=r"'v' is fixed_size_list.*fixed length of floats or of uint8"):
        table.search([1] * WIDTH, "v")
    with pytest.raises(InvalidInputError, match="fixed length of floats or of uint8"):
        table.maintenance.create_index("v", "IVF_FLAT")


def test_a_batch_without_queries_finds_nothing(tmp_path: Path) -> None:
    search = _table(tmp_path, [[1.0] * WIDTH]).search(np.empty((0, WIDTH)), "v")

    assert search.to_arrow().schema == search.schema
    assert search.to_list() == []
    assert "leaves searched" in search.explain()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ([], "a query vector is a list of numbers"),
        ([[]], "a query vector is a list of numbers"),
        (np.zeros((0, 3)), "has 3 numbers, and column 'v' holds vectors of 4"),
        ([[1.0] * 4, [1.0]], "the vectors of the batch have 1 to 4 numbers"),
        (pa.array([[1.0] * 4, None], pa.list_(pa.float32(), 4)), "vector 1 of the batch is NULL"),
        ([1.0, None, 2.0, 3.0], "NULL, NaN or infinity"),
        (np.array([1j, 2, 3, 4]), "give a vector of numbers"),
        (np.array(["2020-01-01"] * 4, "datetime64[D]"), "give a vector of numbers"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_queries_that_are_no_vectors_are_named(tmp_path: Path, query: Any, message: str) -> None:
    table = _table(tmp_path, [])
    with pytest.raises(InvalidInputError, match=message):
        table.search(query, "v")


@pytest.mark.parametrize("name", ["k", "offset"])
def test_numbers_of_rows_that_no_table_has_are_refused(tmp_path: Path, name: str) -> None:
    table = _table(tmp_path, [[1.0] * WIDTH])
    for query, column in (([1.0] * WIDTH, "v"), ("apple", "body")):
        with pytest.raises(InvalidInputError, match=f"{name} is 1180591620717411303424: no table has so many"):
            table.search(query, column, **{name: 1 << 70})
        options: dict[str, Any] = {name: 1 << 40}
        assert table.search(query, column, where="id >= 0", **options).to_arrow().num_rows == (name == "k")


@pytest.mark.parametrize("reranker", [None, "RRFReranker", "LinearCombinationReranker", "MRRReranker"])
@pytest.mark.parametrize(
    ("text", "between"), [("zebra", None), ("the and of", None), ("apple", (1e9, None)), ("zebra", (1e9, None))]
)
def test_a_hybrid_search_with_an_empty_side_ranks_by_the_other(
    tmp_path: Path, text: str, between: Any, reranker: str | None
) -> None:
    rerankers = pytest.importorskip("lancedb.rerankers")
    table = _table(tmp_path, [[float(at)] * WIDTH for at in range(6)])
    used = None if reranker is None else getattr(rerankers, reranker)()

    found = table.search(
        hybrid=([0.0] * WIDTH, text), column=("v", "body"), k=3, distance_range=between, reranker=used, columns=["id"]
    ).to_list()

    assert len(found) == (0 if text == "zebra" and between else 3)
    if between is None:
        assert [row["id"] for row in found] == [0, 1, 2]


def test_tensors_of_torch_are_queries(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    table = _table(tmp_path, np.random.default_rng(6).normal(size=(40, WIDTH)).tolist())
    plain = torch.tensor([1.0, 2, 3, 4])
    true = _found(table, [1.0, 2, 3, 4], k=5)
    kinds = [torch.float16, torch.bfloat16, torch.float64, torch.int32]

    for query in [plain, plain.clone().requires_grad_(), plain.repeat(2, 1).T[:, 0], *map(plain.to, kinds)]:
        assert _found(table, query, k=5) == true
    for batch in (plain.repeat(2, 1), [plain, plain.clone().requires_grad_()]):
        rows = table.search(batch, "v", k=5, columns=["id"]).to_list()
        assert [row["_query_index"] for row in rows] == [0] * 5 + [1] * 5
        assert {row["id"]: row["_distance"] for row in rows[5:]} == true
