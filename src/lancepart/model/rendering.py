"""DataFusion expressions back to SQL that Lance's filter parser and DataFusion both understand."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
from datafusion.expr import Case

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import RawExpr
from lancepart.model.quoting import quote_identifier, quote_literal, quote_string
from lancepart.model.terms import bound_transform

_POSTFIX = {
    "IsNull": "IS NULL",
    "IsNotNull": "IS NOT NULL",
    "IsTrue": "IS TRUE",
    "IsNotTrue": "IS NOT TRUE",
    "IsFalse": "IS FALSE",
    "IsNotFalse": "IS NOT FALSE",
    "IsUnknown": "IS NULL",
    "IsNotUnknown": "IS NOT NULL",
}
MOST_NESTED = 60
_LANCE_OPERATORS = {"AND", "OR", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||"}
_CAST = re.compile(r" AS (?P<type>[^()]*(\(.*\))?)\)$", re.DOTALL)
_SHORT_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "µs": "Microsecond", "ns": "Nanosecond"}


@dataclass(kw_only=True)
class Rendering:
    """SQL in the making: text with marks for columns, which columns those are, and whether Lance can read it."""

    sql: str = ""
    sources: list[str] = field(default_factory=list)
    portable: bool = True

    def mark(self, column: str) -> str:
        """The placeholder of a column."""
        if column not in self.sources:
            self.sources.append(column)
        return f"\ue000{self.sources.index(column)}\ue001"

    def template(self) -> str:
        """The text for ``str.format``, with every brace that is not a placeholder doubled."""
        escaped = self.sql.replace("{", "{{").replace("}", "}}")
        return re.sub("\ue000(\\d+)\ue001", r"{\1}", escaped)


def render(expression: RawExpr) -> Rendering:
    """One expression as SQL; what has no spelling is refused."""
    rendering = Rendering()
    rendering.sql = _text(expression, rendering, 0)
    return rendering


def literal_of(expression: RawExpr) -> pa.Scalar:
    """A literal expression's value as an Arrow scalar."""
    value = expression.python_value()
    return value if isinstance(value, pa.Scalar) else pa.scalar(value)


def _text(expression: RawExpr, out: Rendering, depth: int) -> str:
    if depth > MOST_NESTED:
        raise InvalidInputError(f"an expression in it is nested more than {MOST_NESTED} levels deep")
    kind = expression.variant_name()
    if kind == "Literal":
        return quote_literal(literal_of(expression))
    if kind == "Column":
        return out.mark(expression.to_variant().name())
    if kind == "Case":
        return _case(expression.to_variant(), out, depth + 1)
    if kind in ("AggregateFunction", "WindowFunction"):
        raise InvalidInputError(
            "a filter tests one row at a time, without aggregates and windows: for whole queries there is lp.sql"
        )
    operands = [_text(operand, out, depth + 1) for operand in expression.rex_call_operands()]
    if kind in _POSTFIX:
        return f"({operands[0]} {_POSTFIX[kind]})"
    return _call(kind, expression, operands, out)


def _call(kind: str, expression: RawExpr, operands: list[str], out: Rendering) -> str:
    match kind:
        case "BinaryExpr":
            operator = expression.rex_call_operator()
            out.portable &= operator in _LANCE_OPERATORS or "DISTINCT" in operator
            return f"({operands[0]} {operator} {operands[1]})"
        case "Not":
            return f"(NOT {operands[0]})"
        case "Negative":
            return f"(- {operands[0]})"
        case "Alias":
            return operands[0]
        case "InList":
            negation = "NOT " if expression.to_variant().negated() else ""
            return f"({operands[0]} {negation}IN ({', '.join(operands[1:])}))"
        case "Like":
            return _like(expression, operands)
        case "Cast":
            return f"arrow_cast({operands[0]}, {quote_string(_cast_type(expression))})"
        case "TryCast":
            return f"arrow_try_cast({operands[0]}, {quote_string(_cast_type(expression))})"
        case "ScalarFunction":
            return _function(expression.rex_call_operator(), operands, out)
    raise InvalidInputError(f"{expression.canonical_name()} is not supported in a filter")


def _function(name: str, operands: list[str], out: Rendering) -> str:
    """A call; a field inside a field is accessed step by step, since Lance takes the type of the first for both."""
    transform = bound_transform(name)
    if transform is not None:
        out.portable = False
        return transform.call(operands)
    if name == "get_field":
        return reduce(lambda inner, key: f"`get_field`({inner}, {key})", operands)
    return f"{quote_identifier(name)}({', '.join(operands)})"


def _like(expression: RawExpr, operands: list[str]) -> str:
    escape = expression.to_variant().escape_char()
    if escape not in {None, "\\"}:
        raise InvalidInputError("LIKE escapes by backslash only")
    return f"({operands[0]} {expression.rex_call_operator().upper()} {operands[1]})"


def _case(variant: Case, out: Rendering, depth: int) -> str:
    coalesced = _coalesced(variant)
    if coalesced:
        return f"coalesce({', '.join(_text(item, out, depth) for item in coalesced)})"
    out.portable = False
    subject = variant.expr()
    parts = ["CASE", *([] if subject is None else [_text(subject, out, depth)])]
    for when, then in variant.when_then_expr():
        parts.append(f"WHEN {_text(when, out, depth)} THEN {_text(then, out, depth)}")
    otherwise = variant.else_expr()
    if otherwise is not None:
        parts.append(f"ELSE {_text(otherwise, out, depth)}")
    return "(" + " ".join(parts) + " END)"


def _coalesced(variant: Case) -> list[RawExpr]:
    """What ``coalesce`` chose from, which DataFusion writes as a CASE that Lance does not read; else nothing."""
    branches, otherwise = variant.when_then_expr(), variant.else_expr()
    if variant.expr() is not None or otherwise is None:
        return []
    for when, then in branches:
        tested = when.rex_call_operands() if when.variant_name() == "IsNotNull" else []
        if [item.canonical_name() for item in tested] != [then.canonical_name()]:
            return []
    return [*(then for _, then in branches), otherwise]


def _cast_type(expression: RawExpr) -> str:
    """The type of a cast as ``arrow_cast`` spells it, read off DataFusion's own rendering of the expression."""
    found = _CAST.search(expression.canonical_name())
    if found is None:
        raise InvalidInputError(f"{expression.canonical_name()} is not supported in a filter")
    name = found["type"]
    timestamp = re.fullmatch(r'Timestamp\((\w+)(?:, "(.*)")?\)', name)
    if timestamp is None:
        return name
    zone = "None" if timestamp[2] is None else f'Some("{timestamp[2]}")'
    return f"Timestamp({_SHORT_UNITS[timestamp[1]]}, {zone})"
