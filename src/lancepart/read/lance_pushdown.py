"""Filter pushdown to Lance: which part of a filter Lance can evaluate, and whether the result is exact.

DataFusion's semantics are the reference. It orders -0.0 below 0.0, while Lance treats them as equal: so a comparison
with zero is pushed down in a form that finds no fewer rows, and is then evaluated again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from math import copysign

import pyarrow as pa

from lancepart.model.predicate import (
    And,
    Comparison,
    In,
    Is,
    IsNull,
    Not,
    Opaque,
    Or,
    Predicate,
    is_portable,
    nesting,
)
from lancepart.model.predicate_chains import all_of

Pushdown = tuple[Predicate | None, bool]
"""The filter that Lance evaluates, None for none; and whether the rows that it finds are exactly those that match."""

_DEEPEST = 40
_NOTHING: Pushdown = (None, False)
_FLOATING = re.compile(r"float|double|\d\.\d", re.IGNORECASE)
_LOOSER: dict[tuple[bool, str], str] = {
    (False, "="): "=",
    (False, ">="): ">=",
    (False, "<"): "<=",
    (True, "="): "=",
    (True, "<="): "<=",
    (True, ">"): ">=",
}


def lance_filter(
    predicate: Predicate, types: Mapping[str, pa.DataType], blobs: Collection[str] = frozenset()
) -> Pushdown:
    """The part of a filter to push down; ``types`` are the columns that a leaf has just as the table has them.

    Of ``blobs`` Lance tests only whether there is one: for anything else it would read the bytes of all rows.
    """
    match predicate:
        case And(operands=operands):
            parts = [lance_filter(operand, types, blobs) for operand in operands]
            kept = tuple(part for part, _ in parts if part is not None)
            exact = all(exact for _, exact in parts)
            return (And(operands=kept) if len(kept) > 1 else kept[0] if kept else None), exact
        case Or(operands=operands):
            parts = [lance_filter(operand, types, blobs) for operand in operands]
            kept = tuple(part for part, _ in parts if part is not None)
            return (Or(operands=kept), all(exact for _, exact in parts)) if len(kept) == len(parts) else _NOTHING
        case Not() | Is():
            return (predicate, True) if lance_filter(predicate.operand, types, blobs)[1] else _NOTHING
        case IsNull(column=column) if column in blobs:
            return predicate, True
        case _ if not predicate.columns() <= types.keys() - set(blobs) or not is_portable(predicate):
            return _NOTHING
        case Comparison(literal=literal) if _is_zero(literal):
            return _beside_zero(predicate)
        case In(values=values, negated=negated) if any(map(_is_zero, values)):
            return _NOTHING if negated else (predicate, False)
        case Opaque() if _computes_with_floats(predicate, types):
            return _NOTHING
        case _:
            return predicate, True


def shallow(pushed: Predicate | None, exact: bool) -> Pushdown:
    """The same without parts that are nested too deep for Lance's parser."""
    if pushed is None or nesting(pushed) <= _DEEPEST:
        return pushed, exact
    kept = [part for part in pushed.operands if nesting(part) < _DEEPEST - 2] if isinstance(pushed, And) else []
    return (all_of(kept) if kept else None), False


def _is_zero(literal: pa.Scalar) -> bool:
    return bool(pa.types.is_floating(literal.type) and literal.as_py() == 0)


def _beside_zero(predicate: Comparison) -> Pushdown:
    negative = copysign(1.0, predicate.literal.as_py()) < 0
    if predicate.operator == "<>":
        return Not(operand=IsNull(column=predicate.column)), False
    looser = _LOOSER.get((negative, predicate.operator))
    return (predicate, True) if looser is None else (replace(predicate, operator=looser), False)


def _computes_with_floats(predicate: Opaque, types: Mapping[str, pa.DataType]) -> bool:
    """Whether a zero with a sign may come up in an expression that is not looked into."""
    has_floats = any(_FLOATING.search(str(types[source])) for source in predicate.sources)
    return has_floats or _FLOATING.search(predicate.template) is not None
