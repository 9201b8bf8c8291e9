from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import given
from hypothesis import strategies as st

from lancepart.model.domain import Domain
from lancepart.model.ordering import Ordering, after_prefix, ordering
from lancepart.model.quoting import quote_literal

OPERATORS = ["=", "<>", "<", "<=", ">", ">="]


def order_of(data_type: Any) -> Ordering:
    order = ordering(data_type)
    assert order is not None
    return order


INT8 = order_of(pa.int8())
SPANS = st.lists(st.tuples(st.integers(-128, 127), st.integers(-128, 128)), max_size=5)
DOMAINS = st.builds(lambda spans, null: Domain.spanning(INT8, spans, null=null), SPANS, st.booleans())
EVERY_KEY = [*range(-128, 128), None]


def keys(domain: Domain) -> set[int | None]:
    return {key for key in EVERY_KEY if domain.contains(key)}


@given(left=DOMAINS, right=DOMAINS)
def test_domains_are_sets(left: Domain, right: Domain) -> None:
    assert keys(left.intersect(right)) == keys(left) & keys(right)
    assert keys(left.union(right)) == keys(left) | keys(right)
    assert keys(left.complement()) == set(EVERY_KEY) - keys(left)
    assert left.complement().complement() == left
    assert left.is_empty == (not keys(left))
    assert left.is_everything == (keys(left) == set(EVERY_KEY))


@given(domain=DOMAINS)
def test_enumeration_and_masks_agree_with_membership(domain: Domain) -> None:
    array = pa.array(EVERY_KEY, pa.int8())

    assert set(domain.enumerate(1000) or []) == keys(domain)
    assert {key for key, kept in zip(EVERY_KEY, domain.mask(array).to_pylist(), strict=True) if kept} == keys(domain)


@given(domain=DOMAINS, step=st.integers(1, 40))
def test_a_monotonic_function_is_seen_through(domain: Domain, step: int) -> None:
    order = order_of(pa.int16())

    pulled = domain.pulled_back(order, lambda key: key // step)

    assert all(pulled.contains(key) == domain.contains(key // step) for key in range(-2000, 2000))


VALUES: dict[Any, list[Any]] = {
    pa.bool_(): [True, False],
    pa.uint64(): [0, 2**63, 2**64 - 1],
    pa.int64(): [-(2**63), 0, 2**63 - 1],
    pa.float64(): [math.nan, math.inf, -math.inf, 1.0, -1.0, 5e-324],
    pa.float32(): [math.nan, math.inf, -math.inf, 1.0, -1.0],
    pa.decimal128(10, 2): [Decimal("-99999999.99"), Decimal("0.01"), Decimal("0.00")],
    pa.date32(): [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)],
    pa.timestamp("s"): [-62_135_596_800, -1, 0, 253_402_300_799],
    pa.timestamp("ns", "UTC"): [-(2**62), -1, 0, 2**62],
    pa.time64("us"): [0, 1, 86_399_999_999],
    pa.string(): ["", "a", "a\0", "ab", "b", "é", "\ud7ff", "\ue000", "😀", "\U0010ffff"],
    pa.large_string(): ["", "a"],
    pa.binary(): [b"", b"\0", b"\xff", b"\xff\xff"],
}


@pytest.mark.parametrize("data_type", VALUES, ids=str)
@pytest.mark.parametrize("operator", OPERATORS)
def test_comparisons_agree_with_datafusion(data_type: Any, operator: str) -> None:
    array = pa.array([*VALUES[data_type], None], data_type)
    context = SessionContext()
    context.from_arrow(pa.table({"v": array, "k": range(len(array))}), "t")
    order = order_of(data_type)
    for literal in array[:-1]:
        domain = Domain.comparing(order, operator, order.key(literal))

        rows = context.sql(f"SELECT k FROM t WHERE v {operator} {quote_literal(literal)} ORDER BY k").to_pydict()["k"]

        assert [at for at, kept in enumerate(domain.mask(array).to_pylist()) if kept] == rows


@pytest.mark.parametrize("data_type", VALUES, ids=str)
def test_keys_come_back_as_the_same_values(data_type: Any) -> None:
    array = pa.array(VALUES[data_type], data_type)
    order = order_of(data_type)

    again = order.values([order.key(value) for value in array])

    assert again.type == data_type
    assert [order.key(value) for value in again] == [order.key(value) for value in array]


@pytest.mark.parametrize(
    ("operator", "zero", "expected"),
    [
        ("=", 0.0, [-0.0, 0.0]),
        ("=", -0.0, [-0.0, 0.0]),
        ("<", 0.0, [-1.0, -0.0]),
        ("<", -0.0, [-1.0]),
        ("<=", -0.0, [-1.0, -0.0, 0.0]),
        (">", -0.0, [0.0, 1.0]),
        (">=", 0.0, [-0.0, 0.0, 1.0]),
        ("<>", 0.0, [-1.0, -0.0, 1.0]),
    ],
)
def test_zero_keeps_what_either_engine_would_keep(operator: str, zero: float, expected: list[float]) -> None:
    order = order_of(pa.float64())
    array = pa.array([-1.0, -0.0, 0.0, 1.0])

    kept = array.filter(Domain.comparing(order, operator, order.key(pa.scalar(zero))).mask(array))

    assert [str(value) for value in kept.to_pylist()] == [str(value) for value in expected]


def test_nan_is_above_every_number_and_negative_nan_below() -> None:
    order = order_of(pa.float64())
    array = pa.array([math.nan, math.copysign(math.nan, -1), math.inf, -math.inf])

    above = Domain.comparing(order, ">", order.key(pa.scalar(5.0)))

    assert above.mask(array).to_pylist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("prefix", "above"),
    [
        ("ab", "ac"),
        ("a\U0010ffff", "b"),
        ("\U0010ffff", None),
        ("", None),
        ("\ud7ff", "\ue000"),
        ("a\0", "a\x01"),
    ],
)
def test_a_prefix_ends_where_the_next_text_begins(prefix: str, above: str | None) -> None:
    assert after_prefix(prefix) == above
    domain = Domain.starting(order_of(pa.string()), prefix)
    assert domain.contains(prefix + "\U0010ffff\U0010ffff")
    assert above is None or not domain.contains(above)


def test_texts_enumerate_only_when_they_are_points() -> None:
    order = order_of(pa.string())

    assert Domain.of(order, ["b", "a"]).enumerate(10) == ["a", "b"]
    assert Domain.starting(order, "a").enumerate(10) is None
    assert Domain.spanning(order, [("a", "a\0\0")]).enumerate(10) == ["a", "a\0"]


def test_too_many_values_are_not_enumerated() -> None:
    assert Domain.everything(order_of(pa.int64())).enumerate(10) is None
    assert Domain.everything(INT8).enumerate(255) is None


@pytest.mark.parametrize("data_type", [pa.list_(pa.int8()), pa.struct([("x", pa.int8())]), pa.null()], ids=str)
def test_nested_types_have_no_order(data_type: Any) -> None:
    assert ordering(data_type) is None
