"""Simplifying a filter for a leaf whose path holds some of the columns: they have one value in all its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from lancepart.model.filtering import outcome
from lancepart.model.predicate import And, Constant, Is, Not, Or, Predicate


def settled(predicate: Predicate, columns: Mapping[str, pa.Array]) -> Predicate:
    """The filter with the parts evaluated that read only these columns, given as arrays of one value."""
    rows = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def answer(part: Predicate) -> Constant:
        return Constant(value=outcome(rows, part))

    return _settled(predicate, frozenset(columns), answer)


def _settled(predicate: Predicate, known: frozenset[str], answer: Callable[[Predicate], Constant]) -> Predicate:
    needed = predicate.columns()
    if not needed & known:
        return predicate
    if needed <= known:
        return answer(predicate)
    match predicate:
        case And(operands=operands):
            return _joined(And, [_settled(part, known, answer) for part in operands], neutral=True)
        case Or(operands=operands):
            return _joined(Or, [_settled(part, known, answer) for part in operands], neutral=False)
        case Not(operand=operand):
            return Not(operand=_settled(operand, known, answer))
        case Is(operand=operand, outcome=outcome):
            return Is(operand=_settled(operand, known, answer), outcome=outcome)
    return predicate


def _joined(kind: type[And] | type[Or], parts: list[Predicate], *, neutral: bool) -> Predicate:
    decisive = Constant(value=not neutral)
    if decisive in parts:
        return decisive
    left = tuple(part for part in parts if part != Constant(value=neutral))
    if not left:
        return Constant(value=neutral)
    return left[0] if len(left) == 1 else kind(operands=left)
