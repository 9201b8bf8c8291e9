"""Values for ``$name`` in the filters of all verbs: always literals, never SQL."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("v", pa.list_(pa.float32(), 2))])
EVIL = "x' OR '1' = '1"


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["name"])
    made.append([{"id": n, "name": EVIL if n == 3 else f"n{n}", "v": [float(n), 0.0]} for n in range(6)])
    return made


def ids(table: lp.PartitionedTable) -> list[int]:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


@pytest.mark.slow
def test_every_verb_takes_values_for_its_filter(table: lp.PartitionedTable) -> None:
    found = table.search([0.0, 0.0], where="name = $name", params={"name": EVIL}).to_list()
    assert [row["id"] for row in found] == [3]
    joined = table.join(table, ["name"], where="name = $name", params={"name": EVIL}).to_arrow()
    assert joined.column("id").to_pylist() == [3]
    table.update({"id": "id + $step"}, "name = $name", params={"step": 100, "name": EVIL})
    assert ids(table) == [0, 1, 2, 4, 5, 103]
    table.overwrite([{"id": 7, "name": EVIL, "v": [0.0, 0.0]}], "name IN $names", params={"names": [EVIL, "nobody"]})
    assert ids(table) == [0, 1, 2, 4, 5, 7]
    table.delete("name = $name", params={"name": EVIL})
    assert ids(table) == [0, 1, 2, 4, 5]
    with table.transaction() as tx:
        assert tx.scan("id = $id", params={"id": 4}).count() == 1
        tx.update({"id": "$new"}, params={"new": 9}, where="id = 4")
        tx.delete("id IN $ids", params={"ids": [0, 1]})
    assert ids(table) == [2, 5, 9]


def test_what_has_no_place_is_refused_and_changes_nothing(table: lp.PartitionedTable) -> None:
    before = table.version
    with pytest.raises(InvalidInputError, match="no value for \\$b"):
        table.delete("id = $b", params={"a": 1})
    with pytest.raises(InvalidInputError, match="no \\$a is there"):
        table.update({"id": "1"}, "id = 2", params={"a": 1})
    with pytest.raises(InvalidInputError, match="there is no filter"):
        table.join(table, ["name"], params={"a": 1})
    with pytest.raises(InvalidInputError):
        table.search([0.0, 0.0], params={"a": 1}).to_arrow()
    assert table.version == before


def test_a_list_may_have_its_parentheses_already() -> None:
    rows = pa.table({"n": [1, 2, 3, 4]})
    for test in ("n IN $some", "n IN ($some)", "n in ( $some )", "n NOT IN ($others)"):
        params = {"others": [2, 4]} if "others" in test else {"some": [1, 3]}
        assert lp.sql(f"SELECT n FROM t WHERE {test} ORDER BY n", params=params, t=rows).to_arrow()[
            "n"
        ].to_pylist() == [1, 3]


def test_a_whole_number_that_is_too_large_is_refused_and_a_decimal_taken() -> None:
    with pytest.raises(InvalidInputError, match="too large for a whole number of 64 bits"):
        lp.sql("SELECT $v AS v", params={"v": 2**70})
    assert lp.sql("SELECT $v AS v", params={"v": Decimal(2**70)}).to_list() == [{"v": 2**70}]


@pytest.mark.parametrize(
    "several",
    [
        (1, 2), {1, 2}, range(1, 3), np.array([1, 2]), pa.array([1, 2]), pa.chunked_array([[1], [2]]),
        pd.Series([1, 2]), pl.Series([1, 2]),
    ],
    ids=lambda several: f"{type(several).__module__}.{type(several).__name__}",
)  # fmt: skip
def test_whatever_holds_several_values_is_a_list(table: lp.PartitionedTable, several: Any) -> None:
    assert table.count_rows("id IN $some", params={"some": several}) == 2


def test_what_is_no_list_of_values_is_refused_by_name(table: lp.PartitionedTable) -> None:
    for given in (pd.DataFrame({"a": [1]}), np.array([[1, 2]]), np.array([])):
        with pytest.raises(InvalidInputError, match=r"\$some is "):
            table.count_rows("id IN $some", params={"some": given})


def test_dates_of_numpy_are_values() -> None:
    query = lp.sql("SELECT $day AS day, $n AS n", params={"day": np.datetime64("2024-02-29"), "n": np.int16(3)})
    assert query.to_list() == [{"day": date(2024, 2, 29), "n": 3}]


@pytest.mark.parametrize("value", [-1, -1.0, Decimal(-1), np.int8(-1)])
def test_a_minus_before_a_negative_number_begins_no_comment(table: lp.PartitionedTable, value: Any) -> None:
    before = table.count_rows()
    test = "id > 1 -$step AND name = 'nobody'"
    assert table.count_rows(test, params={"step": value}) == 0

    table.delete(test, params={"step": value})

    assert table.count_rows() == before
    rows = pa.table({"n": [1, 2, 3]})
    assert lp.sql("SELECT n -$step AS m FROM t WHERE n = 2", params={"step": value}, t=rows).to_list() == [{"m": 3}]


def test_the_null_of_pandas_is_a_value() -> None:
    assert lp.sql("SELECT $a AS a, $b AS b", params={"a": pd.NA, "b": pd.NaT}).to_list() == [{"a": None, "b": None}]
