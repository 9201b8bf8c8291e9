"""A domain of partition values as a filter on a column of the manifest, short enough for an index."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from lancepart.format.names import partition_column
from lancepart.model.domain import Domain, Span
from lancepart.model.ordering import Key, Ordering
from lancepart.model.quoting import quote_identifier, quote_literal
from lancepart.model.spec import PartitionField

_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
_MOST_LISTED = 1_000
_FEW_LISTED = 50
_MOST_RANGES = 16


def quoted_column(field: PartitionField) -> str:
    """The manifest's column for a partition field, quoted only where it has to be."""
    name = partition_column(field.field_id)
    return name if _PLAIN.fullmatch(name) else quote_identifier(name)


def condition(column: str, domain: Domain) -> str | None:
    """What a column must satisfy for its value to lie in a domain; None when everything does.

    It may let more through where the domain is too ragged to spell out.

    >>> import pyarrow as pa
    >>> from lancepart.model.ordering import ordering
    >>> condition("year", Domain.comparing(ordering(pa.int32()), "<=", 2025))
    'year <= 2025'
    """
    if domain.is_everything:
        return None
    tests = [*_float_tests(column, domain)] if domain.order.kind == "float" else [*_tests(column, domain)]
    if domain.null:
        tests.append(f"{column} IS NULL")
    return tests[0] if len(tests) == 1 else "(" + " OR ".join(tests) + ")" if tests else "false"


def conjunction(conditions: Sequence[str]) -> str:
    """All of several conditions."""
    return " AND ".join(conditions)


def disjunction(alternatives: Sequence[str]) -> str:
    """One of several alternatives."""
    return alternatives[0] if len(alternatives) == 1 else " OR ".join(f"({each})" for each in alternatives)


def _tests(column: str, domain: Domain) -> list[str]:
    order = domain.order
    if not domain.spans:
        return []
    excluded = _points(Domain.spanning(order, domain.spans).complement())
    if domain.spans == ((order.low, order.high),):
        return [f"{column} IS NOT NULL"]
    if excluded is not None and len(excluded) <= min(len(domain.spans), _MOST_LISTED):
        return [_listed(column, order, excluded, negated=True)]
    few = domain.enumerate(_FEW_LISTED) if len(domain.spans) > 1 else None
    if few is not None:
        return [_listed(column, order, [key for key in few if key is not None], negated=False)]
    points = [low for low, high in domain.spans if high == order.next(low)]
    ranges = [span for span in domain.spans if span[1] != order.next(span[0])]
    if len(points) > _MOST_LISTED or len(ranges) > _MOST_RANGES:
        return [_range(column, order, (domain.spans[0][0], domain.spans[-1][1]))]
    tests = [_range(column, order, span) for span in ranges]
    return [*([_listed(column, order, points, negated=False)] if points else []), *tests]


def _float_tests(column: str, domain: Domain) -> list[str]:
    """Floats by numbers alone, and NaN by name: engines agree on neither its order nor the sign of zero."""
    order = domain.order
    infinity = order.key(order.values([_infinity(order)])[0])
    numbers = Domain.spanning(order, [(-infinity - 1, infinity + 1)])
    tests = _tests(column, domain.intersect(numbers)) if domain.intersect(numbers).spans != numbers.spans else []
    if not tests and domain.intersect(numbers).spans:
        tests = [f"{column} IS NOT NULL"]
    has_nan = bool(domain.intersect(numbers.complement()).spans)
    return [*tests, f"isnan({column})"] if has_nan and tests != [f"{column} IS NOT NULL"] else tests


def _infinity(order: Ordering) -> int:
    return {16: 0x7C00, 32: 0x7F80_0000, 64: 0x7FF0_0000_0000_0000}[order.type.bit_width]


def _points(domain: Domain) -> list[Key] | None:
    keys = [low for low, high in domain.spans if high == domain.order.next(low)]
    return keys if len(keys) == len(domain.spans) else None


def _listed(column: str, order: Ordering, keys: Sequence[Key], *, negated: bool) -> str:
    values = [_literal(order, key) for key in keys]
    if len(values) == 1:
        return f"{column} {'<>' if negated else '='} {values[0]}"
    return f"{column} {'NOT ' if negated else ''}IN ({', '.join(values)})"


def _range(column: str, order: Ordering, span: Span) -> str:
    low, high = span
    tests = []
    stepped = order.kind in {"text", "binary"}
    zero = "\0" if order.kind == "text" else b"\0"
    if low != order.low:
        after = stepped and low[-1:] == zero and not _has_width(order, low)
        tests.append(f"{column} > {_literal(order, low[:-1])}" if after else f"{column} >= {_literal(order, low)}")
    if high is not None and high != order.high:
        if not stepped:
            tests.append(f"{column} <= {_literal(order, high - 1)}")
        elif high[-1:] == zero and not _has_width(order, high):
            tests.append(f"{column} <= {_literal(order, high[:-1])}")
        else:
            tests.append(f"{column} < {_literal(order, high)}")
    if not tests:
        return f"{column} IS NOT NULL"
    return tests[0] if len(tests) == 1 else f"({tests[0]} AND {tests[1]})"


def _has_width(order: Ordering, key: Key) -> bool:
    return bool(pa.types.is_fixed_size_binary(order.type) and len(key) == order.type.byte_width)


def _literal(order: Ordering, key: Key) -> str:
    if order.kind in {"text", "binary"} and not _has_width(order, key):
        return quote_literal(order.bound(key))
    return quote_literal(order.values([key])[0])
