"""Searches for the rows of a DataFrame: the same rows as one by one, by the driver and by executors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, TableColumnNotFoundError
from lancepart.spark import searching

pytest.importorskip("pyspark")
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("t", pa.string()), ("v", pa.list_(pa.float32(), 4))])


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    draw = np.random.default_rng(5)
    made.append(
        [
            {"id": n, "k": "abc"[n % 3], "t": f"word{n % 7} word{n}", "v": draw.normal(size=4).tolist()}
            for n in range(60)
        ]
    )
    return made


@pytest.mark.parametrize("few", [0, 100])
def test_each_query_gets_its_best_rows(
    spark: Any, table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(searching, "FEW", few)
    vectors = np.random.default_rng(6).normal(size=(5, 4)).astype("f4")
    given = [(n, [float(x) for x in vector]) for n, vector in enumerate(vectors)]
    queries = spark.createDataFrame([*given, (9, None)], "q bigint, query array<float>")

    found = table.search_batch(queries, k=3, where="k <> 'b'", columns=["id"]).collect()

    expected = [
        (number, row["id"], row["_distance"])
        for number, vector in given
        for row in table.search(vector, k=3, where="k <> 'b'", columns=["id"]).to_list()
    ]
    assert sorted((row["q"], row["_distance"], row["id"]) for row in found) == sorted((q, d, i) for q, i, d in expected)


def test_texts_are_queries_too_and_what_does_not_fit_is_refused(spark: Any, table: lp.PartitionedTable) -> None:
    queries = spark.createDataFrame([("x", "word3"), ("y", "word50")], "name string, query string")
    found = table.search_batch(queries, "t", k=2, columns=["id"]).collect()
    assert {(row["name"], row["id"]) for row in found} >= {("y", 50), ("x", 3)}
    table.tags.create("before", table.version)
    table.append([{"id": 100, "k": "a", "t": "word50", "v": [0.0] * 4}])
    older = table.search_batch(queries, "t", k=5, columns=["id"], version="before").collect()
    assert 100 not in {row["id"] for row in older}
    assert 100 in {row["id"] for row in table.search_batch(queries, "t", k=5, columns=["id"]).collect()}
    with pytest.raises(TableColumnNotFoundError, match="no column 'query'"):
        table.search_batch(queries.withColumnRenamed("query", "other"), "t")
    with pytest.raises(InvalidInputError, match="both have a column 'id'"):
        table.search_batch(queries.withColumnRenamed("name", "id"), "t")
