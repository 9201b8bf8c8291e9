"""IS DISTINCT FROM binds as in other databases: AND and OR after it are none of its operand's."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.model.distinct_tests import with_distinct_tests

ROWS = pa.table({"b": [True, True, False, False, None, None], "i": [1, 5, 1, 5, None, 5], "s": ["a", "b"] * 3})


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a IS DISTINCT FROM b", "a IS DISTINCT FROM b"),
        ("(a IS DISTINCT FROM b) AND c", "(a IS DISTINCT FROM b) AND c"),
        ("f(a, b IS NOT DISTINCT FROM c OR d)", "f(a, (b IS NOT DISTINCT FROM c) OR d)"),
        ("x NOT IN (1) IS DISTINCT FROM b OR c", "(x NOT IN (1) IS DISTINCT FROM b) OR c"),
        ("i BETWEEN 1 AND 2 IS DISTINCT FROM b AND c", "(i BETWEEN 1 AND 2 IS DISTINCT FROM b) AND c"),
        ("a IS DISTINCT FROM i BETWEEN 1 AND 2 AND c", "(a IS DISTINCT FROM i BETWEEN 1 AND 2) AND c"),
        (
            "CASE WHEN a IS DISTINCT FROM CASE WHEN b AND c THEN d END OR e THEN f END",
            "CASE WHEN (a IS DISTINCT FROM CASE WHEN b AND c THEN d END) OR e THEN f END",
        ),
        (
            "SELECT * FROM t JOIN u ON t.a IS DISTINCT FROM u.a WHERE b AND c",
            "SELECT * FROM t JOIN u ON t.a IS DISTINCT FROM u.a WHERE b AND c",
        ),
        ("'a is distinct from b and c'", "'a is distinct from b and c'"),
        ("SELECT DISTINCT from_ FROM t", "SELECT DISTINCT from_ FROM t"),
    ],
)
def test_parentheses_are_set_where_they_are_needed(sql: str, expected: str) -> None:
    assert with_distinct_tests(sql) == expected


@pytest.mark.parametrize(
    "where",
    [
        "b IS DISTINCT FROM TRUE AND i > 3",
        "b IS NOT DISTINCT FROM FALSE OR i = 1",
        "NOT b IS DISTINCT FROM TRUE AND i > 3",
        "i IS DISTINCT FROM 1 AND b",
        "b IS NOT DISTINCT FROM TRUE AND i = 1 OR b IS NULL",
        "s LIKE 'a%' IS DISTINCT FROM b AND i IS NOT DISTINCT FROM 5",
        "i NOT IN (1, 2) IS DISTINCT FROM FALSE AND s <> 'a' OR i IS NULL",
    ],
)
def test_filters_and_queries_match_the_rows_that_duckdb_matches(tmp_path: Path, where: str) -> None:
    table = lp.create_table_from(tmp_path / "t", ROWS, ["s"])
    rows = ROWS  # noqa: F841
    expected = sorted(duckdb.sql(f"SELECT * FROM rows WHERE {where}").fetchall(), key=repr)

    for found in (table.scan(where), lp.sql(f"SELECT * FROM t WHERE {where}", t=table)):
        assert sorted((tuple(row.values()) for row in found.to_list()), key=repr) == expected
    table.delete(where)
    assert table.count_rows() == ROWS.num_rows - len(expected)


def test_values_to_set_bind_alike(tmp_path: Path) -> None:
    table = lp.create_table_from(tmp_path / "t", ROWS, ["s"])
    rows = ROWS  # noqa: F841
    expected = duckdb.sql("SELECT b IS DISTINCT FROM TRUE AND i > 3 FROM rows").fetchall()

    table.update({"b": "b IS DISTINCT FROM TRUE AND i > 3"})

    assert sorted((row["b"] for row in table.scan().to_list()), key=repr) == sorted((b for (b,) in expected), key=repr)
