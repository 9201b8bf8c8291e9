"""An index that is built answers: right after, and when rows came, went and moved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, TableColumnNotFoundError
from lancepart.format.names import INDICES
from lancepart.layout.declared_indices import declared

WIDTH = 8
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.string()),
        ("n", pa.int32()),
        ("t", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("v", pa.list_(pa.float32(), WIDTH)),
    ]
)
VECTORS = np.random.default_rng(7).random((1000, WIDTH)).astype("f4")


def rows(*ids: int) -> pa.Table:
    found = [
        {
            "id": i,
            "k": "a",
            "n": i % 7,
            "t": f"word{i} in common",
            "tags": [f"x{i % 3}", f"y{i}"],
            "v": VECTORS[i].tolist(),
        }
        for i in ids
    ]
    return pa.Table.from_pylist(found, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    made.append(rows(*range(300)))
    return made


def leaf(table: lp.PartitionedTable) -> Any:
    (found,) = table.scan().plan().leaves
    return lance.dataset(f"{table.root}/{found.location}", version=found.read_version)


def through_changes(table: lp.PartitionedTable) -> Any:
    """The ids that a table holds, after each kind of change."""
    ids = set(range(300))
    yield ids
    table.append(rows(*range(300, 310)))
    yield (ids := ids | set(range(300, 310)))
    table.delete("id % 10 = 4")
    yield (ids := {number for number in ids if number % 10 != 4})
    table.maintenance.compact(progress=False)
    yield ids


@pytest.mark.parametrize(
    ("kind", "column", "where", "expected"),
    [
        ("BTREE", "n", "n = 3", lambda i: i % 7 == 3),
        ("bitmap", "n", "n IN (1, 2)", lambda i: i % 7 in (1, 2)),
        ("ZONEMAP", "id", "id > 290", lambda i: i > 290),
        ("BLOOMFILTER", "id", "id = 305", lambda i: i == 305),
        ("NGRAM", "t", "contains(t, 'word30')", lambda i: str(i).startswith("30")),
        ("LABEL_LIST", "tags", "array_has(tags, 'x1')", lambda i: i % 3 == 1),
    ],
)
def test_filters_are_right_with_an_index(
    table: lp.PartitionedTable, kind: str, column: str, where: str, expected: Any
) -> None:
    table.maintenance.create_index(column, kind, progress=False)

    for ids in through_changes(table):
        found = table.scan(where, columns=["id"]).to_arrow()["id"].to_pylist()
        assert sorted(found) == sorted(filter(expected, ids))
        assert table.inspect.indices().num_rows == 1


@pytest.mark.parametrize("kind", ["INVERTED", "FTS", "fts"])
def test_searches_for_words_find_them(table: lp.PartitionedTable, kind: str) -> None:
    table.maintenance.create_index("t", kind, progress=False)

    for ids in through_changes(table):
        for word in ("word14", "word15", "word305"):
            found = leaf(table).scanner(full_text_query=word, columns=["id"]).to_table()["id"].to_pylist()
            assert found == [number for number in (int(word[4:]),) if number in ids]
        assert table.inspect.indices()["type"].to_pylist() == ["Inverted"]


@pytest.mark.parametrize(
    "kind", ["IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"]
)
def test_searches_for_vectors_find_the_nearest(table: lp.PartitionedTable, kind: str) -> None:
    params = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
    table.maintenance.create_index("v", kind, progress=False, num_partitions=1, **params)

    for ids in through_changes(table):
        for number in (5, 15, 305):
            nearest = {"column": "v", "q": VECTORS[number], "k": 1, "refine_factor": 50}
            found = leaf(table).scanner(nearest=nearest, columns=["id"]).to_table()["id"].to_pylist()
            assert (found == [number]) == (number in ids)


@pytest.mark.parametrize(
    ("column", "kind", "reason"),
    [
        ("n", "nope", "unknown: use"),
        ("n", 7, "give its name"),
        ("t", "MINHASHLSH", "unknown: use"),
        ("n", "FTS", "INVERTED is an index on text, and not on int32"),
        ("v", "BTREE", "single values"),
        ("n", "LABEL_LIST", "lists of single values"),
        ("n", "IVF_PQ", "vectors"),
        ("tags", "IVF_FLAT", "vectors"),
        ("zz", "BTREE", "no column 'zz'"),
    ],
)
def test_an_index_that_could_not_answer_is_refused(
    table: lp.PartitionedTable, column: str, kind: Any, reason: str
) -> None:
    version = table.version
    with pytest.raises((InvalidInputError, TableColumnNotFoundError), match=reason):
        table.maintenance.create_index(column, kind, progress=False)
    assert table.version == version


def test_an_index_remembered_under_an_alias_is_built_under_its_name(table: lp.PartitionedTable) -> None:
    written = [{"name": "t_idx", "column": 3, "kind": "FTS", "params": {}}]
    table._manifest.swap_properties(table._manifest.snapshot(), {INDICES: json.dumps(written)})

    assert [each.kind for each in declared(table._manifest.snapshot())] == ["INVERTED"]
