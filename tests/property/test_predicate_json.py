"""Any filter survives its way through JSON: the same tree, the same types, the same bits."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancepart.model.parse import parse
from lancepart.model.predicate import (
    And,
    BooleanColumn,
    Comparison,
    Constant,
    In,
    Is,
    IsNull,
    Not,
    Opaque,
    Or,
    Predicate,
    StartsWith,
)
from lancepart.model.predicate_json import predicate_from_json, predicate_to_json
from lancepart.model.terms import Term
from lancepart.model.transforms import Bucket, MultiBucket, Truncate, Year

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("name", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("ok", pa.bool_()),
        ("odd `name` {0}", pa.struct([("inner", pa.int32())])),
    ]
)
_SIGNED = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
_UNSIGNED = {pa.uint8(): 8, pa.uint16(): 16, pa.uint32(): 32, pa.uint64(): 64}
_UNITS = ("s", "ms", "us", "ns")
_TICKS = [
    pa.date32(),
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
    *(pa.duration(unit) for unit in _UNITS),
    *(pa.timestamp(unit, zone) for unit in _UNITS for zone in (None, "UTC", "Europe/Paris", "+05:30")),
]


def ints(kind: pa.DataType, low: int, high: int) -> st.SearchStrategy[pa.Scalar]:
    return st.integers(low, high).map(lambda n: pa.scalar(n, kind))


def ticks(kind: pa.DataType) -> st.SearchStrategy[pa.Scalar]:
    plain = pa.int32() if kind.bit_width == 32 else pa.int64()
    bits = kind.bit_width - 1
    return st.integers(-(2**bits), 2**bits - 1).map(lambda n: pa.array([n], plain).view(kind)[0])


def floats(bits: int) -> st.SearchStrategy[pa.Scalar]:
    """Any bits at all: NaNs of every kind, both zeros, infinities."""
    plain, real = getattr(np, f"uint{bits}"), getattr(np, f"float{bits}")
    kind = {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}[bits]
    return st.integers(0, 2**bits - 1).map(lambda n: pa.array(np.array([n], plain).view(real), kind)[0])


def decimals() -> st.SearchStrategy[pa.Scalar]:
    def made(precision: int, scale: int, digits: int) -> pa.Scalar:
        number = digits % 10**precision * (-1 if digits % 2 else 1)
        sign, figures = int(number < 0), tuple(map(int, str(abs(number))))
        return pa.scalar(Decimal((sign, figures, -scale)), pa.decimal128(precision, scale))

    return st.builds(made, st.integers(19, 38), st.integers(0, 19), st.integers(0, 10**38))


def literals() -> st.SearchStrategy[pa.Scalar]:
    text, blob = st.text(st.characters(exclude_categories=["Cs"])), st.binary(max_size=20)
    plain = [
        *(ints(kind, -(2**bits), 2**bits - 1) for kind, bits in _SIGNED.items()),
        *(ints(kind, 0, 2**bits - 1) for kind, bits in _UNSIGNED.items()),
        *map(ticks, _TICKS),
        *map(floats, (16, 32, 64)),
        decimals(),
        st.integers(0, 10**60).map(lambda n: pa.scalar(Decimal(n), pa.decimal256(76, 2))),
        st.booleans().map(lambda truth: pa.scalar(truth, pa.bool_())),
        *(text.map(lambda t, kind=kind: pa.scalar(t, kind)) for kind in (pa.string(), pa.large_string())),
        text.map(lambda t: pa.scalar(t, pa.string_view())),
        *(blob.map(lambda b, kind=kind: pa.scalar(b, kind)) for kind in (pa.binary(), pa.large_binary())),
        st.binary(min_size=4, max_size=4).map(lambda b: pa.scalar(b, pa.binary(4))),
        text.map(lambda t: pa.array([t]).dictionary_encode()[0]),
        st.lists(st.integers(0, 9) | st.none(), max_size=3).map(lambda ns: pa.scalar(ns, pa.list_(pa.int16()))),
        st.sampled_from([*_SIGNED, *_TICKS, pa.null(), pa.float32(), pa.string()]).map(
            lambda kind: pa.scalar(None, kind)
        ),
    ]
    return st.one_of(plain)


COLUMNS = st.sampled_from(
    [
        *SCHEMA.names,
        Term(transform=Year(), columns=("ts",)),
        Term(transform=Bucket(num_buckets=16), columns=("n",)),
        Term(transform=Truncate(width=3), columns=("name",)),
        Term(transform=MultiBucket(num_buckets=4), columns=("n", "name")),
    ]
)
OPAQUE = st.sampled_from(
    [
        parse("n % 7 = x", SCHEMA),
        parse("name LIKE '%{0}%'", SCHEMA),
        parse("\"odd `name` {0}\"['inner'] = 3", SCHEMA),
        Opaque(template="isnan({0})", sources=("x",), portable=True),
    ]
)


def predicates() -> st.SearchStrategy[Predicate]:
    leaves = st.one_of(
        st.builds(
            Comparison,
            column=COLUMNS,
            operator=st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
            literal=literals(),
            widened=st.booleans(),
        ),
        st.builds(In, column=COLUMNS, values=st.lists(literals(), min_size=1).map(tuple), negated=st.booleans()),
        st.builds(IsNull, column=COLUMNS),
        st.builds(StartsWith, column=COLUMNS, prefix=st.text(st.characters(exclude_categories=["Cs"]))),
        st.just(BooleanColumn(column="ok")),
        st.builds(Constant, value=st.sampled_from([True, False, None])),
        OPAQUE,
    )

    def grown(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        several = st.lists(inner, min_size=1, max_size=4).map(tuple)
        outcomes = st.sampled_from([True, False, None])
        return st.one_of(
            st.builds(And, operands=several),
            st.builds(Or, operands=several),
            st.builds(Not, operand=inner),
            st.builds(Is, operand=inner, outcome=outcomes),
        )

    return st.recursive(leaves, grown, max_leaves=12)


def exact(value: Any) -> Any:
    """A predicate as plain values that compare by type and by bits."""
    match value:
        case pa.Scalar():
            plain = value.value if pa.types.is_dictionary(value.type) and value.is_valid else value
            array = pa.array([plain], plain.type)
            bits = array.buffers()[-1].to_pybytes() if pa.types.is_floating(plain.type) and value.is_valid else None
            return str(value.type), value.is_valid, bits or str(array)
        case tuple():
            return tuple(map(exact, value))
        case And() | Or() | Not() | Is() | Comparison() | In() | IsNull() | StartsWith() | Constant() | Opaque():
            return type(value).__name__, tuple((name, exact(getattr(value, name))) for name in value.__slots__)
        case _:
            return value


@pytest.mark.slow
@settings(max_examples=150)
@given(predicate=predicates())
def test_any_filter_comes_back_as_it_was(predicate: Predicate) -> None:
    sent = json.dumps(predicate_to_json(predicate), allow_nan=False)

    found = predicate_from_json(json.loads(sent), SCHEMA)

    assert exact(found) == exact(predicate)
    assert predicate_to_json(found) == json.loads(sent)
    assert exact(pickle.loads(pickle.dumps(predicate))) == exact(predicate)
