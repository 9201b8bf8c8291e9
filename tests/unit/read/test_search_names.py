"""Texts in columns whose names Lance can't have, or takes for paths to fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance.query import BooleanQuery, CombinedFieldsQuery, MatchQuery, MultiMatchQuery, Occur, PhraseQuery

import lancepart as lp
from lancepart.errors import InvalidInputError

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("x", pa.string()),
        ("x.y", pa.string()),
        ("x.z", pa.list_(pa.string())),
        ("a`b", pa.string()),
        ("_rowid", pa.string()),
        ("plain", pa.string()),
    ]
)


def rows(ids: range) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "x": f"ant {number % 2}",
            "x.y": f"bee {number % 4}" if number else None,
            "x.z": ["cow", f"dog{number % 3}"],
            "a`b": f"elk {number % 5}",
            "_rowid": f"fox {number % 6}",
            "plain": f"gnu {number % 7}",
        }
        for number in ids
    ]


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["bucket(id, 3)"])
    made.append(rows(range(60)))
    return made


TEXTS = {"x": ("1", 2, 1), "x.y": ("3", 4, 3), "x.z": ("dog2", 3, 2), "a`b": ("4", 5, 4), "_rowid": ("5", 6, 5)}


def ids(table: lp.PartitionedTable, query: Any, column: str | None = None, **options: Any) -> set[int]:
    found = table.search(query, column, k=500, columns=["id"], **options).to_arrow()
    return set(found.column("id").to_pylist())


def expected(column: str, count: int) -> set[int]:
    _, every, at = TEXTS[column]
    return {number for number in range(count) if number % every == at}


@pytest.mark.parametrize("column", TEXTS)
@pytest.mark.parametrize("scope", ["none", "leaf", "table"])
def test_a_text_is_found_in_every_column(table: lp.PartitionedTable, column: str, scope: str) -> None:
    if scope != "none":
        table.maintenance.create_index(column, "FTS", scope=scope, progress=False)
    word = TEXTS[column][0]

    assert ids(table, word, column) == expected(column, 60)
    table.append(rows(range(60, 80)))
    assert ids(table, word, column) == expected(column, 80)
    assert ids(table, word, column, where="id < 30", statistics="partition") == expected(column, 30)
    way = table.search(word, column).explain().splitlines()[-1]
    assert ("table-wide" in way) is (scope == "table")


def test_queries_of_lance_name_columns_with_dots_and_those_beside_them(table: lp.PartitionedTable) -> None:
    for query, column in (
        (MatchQuery("3", "x.y"), "x.y"),
        (PhraseQuery("bee 3", "x.y"), "x.y"),
        (MatchQuery("dog2", "x.z"), "x.z"),
        (MatchQuery("1", "x"), "x"),
    ):
        assert ids(table, query) == expected(column, 60)
    both = expected("x.y", 60) | {number for number in range(60) if number % 7 == 3}
    assert ids(table, MultiMatchQuery("3", ["x.y", "plain"])) == both
    assert ids(table, CombinedFieldsQuery("3", ["x.y", "plain"])) == both
    without = BooleanQuery([(Occur.MUST, MatchQuery("3", "x.y")), (Occur.MUST_NOT, MatchQuery("6", "plain"))])
    assert ids(table, without) == {number for number in expected("x.y", 60) if number % 7 != 6}
    assert ids(table, MatchQuery("3", "plain")) == {number for number in range(60) if number % 7 == 3}


def test_a_query_of_lance_that_can_not_name_a_column_is_refused(table: lp.PartitionedTable) -> None:
    for query in (MatchQuery("4", "a`b"), MatchQuery("5", "_rowid"), MultiMatchQuery("1", ["x", "x.y"])):
        with pytest.raises(InvalidInputError, match=r"can't be answered over x, x\.y, x\.z, plain"):
            table.search(query)


def test_a_column_that_is_renamed_to_a_path_keeps_its_index(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("plain", "FTS", scope="table", progress=False)

    table.rename_column("plain", "more.words")

    search = table.search("3", "more.words", k=500, columns=["id"])
    assert set(search.to_arrow().column("id").to_pylist()) == {number for number in range(60) if number % 7 == 3}


def test_columns_with_the_names_of_those_that_rank_are_refused_unless_others_are_chosen(tmp_path: Path) -> None:
    fields = [("id", pa.int64()), ("body", pa.string()), ("v", pa.list_(pa.float32(), 2))]
    schema = pa.schema([*fields, ("_distance", pa.float32()), ("_rowid", pa.int64()), ("_score", pa.float32())])
    made = lp.create_table(tmp_path / "t", schema, ["id"])
    made.append([{"id": 1, "body": "ant", "v": [0.0, 1.0], "_distance": 7.0, "_rowid": 8, "_score": 9.0}])
    both: Any = {"hybrid": ([0.0, 1.0], "ant"), "column": ("v", "body")}

    with pytest.raises(InvalidInputError, match="has a column '_distance' of its own, as a search adds one"):
        made.search([0.0, 1.0])
    with pytest.raises(InvalidInputError, match="'_score'"):
        made.search("ant", "body")
    with pytest.raises(InvalidInputError, match="'_rowid'"):
        made.search(columns=["id", "_rowid"], **both)

    near = made.search([0.0, 1.0], columns=["_score", "_rowid"]).to_list()
    assert near == [{"_score": 9.0, "_rowid": 8, "_distance": 0.0}]
    assert made.search("ant", "body", columns=["_distance"], where="_score = 9").to_list()[0]["_distance"] == 7.0
    assert made.search(columns=["id"], **both).to_arrow().schema.names == ["id", "_relevance_score"]
    assert made.warm() > 0
