"""What of a filter Lance itself can be asked, and whether its answer needs a second look.

DataFusion's answers are the ones that count. It tells -0.0 from 0.0 and puts it below, while Lance does not: so a
comparison with zero is asked in a form that finds no fewer rows, and then looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    all_of,
    is_portable,
    nesting,
)

Asked = tuple[Predicate | None, bool]
"""What Lance is asked, nothing as None; and whether the rows that it finds are exactly those that match."""

_DEEPEST = 40
_NOTHING: Asked = (None, False)
_FLOATING = re.compile(r"float|double|\d\.\d", re.IGNORECASE)
_LOOSER: dict[tuple[bool, str], str] = {
    (False, "="): "=",
    (False, ">="): ">=",
    (False, "<"): "<=",
    (True, "="): "=",
    (True, "<="): "<=",
    (True, ">"): ">=",
}


def asked_of_lance(predicate: Predicate, types: Mapping[str, pa.DataType]) -> Asked:
    """The part of a filter to push down; ``types`` are the columns that a leaf has just as the table has them."""
    match predicate:
        case And(operands=operands):
            parts = [asked_of_lance(operand, types) for operand in operands]
            kept = tuple(part for part, _ in parts if part is not None)
            exact = all(exact for _, exact in parts)
            return (And(operands=kept) if len(kept) > 1 else kept[0] if kept else None), exact
        case Or(operands=operands):
            parts = [asked_of_lance(operand, types) for operand in operands]
            kept = tuple(part for part, _ in parts if part is not None)
            return (Or(operands=kept), all(exact for _, exact in parts)) if len(kept) == len(parts) else _NOTHING
        case Not() | Is():
            return (predicate, True) if asked_of_lance(predicate.operand, types)[1] else _NOTHING
        case _ if not predicate.columns() <= types.keys() or not is_portable(predicate):
            return _NOTHING
        case Comparison(literal=literal) if _is_zero(literal):
            return _beside_zero(predicate)
        case In(values=values, negated=negated) if any(map(_is_zero, values)):
            return _NOTHING if negated else (predicate, False)
        case Opaque() if _computes_with_floats(predicate, types):
            return _NOTHING
        case _:
            return predicate, True


def shallow(asked: Predicate | None, exact: bool) -> Asked:
    """The same without what is nested deeper than Lance's parser goes."""
    if asked is None or nesting(asked) <= _DEEPEST:
        return asked, exact
    kept = [part for part in asked.operands if nesting(part) < _DEEPEST - 2] if isinstance(asked, And) else []
    return (all_of(kept) if kept else None), False


def _is_zero(literal: pa.Scalar) -> bool:
    return bool(pa.types.is_floating(literal.type) and literal.as_py() == 0)


def _beside_zero(predicate: Comparison) -> Asked:
    negative = copysign(1.0, predicate.literal.as_py()) < 0
    if predicate.operator == "<>":
        return Not(operand=IsNull(column=predicate.column)), False
    looser = _LOOSER.get((negative, predicate.operator))
    return (predicate, True) if looser is None else (replace(predicate, operator=looser), False)


def _computes_with_floats(predicate: Opaque, types: Mapping[str, pa.DataType]) -> bool:
    """Whether a zero with a sign may come up in an expression that is not looked into."""
    has_floats = any(_FLOATING.search(str(types[source])) for source in predicate.sources)
    return has_floats or _FLOATING.search(predicate.template) is not None
