"""From SQL to the filter tree, by DataFusion's own parser, type coercion and constant folding."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa
from datafusion import SessionContext

from lancepart.errors import InvalidInputError, reraise_interrupt
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
from lancepart.model.rendering import literal_of, render
from lancepart.model.widening import widening

_TABLE = "filtered_rows"
_RESHAPING = ("common_sub_expression_eliminate", "extract_leaf_expressions", "push_down_leaf_projections")
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


def parse(sql: str, schema: Any) -> Predicate:
    """Read a filter over a table's schema, with every literal in the type that it is compared in.

    >>> parse("day >= '2025-12-10' AND NOT (n < 5)", pa.schema([("day", pa.date32()), ("n", pa.int32())])).to_sql()
    "((`day` >= DATE '2025-12-10') AND (`n` >= 5))"
    """
    try:
        table = _context(schema).table(_TABLE)
        plan = table.filter(table.parse_sql_expr(sql))
        if "<subquery>" in plan.logical_plan().display_indent():
            raise InvalidInputError("subqueries are not supported")
        return _from_plan(plan.optimized_logical_plan(), _Tree(schema))
    except Exception as error:
        reraise_interrupt(error)
        raise InvalidInputError(f"invalid filter {sql!r}: {_reason(error)}") from error


@lru_cache(maxsize=64)
def _context(schema: Any) -> SessionContext:
    context = SessionContext()
    for rule in _RESHAPING:
        context.remove_optimizer_rule(rule)
    context.register_record_batches(_TABLE, [[pa.RecordBatch.from_pylist([], schema=schema)]])
    return context


def _reason(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line and line != "caused by"]
    text = lines[-1] if lines else type(error).__name__
    return text.removeprefix("DataFusion error: ").replace(f"{_TABLE}.", "")


def _from_plan(plan: Any, tree: _Tree) -> Predicate:
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
                return _all(kinds) if kinds else Constant(value=True)
            case other:
                raise InvalidInputError(f"it needs a {other}, which filters do not have")
        (plan,) = plan.inputs()


def _all(operands: list[Predicate]) -> Predicate:
    return operands[0] if len(operands) == 1 else And(operands=tuple(operands))


class _Tree:
    """Builds the nodes of one filter."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def node(self, expression: Any) -> Predicate:
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

    def _binary(self, expression: Any, operands: list[Any]) -> Predicate:
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

    def _comparison(self, side: Any, operator: str, literal: Any) -> Predicate | None:
        if operator not in _OPPOSITE:
            return None
        if not literal.is_valid:
            return Constant(value=None)
        widened = side.variant_name() == "Cast"
        column = self._column(side.rex_call_operands()[0] if widened else side)
        if column is None or (widened and widening(self.schema.field(column).type, literal.type) is None):
            return None
        return Comparison(column=column, operator=operator, literal=literal, widened=widened)

    def _distinct(self, side: Any, literal: Any, *, negated: bool) -> Predicate | None:
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

    def _in_list(self, expression: Any, operands: list[Any]) -> Predicate:
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

    def _like(self, expression: Any, operands: list[Any]) -> Predicate:
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

    def _case(self, expression: Any) -> Predicate:
        """``LIKE '%'`` arrives as ``CASE column IS NOT NULL WHEN true THEN true END``: TRUE or NULL."""
        variant = expression.to_variant()
        branches, subject = variant.when_then_expr(), variant.expr()
        if subject is None or subject.variant_name() != "IsNotNull" or len(branches) != 1 or variant.else_expr():
            return self._opaque(expression)
        column = self._column(subject.rex_call_operands()[0])
        if column is None or any(part.canonical_name() != "Boolean(true)" for part in branches[0]):
            return self._opaque(expression)
        return Or(operands=(Not(operand=IsNull(column=column)), Constant(value=None)))

    def _outcome(self, kind: str, side: Any) -> Predicate | None:
        negated, column = "Not" in kind, self._column(side)
        if kind in {"IsNull", "IsNotNull"} and not _is_test(side):
            test: Predicate | None = IsNull(column=column) if column is not None else None
        else:
            test = Is(operand=self.node(side), outcome=_OUTCOMES[kind])
        return Not(operand=test) if test is not None and negated else test

    def _opaque(self, expression: Any) -> Predicate:
        rendering = render(expression)
        return Opaque(template=rendering.template(), sources=tuple(rendering.sources), portable=rendering.portable)

    @staticmethod
    def _column(expression: Any) -> str | None:
        return expression.to_variant().name() if expression.variant_name() == "Column" else None


def _is_test(expression: Any) -> bool:
    """Whether an expression is a filter in itself, so that NULL is one of its three outcomes."""
    kind = expression.variant_name()
    if kind == "BinaryExpr":
        operator = expression.rex_call_operator()
        return operator in {"AND", "OR", "!=", *_OPPOSITE} or "DISTINCT" in operator
    return kind in {"Not", "InList", "Like", *_OUTCOMES}


def _flat(operands: list[Any], operator: str) -> list[Any]:
    """The operands of a chain of ANDs or ORs, however deep: without recursion, since such chains get long."""
    flat: list[Any] = []
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
