"""From DataFusion's expressions, typed and folded, to the filter tree."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from datafusion.plan import LogicalPlan

from lancepart.errors import InvalidInputError, reraise_interrupt
from lancepart.model.aliases import RawExpr
from lancepart.model.decimals import adapted
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
    Opaque,
    Or,
    Predicate,
    StartsWith,
)
from lancepart.model.predicate_chains import all_of
from lancepart.model.rendering import literal_of, render
from lancepart.model.terms import Term, bound_transform
from lancepart.model.widening import widening

_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_OUTCOMES: dict[str, bool | None] = {
    "IsTrue": True,
    "IsNotTrue": True,
    "IsFalse": False,
    "IsNotFalse": False,
    "IsUnknown": None,
    "IsNotUnknown": None,
    "IsNull": None,
    "IsNotNull": None,
}


def from_plan(plan: LogicalPlan, schema: pa.Schema) -> Predicate:
    """The filters of a plan of one table as a tree."""
    tree = _Tree(schema)
    kinds: list[Predicate] = []
    while True:
        variant = plan.to_variant()
        match type(variant).__name__:
            case "EmptyRelation":
                return Constant(value=False)
            case "Filter":
                kinds.append(tree.node(variant.predicate()))
            case "Projection" | "SubqueryAlias":
                pass
            case "TableScan":
                return all_of(kinds) if kinds else Constant(value=True)
            case other:
                raise InvalidInputError(f"it needs a {other}, which filters do not have")
        (plan,) = plan.inputs()


def from_filters(filters: Sequence[RawExpr], schema: pa.Schema) -> Predicate | None:
    """The conjunction of a scan's filters, for pruning: parts that can't be parsed are left out, None if all are."""
    tree = _Tree(schema)
    found: list[Predicate] = []
    for part in _flat(list(filters), "AND"):
        try:
            found.append(tree.node(part))
        except Exception as error:
            reraise_interrupt(error)
    return all_of(found) if found else None


class _Tree:
    """Builds the nodes of one filter."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def node(self, expression: RawExpr) -> Predicate:
        """One boolean expression as a node, ``Opaque`` when there is nothing better to say."""
        kind = expression.variant_name()
        operands = expression.rex_call_operands() if kind not in {"Column", "Literal"} else []
        match kind:
            case "Literal":
                return Constant(value=literal_of(expression).as_py())
            case "Column":
                return BooleanColumn(column=expression.to_variant().name())
            case "Not":
                return _negated(self.node(operands[0]))
            case "BinaryExpr":
                return self._binary(expression, operands)
            case "InList":
                return self._in_list(expression, operands)
            case "Like":
                return self._like(expression, operands)
            case "Case":
                return self._case(expression)
            case _ if kind in _OUTCOMES:
                return self._outcome(kind, operands[0]) or self._opaque(expression)
            case _:
                return self._opaque(expression)

    def _binary(self, expression: RawExpr, operands: list[RawExpr]) -> Predicate:
        operator = expression.rex_call_operator()
        if operator in {"AND", "OR"}:
            node = And if operator == "AND" else Or
            return node(operands=tuple(self.node(operand) for operand in _flat(operands, operator)))
        left, right = operands
        if left.variant_name() == "Literal" and operator in _MIRRORED:
            left, right, operator = right, left, _MIRRORED[operator]
        if right.variant_name() != "Literal":
            return self._opaque(expression)
        literal = literal_of(right)
        if "DISTINCT" in operator:
            return self._distinct(left, literal, negated="NOT" in operator) or self._opaque(expression)
        return self._comparison(left, {"!=": "<>"}.get(operator, operator), literal) or self._opaque(expression)

    def _comparison(self, side: RawExpr, operator: str, literal: pa.Scalar) -> Predicate | None:
        if operator not in _OPPOSITE:
            return None
        if not literal.is_valid:
            return Constant(value=None)
        widened = side.variant_name() == "Cast"
        column = self._column(side.rex_call_operands()[0] if widened else side)
        if column is None:
            return None
        if widened and (kind := self._type(column)) != literal.type and pa.types.is_decimal(kind):
            return self._decimal(column, operator, literal, kind)
        if widened and widening(self._type(column), literal.type) is None:
            return None
        return Comparison(column=column, operator=operator, literal=literal, widened=widened)

    def _decimal(self, column: Column, operator: str, literal: pa.Scalar, kind: pa.DataType) -> Predicate | None:
        """A decimal column and a decimal of another type, compared in the column's own: a cast could overflow."""
        found = adapted(operator, literal.as_py(), kind) if pa.types.is_decimal(literal.type) else None
        if found is None:
            return None
        return Comparison(column=column, operator=found[0], literal=pa.scalar(found[1], kind))

    def _distinct(self, side: RawExpr, literal: pa.Scalar, *, negated: bool) -> Predicate | None:
        column = self._column(side)
        if pa.types.is_boolean(literal.type) and column is None:
            truth: Predicate | None = Is(operand=self.node(side), outcome=literal.as_py())
        elif column is None:
            truth = None
        elif not literal.is_valid:
            truth = IsNull(column=column)
        else:
            equal = Comparison(column=column, operator="=", literal=literal)
            truth = And(operands=(equal, Not(operand=IsNull(column=column))))
        return truth if truth is None or negated else Not(operand=truth)

    def _in_list(self, expression: RawExpr, operands: list[RawExpr]) -> Predicate:
        side, *items = operands
        if any(item.variant_name() != "Literal" for item in items):
            return self._opaque(expression)
        values = tuple(map(literal_of, items))
        negated = expression.to_variant().negated()
        column = self._column(side)
        if column is not None:
            return In(column=column, values=values, negated=negated)
        parts = [self._comparison(side, "=", value) for value in values]
        if None in parts:
            return self._opaque(expression)
        either = Or(operands=tuple(part for part in parts if part is not None))
        return Not(operand=either) if negated else either

    def _like(self, expression: RawExpr, operands: list[RawExpr]) -> Predicate:
        variant, column = expression.to_variant(), self._column(operands[0])
        if column is None or operands[1].variant_name() != "Literal" or "ilike" in expression.rex_call_operator():
            return self._opaque(expression)
        prefix, rest = _like_prefix(literal_of(operands[1]).as_py(), variant.escape_char() or "\\")
        if rest == "":
            literal = pa.scalar(prefix, literal_of(operands[1]).type)
            positive: Predicate = Comparison(column=column, operator="=", literal=literal)
        elif rest == "%":
            positive = StartsWith(column=column, prefix=prefix)
        else:
            opaque = self._opaque(expression)
            return (
                opaque
                if variant.negated() or not prefix
                else And(operands=(StartsWith(column=column, prefix=prefix), opaque))
            )
        return _negated(positive) if variant.negated() else positive

    def _case(self, expression: RawExpr) -> Predicate:
        """``LIKE '%'`` arrives as ``CASE column IS NOT NULL WHEN true THEN true END``: TRUE or NULL."""
        variant = expression.to_variant()
        branches, subject = variant.when_then_expr(), variant.expr()
        if subject is None or subject.variant_name() != "IsNotNull" or len(branches) != 1 or variant.else_expr():
            return self._opaque(expression)
        column = self._column(subject.rex_call_operands()[0])
        if column is None or any(part.canonical_name() != "Boolean(true)" for part in branches[0]):
            return self._opaque(expression)
        return Or(operands=(Not(operand=IsNull(column=column)), Constant(value=None)))

    def _outcome(self, kind: str, side: RawExpr) -> Predicate | None:
        negated, column = "Not" in kind, self._column(side)
        if kind in {"IsNull", "IsNotNull"} and not _is_test(side):
            test: Predicate | None = IsNull(column=column) if column is not None else None
        else:
            test = Is(operand=self.node(side), outcome=_OUTCOMES[kind])
        return Not(operand=test) if test is not None and negated else test

    def _opaque(self, expression: RawExpr) -> Predicate:
        rendering = render(expression)
        return Opaque(template=rendering.template(), sources=tuple(rendering.sources), portable=rendering.portable)

    def _type(self, column: Column) -> pa.DataType:
        if isinstance(column, str):
            return self.schema.field(column).type
        return column.value_type({field.name: field.type for field in self.schema})

    @staticmethod
    def _column(expression: RawExpr) -> Column | None:
        """The column that an expression is, or the partition function of columns."""
        kind = expression.variant_name()
        if kind == "Column":
            return str(expression.to_variant().name())
        transform = bound_transform(expression.rex_call_operator()) if kind == "ScalarFunction" else None
        if transform is None:
            return None
        names = [_Tree._column(operand) for operand in expression.rex_call_operands()]
        plain = tuple(name for name in names if isinstance(name, str))
        return Term(transform=transform, columns=plain) if len(plain) == len(names) else None


def _is_test(expression: RawExpr) -> bool:
    """Whether an expression is a filter in itself, so that NULL is one of its three outcomes."""
    kind = expression.variant_name()
    if kind == "BinaryExpr":
        operator = expression.rex_call_operator()
        return operator in {"AND", "OR", "!=", *_OPPOSITE} or "DISTINCT" in operator
    return kind in {"Not", "InList", "Like", *_OUTCOMES}


def _flat(operands: list[RawExpr], operator: str) -> list[RawExpr]:
    """The operands of a chain of ANDs or ORs, however deep: without recursion, since such chains get long."""
    flat: list[RawExpr] = []
    waiting = list(reversed(operands))
    while waiting:
        operand = waiting.pop()
        if operand.variant_name() == "BinaryExpr" and operand.rex_call_operator() == operator:
            waiting.extend(reversed(operand.rex_call_operands()))
        else:
            flat.append(operand)
    return flat


def _negated(predicate: Predicate) -> Predicate:
    if isinstance(predicate, Comparison):
        return Comparison(
            column=predicate.column,
            operator=_OPPOSITE[predicate.operator],
            literal=predicate.literal,
            widened=predicate.widened,
        )
    return Not(operand=predicate)


def _like_prefix(pattern: str, escape: str) -> tuple[str, str]:
    """A LIKE pattern as the text it must begin with, and what follows from the first wildcard on."""
    prefix: list[str] = []
    position = 0
    while position < len(pattern) and pattern[position] not in "%_":
        if pattern[position] == escape and position + 1 < len(pattern):
            position += 1
        prefix.append(pattern[position])
        position += 1
    rest = pattern[position:]
    return "".join(prefix), "%" if rest and set(rest) == {"%"} else rest
