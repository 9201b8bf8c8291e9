"""Filters joined by AND and OR: without chains in chains, and long chains of equalities as lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from lancepart.model.predicate import FEW, And, Column, Comparison, In, Or, Predicate


def all_of(operands: Iterable[Predicate]) -> Predicate:
    """The conjunction of one or more predicates, without chains in chains; ``<>`` of one column become one NOT IN."""
    return _chain(And, operands)


def any_of(operands: Iterable[Predicate]) -> Predicate:
    """The disjunction of one or more predicates, without chains in chains; ``=`` of one column become one IN."""
    return _chain(Or, operands)


def _chain(kind: type[And] | type[Or], operands: Iterable[Predicate]) -> Predicate:
    flat = [part for each in operands for part in (each.operands if isinstance(each, kind) else (each,))]
    if sum(len(part.values) if isinstance(part, In) else 1 for part in flat) > FEW:
        flat = _listed(flat, negated=kind is And)
    return flat[0] if len(flat) == 1 else kind(operands=tuple(flat))


def _listed(parts: Sequence[Predicate], *, negated: bool) -> list[Predicate]:
    """Equalities, or inequalities, of one column and type merged at the position of the first."""
    lists: dict[tuple[Column, pa.DataType], list[pa.Scalar]] = {}
    kept: list[Predicate | tuple[Column, pa.DataType]] = []
    for part in parts:
        values = _values(part, negated=negated)
        if values is None:
            kept.append(part)
            continue
        key = (part.column, values[0].type)  # type: ignore[union-attr]
        if key not in lists:
            kept.append(key)
        lists.setdefault(key, []).extend(values)
    return [In(column=p[0], values=tuple(lists[p]), negated=negated) if isinstance(p, tuple) else p for p in kept]


def _values(part: Predicate, *, negated: bool) -> tuple[pa.Scalar, ...] | None:
    """What a part lists for its column; None for one that lists nothing, and for floats with their zeros and NaNs."""
    match part:
        case Comparison(operator=operator, literal=literal, widened=False) if operator == ("<>" if negated else "="):
            values: tuple[pa.Scalar, ...] = (literal,)
        case In(values=found, negated=other) if other == negated:
            values = found
        case _:
            return None
    plain = all(value.is_valid and value.type == values[0].type for value in values)
    return values if plain and not pa.types.is_floating(values[0].type) else None
