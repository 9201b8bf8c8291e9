"""What random tables are made of: columns of every type, values at their edges, partitionings and filters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lancepart.model.quoting import quote_literal

ZONES = (None, "UTC", "Europe/Paris", "+05:30")
TIMESTAMPS = tuple(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in ZONES)
INTEGERS = tuple(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = (pa.float32(), pa.float64(), pa.float32(), pa.float64(), pa.float16())
DECIMALS = (pa.decimal128(10, 2), pa.decimal128(38, 10), pa.decimal128(5, 0), pa.decimal256(45, 3))
TEXTS = (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()))
BYTES = (pa.binary(), pa.large_binary(), pa.binary(3))
DATES = (pa.date32(), pa.date32(), pa.date64())
CLOCKS = (pa.time32("s"), pa.time64("ns"))
FAMILIES = (INTEGERS, FLOATS, DECIMALS, TEXTS, BYTES, DATES, TIMESTAMPS)
TYPES = st.sampled_from([*FAMILIES, *FAMILIES, CLOCKS, (pa.bool_(),)]).flatmap(st.sampled_from)

OPERATORS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
NAMES = ("a", "b", "select", "Größe", "x y", "it's", "c_1", "100%", "back\\slash", "😀")
_TEXT = (
    "",
    "a",
    "ab",
    "abc",
    "b",
    "null",
    "NULL",
    "None",
    "it's",
    "100%",
    "_",
    "\\",
    "é",
    "e\u0301",
    "😀",
    "\0",
    '"q"',
)
_BINARY = (b"", b"\0", b"a", b"ab", b"\xff", b"\xff\xff\xff", b"\0\0\0", b"abc")
_FLOATS = (0.0, -0.0, 1.0, -1.5, 0.1, 2.5, 16777217.0, math.inf, -math.inf, math.nan, math.copysign(math.nan, -1.0))
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST, _LAST, _DAY = -62_135_596_800, 253_402_300_799, 86_400
_TURNS = (0, -1, 1_767_225_599, 1_767_225_600, 1_709_164_800, 1_735_689_600)


def is_text(kind: Any) -> bool:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(plain) or pa.types.is_large_string(plain)


def is_bytes(kind: Any) -> bool:
    return kind in BYTES


def values(kind: Any) -> st.SearchStrategy[Any]:
    """One value of a type that is not NULL, in the form that ``array`` takes."""
    some = st.sampled_from(edges(kind))
    if pa.types.is_integer(kind):
        return some | st.integers(-12 if pa.types.is_signed_integer(kind) else 0, 12)
    if pa.types.is_decimal(kind):
        most = min(30 * 10**kind.scale, 10**kind.precision - 1)
        return some | st.integers(-most, most).map(lambda number: Decimal(f"{number}e{-kind.scale}"))
    if is_text(kind):
        return some | st.text(alphabet="ab%_'\\é😀\ud7ff\ue000\U0010ffff", max_size=4)
    if is_bytes(kind):
        return some | (st.binary(min_size=3, max_size=3) if kind == pa.binary(3) else st.binary(max_size=3))
    if kind == pa.date32():
        return some | st.integers(19_700, 20_500)
    return some | some | _instants(kind.unit) if pa.types.is_timestamp(kind) else some


def edges(kind: Any) -> list[Any]:
    """The values of a type that are most often got wrong, and a few plain ones."""
    if pa.types.is_boolean(kind):
        return [True, False]
    if pa.types.is_integer(kind):
        top = 2 ** (kind.bit_width - pa.types.is_signed_integer(kind))
        low = -top if pa.types.is_signed_integer(kind) else 0
        return [0, 1, 7, low, low + 1, top - 2, top - 1]
    if pa.types.is_floating(kind):
        limits = np.finfo(kind.to_pandas_dtype())
        plain = [item for item in _FLOATS if not math.isfinite(item) or abs(item) <= float(limits.max)]
        return [*plain, float(limits.max), float(limits.smallest_subnormal)]
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        return [Decimal(f"{number}e{-kind.scale}") for number in (0, 250, -250, 155, most, -most)]
    if is_text(kind):
        return list(_TEXT)
    if is_bytes(kind):
        return [item[:3].ljust(3, b"\0") for item in _BINARY] if kind == pa.binary(3) else list(_BINARY)
    if kind in CLOCKS:
        return [0, 1, 3_599, 3_600, _DAY - 1]
    if pa.types.is_date(kind):
        days = [at // _DAY for at in (_FIRST, _LAST, *_TURNS)]
        return days if kind == pa.date32() else [day * _DAY * 1000 for day in days]
    ticks = _PER_SECOND[kind.unit]
    return [at * ticks for at in (*_span(kind.unit), *_TURNS)]


def _span(unit: str) -> tuple[int, int]:
    """The first and the last second that a unit and the calendar both reach."""
    return (-9_223_372_036, 9_223_372_035) if unit == "ns" else (_FIRST, _LAST)


def _instants(unit: str) -> st.SearchStrategy[int]:
    ticks = _PER_SECOND[unit]
    seconds = st.integers(1_767_000_000, 1_767_400_000) | st.integers(*_span(unit))
    return st.tuples(seconds, st.sampled_from([0, 0, 1, ticks - 1])).map(lambda pair: pair[0] * ticks + pair[1])


def array(kind: Any, items: Sequence[Any]) -> Any:
    """Values, and None for NULL, as an Arrow array; floats keep the sign of zero and of NaN."""
    if pa.types.is_floating(kind):
        plain = np.array([0.0 if item is None else item for item in items], dtype=kind.to_pandas_dtype())
        return pa.array(plain, kind, mask=np.array([item is None for item in items], dtype=bool))
    if pa.types.is_temporal(kind):
        return pa.array(items, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    return pa.array(items, kind.value_type).cast(kind) if pa.types.is_dictionary(kind) else pa.array(items, kind)


def literal(kind: Any, item: Any) -> str:
    """A value as SQL."""
    return quote_literal(array(kind, [item])[0])


def identifier(name: str) -> str:
    """A column as SQL and ``partition_by`` both take it."""
    return '"' + name.replace('"', '""') + '"'


def rows(draw: Any, schema: Any, first: int, size: int) -> Any:
    """Some rows of a schema whose ``id`` column counts on from ``first``."""
    columns = [pa.array(range(first, first + size), pa.int64())]
    for field in list(schema)[1:]:
        drawn = draw(st.lists(st.none() | values(field.type) | values(field.type), min_size=size, max_size=size))
        columns.append(array(field.type, drawn))
    return pa.Table.from_arrays(columns, schema=schema)


def wider(kind: Any) -> list[Any]:
    """The types that a column may be widened to."""
    signed = [pa.int16(), pa.int32(), pa.int64()]
    unsigned = [pa.uint16(), pa.uint32(), pa.uint64()]
    if pa.types.is_integer(kind):
        return [
            each for each in (signed if kind in (pa.int8(), *signed) else unsigned) if each.bit_width > kind.bit_width
        ]
    if pa.types.is_floating(kind):
        return [each for each in (pa.float32(), pa.float64()) if each.bit_width > kind.bit_width]
    if pa.types.is_decimal128(kind) and kind.precision < 38:
        return [pa.decimal128(kind.precision + 1, kind.scale), pa.decimal128(38, kind.scale)]
    return []


def partitionings(schema: Any) -> st.SearchStrategy[list[str]]:
    """One to four fields over a schema: every transform that its columns take, and some expressions."""
    choices = [text for field in list(schema)[1:] for text in _over_one(identifier(field.name), field.type)]
    choices += _over_several(schema)
    return st.lists(st.sampled_from(choices), min_size=1, max_size=4, unique=True)


def _over_one(name: str, kind: Any) -> list[str]:
    found = [name, f"bucket(3, {name})", f"bucket({name}, 16)"]
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        found += [f"year({name})", f"month({name})", f"day({name})", f"expr(date_part('dow', {name}))"]
    if pa.types.is_timestamp(kind):
        found += [f"hour({name})"]
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        found += [f"truncate({name}, 10)", f"truncate(1, {name})"]
    if pa.types.is_integer(kind):
        found += [f"expr({name} % 7)", f"expr(CASE WHEN {name} < 5 THEN 'few' ELSE 'many' END)"]
    if pa.types.is_floating(kind):
        found += [f"expr({name} > 0)"]
    if is_text(kind):
        found += [f"expr(upper({name}))", f"expr(character_length({name}))", f"expr(coalesce({name}, ''))"]
    if (is_text(kind) and not pa.types.is_dictionary(kind)) or kind in (pa.binary(), pa.large_binary()):
        found += [f"truncate({name}, 2)", f"truncate({name}, 1)"]
    return found


def _over_several(schema: Any) -> list[str]:
    names = [identifier(field.name) for field in list(schema)[1:]]
    found = [f"multi_bucket(4, {', '.join(names)})", f"multi_bucket(5, id, {names[0]})"]
    for left, right in pairwise(names):
        found += [f"multi_bucket(3, {left}, {right})", f"expr(abs(murmur3_multi({left}, {right})) % 4)"]
    return found


def filters(schema: Any) -> st.SearchStrategy[str]:
    """A filter over a schema as SQL text, operators nested up to four deep."""
    level = st.one_of([_tests(field.name, field.type) for field in schema])
    both = [f for f in schema if not pa.types.is_dictionary(f.type)]
    pairs = [(x.name, y.name) for x in both for y in both if x.type == y.type and x.name != y.name]
    if pairs:
        compared = st.tuples(st.sampled_from(pairs), st.sampled_from(OPERATORS))
        level = level | compared.map(lambda t: f"{identifier(t[0][0])} {t[1]} {identifier(t[0][1])}")
    return nested(level, depth=4)


def nested(tests: st.SearchStrategy[str], *, depth: int) -> st.SearchStrategy[str]:
    """Tests, and operators over them up to some depth."""
    level = tests
    for _ in range(depth):
        level = tests | _combined(level)
    return level


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    truths = st.sampled_from(["TRUE", "NOT TRUE", "NOT FALSE", "UNKNOWN", "NULL"])
    return (
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})")
        | inner.map(lambda text: f"NOT ({text})")
        | st.tuples(inner, truths).map(lambda t: f"({t[0]}) IS {t[1]}")
    )


def _tests(column: str, kind: Any) -> st.SearchStrategy[str]:
    name = identifier(column)
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    some = values(plain).map(lambda item: literal(plain, item))
    odd = _odd_literals(plain)
    if odd:
        some = some | some | st.sampled_from(odd)
    listed = st.lists(some | st.just("NULL"), min_size=1, max_size=5).map(", ".join)
    negation = st.sampled_from(["", "NOT "])
    tests = [
        st.tuples(st.sampled_from(OPERATORS), some).map(lambda t: f"{name} {t[0]} {t[1]}"),
        st.tuples(some, st.sampled_from(OPERATORS[:6])).map(lambda t: f"{t[0]} {t[1]} {name}"),
        st.tuples(negation, listed).map(lambda t: f"{name} {t[0]}IN ({t[1]})"),
        st.tuples(negation, some, some).map(lambda t: f"{name} {t[0]}BETWEEN {t[1]} AND {t[2]}"),
        negation.map(lambda text: f"{name} IS {text}NULL"),
        *_special(name, plain),
    ]
    return st.one_of(tests)


def _special(name: str, kind: Any) -> list[st.SearchStrategy[str]]:
    """Tests that only some types have, and some that no partition can answer."""
    compared = st.sampled_from(OPERATORS[:6])
    if is_text(kind):
        pattern = st.text(alphabet="ab%_é😀\U0010ffff", max_size=4).map(lambda text: f"'{text}'")
        escaped = st.sampled_from(["'100\\%'", "'100\\%%'", "'\\_%'", "'a_%'", "'%'", "'it''s%'"])
        prefix = values(kind).map(lambda item: literal(kind, item))
        negation = st.sampled_from(["", "NOT "])
        return [
            st.tuples(negation, pattern | escaped).map(lambda t: f"{name} {t[0]}LIKE {t[1]}"),
            prefix.map(lambda text: f"starts_with({name}, {text})"),
            st.tuples(compared, prefix).map(lambda t: f"upper({name}) {t[0]} {t[1]}"),
        ]
    if pa.types.is_boolean(kind):
        return [st.sampled_from([name, f"NOT {name}", f"{name} IS TRUE", f"{name} IS NOT FALSE", f"{name} IS UNKNOWN"])]
    if pa.types.is_integer(kind):
        return [compared.map(lambda operator: f"{name} % 3 {operator} 1")]
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        days = st.sampled_from(["2025-12-31", "2026-01-01", "2024-02-29", "0001-01-01", "9999-12-31"])
        return [
            st.tuples(compared, days).map(lambda t: f"CAST({name} AS DATE) {t[0]} DATE '{t[1]}'"),
            st.tuples(compared, st.sampled_from([1, 1969, 2025])).map(
                lambda t: f"date_part('year', {name}) {t[0]} {t[1]}"
            ),
        ]
    return []


def _odd_literals(kind: Any) -> list[str]:
    """Literals of another type than the column's, as people write them."""
    if pa.types.is_integer(kind):
        return ["2.5", "-0.5", "7.0", "5000000000", "CAST('7' AS BIGINT)", "(3 + 4)", "9223372036854775808", "1e19"]
    if pa.types.is_floating(kind):
        return ["0.1", "1", "0", "-0.0", "'NaN'", "1e39", "CAST('0.1' AS FLOAT)", "CAST('-inf' AS FLOAT)", "16777217"]
    if pa.types.is_decimal128(kind):
        return ["1.555", "3", "-2.5", "1e0", "'2.50'"]
    if pa.types.is_date32(kind):
        return ["'2025-12-31'", "(DATE '2025-01-31' + INTERVAL '1 month')", "TIMESTAMP '2025-12-31T12:00:00'"]
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return ["'2026-01-01'", "DATE '2025-12-30'", "'2025-12-31T23:59:59.999999'", "TIMESTAMP '2026-01-01 00:00:00'"]
    if pa.types.is_timestamp(kind):
        return ["'2026-01-01T00:00:00Z'", "'2025-12-31T22:00:00-02:00'"]
    return ["('a' || 'b')", "upper('b')"] if is_text(kind) else []
