"""From a filter tree to domains of each column: a formula over domains, then its alternatives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import TypeAlias

import pyarrow as pa

from lancepart.model.aliases import JsonMapping
from lancepart.model.domain import Domain
from lancepart.model.ordering import Ordering, ordering
from lancepart.model.predicate import (
    And,
    BooleanColumn,
    Column,
    Comparison,
    Constant,
    In,
    Is,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from lancepart.model.terms import Term
from lancepart.model.widening import widening

Constraint = Mapping[Column, Domain]
"""What one alternative leaves possible, by column or partition function of columns; one that is not named is free."""

Outcomes = frozenset[bool | None]

MOST_ALTERNATIVES = 64
_TRUE: Outcomes = frozenset({True})
_ALL: Outcomes = frozenset({True, False, None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """All parts hold; no parts at all is TRUE."""

    domains: Constraint
    parts: tuple[Some, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Some:
    """One of the parts holds; no parts at all is FALSE."""

    parts: tuple[Every, ...]


ALWAYS = Every(domains={}, parts=())
NEVER = Some(parts=())
Formula = Every | Some


def formula(predicate: Predicate, types: Mapping[str, pa.DataType]) -> Formula:
    """What must hold of the columns' values in a row for which the predicate is TRUE."""
    return _ask(predicate, _TRUE, types)


def alternatives(condition: Formula) -> list[Constraint] | None:
    """The formula as alternatives, each a domain per column; None when there would be too many."""
    if isinstance(condition, Some):
        found: list[Constraint] = []
        for part in condition.parts:
            more = alternatives(part)
            if more is None or len(found) + len(more) > MOST_ALTERNATIVES:
                return None
            found.extend(more)
        return found
    choices = [alternatives(part) for part in condition.parts]
    if None in choices:
        return None
    listed = [choice for choice in choices if choice is not None]
    combinations: list[Constraint] = [condition.domains]
    for choice in listed:
        joined = (_joined(left, right) for left, right in product(combinations, choice))
        combinations = [constraint for constraint in joined if constraint is not None]
        if len(combinations) > MOST_ALTERNATIVES:
            return None
    return combinations


def _ask(predicate: Predicate, wanted: Outcomes, types: Mapping[str, pa.DataType]) -> Formula:
    """What must hold for the predicate to have one of the wanted outcomes."""
    if wanted == _ALL:
        return ALWAYS
    match predicate:
        case Constant(value=value):
            return ALWAYS if value in wanted else NEVER
        case Not(operand=operand):
            return _ask(operand, _flipped(wanted), types)
        case Is(operand=operand, outcome=outcome):
            hit = frozenset({outcome})
            condition = (hit if True in wanted else frozenset()) | (_ALL - hit if False in wanted else frozenset())
            return _ask(operand, condition, types)
        case And(operands=operands):
            return _ask_all(operands, wanted, types)
        case Or(operands=operands):
            return _ask_all(tuple(Not(operand=operand) for operand in operands), _flipped(wanted), types)
        case Comparison() | In() | IsNull() | StartsWith() | BooleanColumn():
            return _atom(predicate, wanted, types)
        case _:
            return ALWAYS


def _ask_all(operands: tuple[Predicate, ...], wanted: Outcomes, types: Mapping[str, pa.DataType]) -> Formula:
    """A conjunction is FALSE where one operand is, else NULL where one is, else TRUE."""
    if not wanted:
        return NEVER
    if wanted == frozenset({None}):
        some = _some(_ask(operand, wanted, types) for operand in operands)
        return _every([some, *(_ask(operand, frozenset({True, None}), types) for operand in operands)])
    if wanted == frozenset({True, False}):
        return _some([_ask_all(operands, _TRUE, types), _ask_all(operands, frozenset({False}), types)])
    if True in wanted:
        return _every(_ask(operand, wanted, types) for operand in operands)
    return _some(_ask(operand, wanted, types) for operand in operands)


_Test: TypeAlias = Comparison | In | IsNull | StartsWith | BooleanColumn


def _flipped(wanted: Outcomes) -> Outcomes:
    return frozenset(None if outcome is None else not outcome for outcome in wanted)


def _atom(predicate: _Test, wanted: Outcomes, types: Mapping[str, pa.DataType]) -> Formula:
    column = predicate.column
    order = ordering(types[column] if isinstance(column, str) else column.value_type(types))
    if isinstance(predicate, IsNull) and order is None:
        return ALWAYS
    found = None if order is None else _true_and_false(predicate, order)
    if found is None or order is None:
        return ALWAYS
    true, false = found
    unknown = true.union(false).complement()
    chosen = [domain for outcome, domain in ((True, true), (False, false), (None, unknown)) if outcome in wanted]
    domain = reduce(Domain.union, chosen, Domain.nothing(order))
    if domain.is_empty:
        return NEVER
    return _constraint({column: domain} if isinstance(column, str) else _pulled_back(column, domain, types))


def _pulled_back(term: Term, domain: Domain, types: JsonMapping) -> dict[Column, Domain]:
    """The column's own domain where the function never reorders values, else the function's: both say all there is."""
    order = ordering(types[term.columns[0]])
    found = None if order is None else term.transform.preimage(domain, order)
    return {term: domain} if found is None else {term.columns[0]: found}


def _true_and_false(predicate: Predicate, order: Ordering) -> tuple[Domain, Domain] | None:
    """The values that make one test TRUE, and those that make it FALSE.

    The two may overlap where engines differ over zero, but together they never miss a value other than NULL.
    """
    values = Domain.only_null(order).complement()
    match predicate:
        case IsNull():
            return Domain.only_null(order), values
        case BooleanColumn():
            return Domain.of(order, [1]), Domain.of(order, [0])
        case StartsWith(prefix=prefix) if order.kind == "text":
            true = Domain.starting(order, prefix)
            return true, true.complement().intersect(values)
        case Comparison():
            return _compared(predicate, order)
        case In(values=literals, negated=negated):
            return _listed(literals, order, values, negated=negated)
    return None


def _compared(predicate: Comparison, order: Ordering) -> tuple[Domain, Domain] | None:
    opposite = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}[predicate.operator]
    target = ordering(predicate.literal.type)
    image = widening(order.type, predicate.literal.type)
    if target is None or image is None:
        return None
    key = target.key(predicate.literal)
    true, false = (Domain.comparing(target, operator, key) for operator in (predicate.operator, opposite))
    if order.kind in {"text", "binary"} or order.type == target.type:
        return Domain.spanning(order, true.spans), Domain.spanning(order, false.spans)
    return true.pulled_back(order, image), false.pulled_back(order, image)


def _listed(
    literals: tuple[pa.Scalar, ...], order: Ordering, values: Domain, *, negated: bool
) -> tuple[Domain, Domain] | None:
    if any(ordering(literal.type) != order for literal in literals if literal.is_valid):
        return None
    keys = [order.key(literal) for literal in literals if literal.is_valid]
    zeros = (-1, 0) if order.kind == "float" and not {-1, 0}.isdisjoint(keys) else ()
    hit = Domain.of(order, [*keys, *zeros])
    certain = all(literal.is_valid for literal in literals)
    miss = Domain.of(order, keys).complement().intersect(values) if certain else Domain.nothing(order)
    return (miss, hit) if negated else (hit, miss)


def _constraint(domains: Constraint) -> Formula:
    kept = {column: domain for column, domain in domains.items() if not domain.is_everything}
    return NEVER if any(domain.is_empty for domain in kept.values()) else Every(domains=kept, parts=())


def _joined(left: Constraint, right: Constraint) -> Constraint | None:
    """Both constraints at once; None when nothing can meet them."""
    joined = dict(left)
    for column, domain in right.items():
        joined[column] = joined[column].intersect(domain) if column in joined else domain
        if joined[column].is_empty:
            return None
    return joined


def _every(parts: Iterable[Formula]) -> Formula:
    """A conjunction, with what it says of one column brought together."""
    domains: Constraint = {}
    inner: list[Some] = []
    for part in parts:
        if isinstance(part, Some):
            inner.append(part)
            continue
        joined = _joined(domains, part.domains)
        if joined is None:
            return NEVER
        domains = joined
        inner.extend(part.parts)
    if NEVER in inner:
        return NEVER
    return inner[0] if len(inner) == 1 and not domains else Every(domains=domains, parts=tuple(inner))


def _some(parts: Iterable[Formula]) -> Formula:
    """A disjunction, with the domains of parts that speak of one and the same column united."""
    single: dict[Column, list[Domain]] = {}
    others: list[Every] = []
    for part in parts:
        for every in part.parts if isinstance(part, Some) else (part,):
            if every == ALWAYS:
                return ALWAYS
            if len(every.domains) == 1 and not every.parts:
                ((column, domain),) = every.domains.items()
                single.setdefault(column, []).append(domain)
            else:
                others.append(every)
    united = [_constraint({column: Domain.united(domains)}) for column, domains in single.items()]
    if ALWAYS in united:
        return ALWAYS
    found = (*(part for part in united if isinstance(part, Every)), *others)
    return found[0] if len(found) == 1 else Some(parts=found)
