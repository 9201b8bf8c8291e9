from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lancepart.errors import InternalError, UnsupportedOperationError
from lancepart.model.predicate import is_portable
from lancepart.read.leaf import matching_rows
from lancepart.spark.filters import exact_predicate_of, predicate_of
from tests.spark.data import FLOATS

SCHEMA = pa.schema(
    [("i", pa.int64()), ("f", pa.float64()), ("s", pa.string()), ("n", pa.timestamp("ns", "UTC")), ("b", pa.bool_())]
)
THREE = {"value": "3", "type": "long"}


def col(name: str) -> dict[str, Any]:
    return {"column": [name]}


def op(name: str, *children: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "children": list(children)}


def sql(tree: dict[str, Any]) -> str | None:
    found = predicate_of((), (tree,), SCHEMA)
    return None if found is None else found.to_sql()


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (op("=", col("i"), THREE), "(`i` = 3)"),
        (op("<", THREE, col("i")), "(`i` > 3)"),
        (op("NOT", op("<", col("i"), THREE)), "(`i` >= 3)"),
        (
            op("NOT", op("AND", op("=", col("i"), THREE), op("IS_NULL", col("s")))),
            "((`i` <> 3) OR (NOT (`s` IS NULL)))",
        ),
        (op("<=>", col("i"), {"value": None}), "(`i` IS NULL)"),
        (op("NOT", op("<=>", col("i"), THREE)), "((`i` <> 3) OR (`i` IS NULL))"),
        (op("IN", col("i"), THREE, {"value": "4"}), "(`i` IN (3, 4))"),
        (op("NOT", op("IN", col("i"), THREE, {"value": None})), "arrow_cast(NULL, 'Boolean')"),
        (op("STARTS_WITH", col("s"), {"value": "it's"}), "starts_with(`s`, 'it''s')"),
        (op("=", col("b"), {"value": "false"}), "(NOT `b`)"),
        (op("=", col("i"), {"value": "3.5"}), None),
        (op("=", {"column": ["s", "x"]}, THREE), None),
        (op("OR", op("=", col("i"), THREE), op("CONTAINS", col("s"), {"value": "x"})), None),
        (op("AND", op("=", col("i"), THREE), op("CONTAINS", col("s"), {"value": "x"})), "(`i` = 3)"),
        (op("NOT", op("OR", op("=", col("i"), THREE), op("CONTAINS", col("s"), {"value": "x"}))), "(`i` <> 3)"),
    ],
)
def test_a_filter_of_spark_becomes_ours(tree: dict[str, Any], expected: str | None) -> None:
    assert sql(tree) == expected


def test_a_filter_that_was_accepted_must_be_evaluated() -> None:
    with pytest.raises(InternalError, match="accepted as pushed down"):
        predicate_of((op("CONTAINS", col("s"), {"value": "x"}),), (), SCHEMA)


CONTAINS = op("CONTAINS", col("s"), {"value": "x"})
ZERO, NAN = {"value": "0.0"}, {"value": "NaN"}


@pytest.mark.parametrize(
    "tree",
    [
        CONTAINS,
        op("<>", col("f"), ZERO),
        op("=", col("f"), NAN),
        op("<", col("f"), NAN),
        op("NOT", op("IN", col("f"), ZERO, NAN)),
        op("AND", op("=", col("i"), THREE), CONTAINS),
        op("OR", op("AND", op("=", col("i"), THREE), CONTAINS), op("IS_NULL", col("s"))),
        op("NOT", op("OR", op("=", col("i"), THREE), CONTAINS)),
    ],
)
def test_rows_are_deleted_by_no_wider_filter(tree: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedOperationError, match="nothing was changed"):
        exact_predicate_of((op("IS_NOT_NULL", col("i")), tree), SCHEMA)


def test_rows_are_deleted_by_filters_that_are_exact() -> None:
    trees = (
        op("<=>", col("s"), {"value": None}),
        op("NOT", op("OR", op("<", col("i"), THREE), op("=", col("b"), {"value": "true"}))),
    )
    assert exact_predicate_of(trees, SCHEMA).to_sql() == "((`s` IS NULL) AND (`i` >= 3) AND (NOT `b`))"
    assert exact_predicate_of((), SCHEMA).to_sql() == "true"


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">=", "IN"])
@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("text", ["0.0", "-0.0", "1.5", "NaN", "Infinity", "-Infinity"])
def test_no_float_that_spark_would_keep_is_lost(operator: str, negated: bool, text: str) -> None:
    tree = op(operator, col("f"), {"value": text})
    found = predicate_of((), (op("NOT", tree) if negated else tree,), SCHEMA)
    rows = pa.record_batch({"k": range(len(FLOATS)), "f": pa.array(FLOATS, pa.float64())})

    kept = set(matching_rows(rows, found).column("k").to_pylist()) if found is not None else set(range(len(FLOATS)))

    wanted = {k for k, value in enumerate(FLOATS) if value is not None and spark_says(value, operator, text) != negated}
    assert wanted <= kept
    assert found is None or is_portable(found)


def spark_says(value: float, operator: str, text: str) -> bool:
    left, right = rank(value), rank(float(text))
    return {
        "=": left == right,
        "IN": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]


def rank(value: float) -> tuple[bool, float]:
    return (True, 0.0) if value != value else (False, value + 0.0)


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
def test_nanoseconds_are_compared_as_microseconds(operator: str) -> None:
    ticks = [-2001, -2000, -1001, -1000, -1, 0, 999, 1000, 1999, 2000]
    rows = pa.record_batch({"k": range(len(ticks)), "n": pa.array(ticks, pa.int64()).cast(pa.timestamp("ns", "UTC"))})

    for micros in (-2, -1, 0, 1):
        found = predicate_of((), (op(operator, col("n"), {"value": str(micros)}),), SCHEMA)
        assert found is not None
        kept = matching_rows(rows, found).column("k").to_pylist()
        python = {"=": "==", "<>": "!="}.get(operator, operator)
        assert kept == [k for k, tick in enumerate(ticks) if eval(f"{tick // 1000} {python} {micros}")]
