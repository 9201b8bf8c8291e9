from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lancepart.errors import InvalidInputError
from lancepart.model import predicate_json
from lancepart.model.filtering import matching_rows
from lancepart.model.parse import parse
from lancepart.model.predicate import In, Not, Predicate
from lancepart.model.predicate_json import MOST_DEEP, predicate_from_json, predicate_to_json

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("price", pa.decimal128(12, 2)),
        ("ts", pa.timestamp("us", "Europe/Paris")),
        ("raw", pa.binary()),
        ("ok", pa.bool_()),
        ("nested", pa.struct([("inner", pa.int32())])),
    ]
)
ROWS = pa.RecordBatch.from_pylist(
    [
        {
            "n": 1,
            "x": float("nan"),
            "price": Decimal("0.10"),
            "ts": 0,
            "raw": b"\x00",
            "ok": True,
            "nested": {"inner": 1},
        },
        {"n": 2, "x": -0.0, "price": Decimal("0.30"), "ts": 1, "raw": b"\xff", "ok": None, "nested": {"inner": None}},
        {"n": 3, "x": 0.0, "price": None, "ts": None, "raw": None, "ok": False, "nested": None},
    ],
    schema=SCHEMA,
)
NODE: dict[str, Any] = {"kind": "is_null", "column": "n"}
NUMBER = {"type": {"type": {"name": "int", "bitWidth": 64, "isSigned": True}, "children": []}, "values": [1]}


def compared(**changed: Any) -> dict[str, Any]:
    return {"kind": "comparison", "column": "n", "operator": "=", "literal": NUMBER, "widened": False} | changed


def again(predicate: Predicate) -> Predicate:
    return predicate_from_json(json.loads(json.dumps(predicate_to_json(predicate))), SCHEMA)


@pytest.mark.parametrize(
    "sql",
    [
        "price IN (0.1, 0.3) AND n > 1",
        "price * 3 = 0.9",
        "ts >= TIMESTAMP '1970-01-01T00:00:00.000001+00:00'",
        "x = 'NaN'::double OR x = 0",
        "x < 0.0",
        "raw = X'ff' OR raw IS NULL",
        "nested['inner'] = 1",
        "NOT (ok IS NOT TRUE)",
        "bucket(4, n) = 1 OR year(ts) = 1970",
        "n IN (1, NULL)",
        "false",
    ],
)
def test_filters_match_the_same_rows(sql: str) -> None:
    predicate = parse(sql, SCHEMA)

    found = again(predicate)

    assert found.to_sql() == predicate.to_sql()
    assert matching_rows(ROWS, found).column("n") == matching_rows(ROWS, predicate).column("n")


def test_long_lists_are_one_array_of_their_type() -> None:
    wanted = In(column="price", values=tuple(pa.scalar(Decimal(n) / 100, pa.decimal128(12, 2)) for n in range(20_000)))

    assert len(predicate_to_json(wanted)["values"]) == 1
    assert again(wanted) == wanted


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        "n = 1",
        {},
        {"kind": "subquery"},
        {"kind": ["and"]},
        {"kind": "and", "operands": []},
        {"kind": "and", "operands": NODE},
        {"kind": "not"},
        {"kind": "is", "operand": NODE, "outcome": 1},
        {"kind": "is_null", "column": "nothing"},
        {"kind": "is_null", "column": ["n"]},
        {"kind": "is_null", "column": {"transform": {"type": "identity"}, "columns": ["n"]}},
        {"kind": "is_null", "column": {"transform": {"type": "year"}, "columns": ["n"]}},
        {"kind": "is_null", "column": {"transform": {"type": "bucket", "num_buckets": "4"}, "columns": ["n"]}},
        compared(operator="; DROP"),
        compared(widened=None),
        {
            "kind": "comparison",
            "column": "n",
            "operator": "=",
            "literal": {**NUMBER, "values": ["1"]},
            "widened": False,
        },
        {
            "kind": "comparison",
            "column": "n",
            "operator": "=",
            "literal": {**NUMBER, "values": [True]},
            "widened": False,
        },
        {
            "kind": "comparison",
            "column": "n",
            "operator": "=",
            "literal": {**NUMBER, "values": [2**70]},
            "widened": False,
        },
        compared(literal={**NUMBER, "values": []}),
        compared(literal={**NUMBER, "type": {}}),
        {"kind": "in", "column": "n", "values": [], "negated": False},
        {"kind": "boolean", "column": "n"},
        {"kind": "constant", "value": 0},
        {"kind": "opaque", "template": "{0} > 1", "sources": [], "portable": True},
        {"kind": "opaque", "template": "{0.__class__} > 1", "sources": ["n"], "portable": True},
        {"kind": "opaque", "template": "{0:999999999} > 1", "sources": ["n"], "portable": True},
        {"kind": "opaque", "template": "{} > 1", "sources": ["n"], "portable": True},
        {"kind": "opaque", "template": "{0} > 1) OR (true", "sources": ["n"], "portable": True},
        {"kind": "opaque", "template": "{0} IN (SELECT 1)", "sources": ["n"], "portable": True},
        {"kind": "opaque", "template": "other > 1", "sources": ["n"], "portable": True},
    ],
)
def test_what_is_no_filter_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInputError, match="not a filter"):
        predicate_from_json(given, SCHEMA)


def test_filters_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    deep, nested = parse("n IS NULL", SCHEMA), dict(NODE)
    for _ in range(MOST_DEEP):
        deep, nested = Not(operand=deep), {"kind": "not", "operand": nested}
    with pytest.raises(InvalidInputError, match="levels deep"):
        predicate_to_json(deep)
    with pytest.raises(InvalidInputError, match="levels deep"):
        predicate_from_json(nested, SCHEMA)
    monkeypatch.setattr(predicate_json, "MOST_NODES", 10)
    with pytest.raises(InvalidInputError, match="more than 10 tests and values"):
        predicate_from_json(
            {"kind": "in", "column": "n", "values": [{**NUMBER, "values": [1] * 11}], "negated": False}, SCHEMA
        )
