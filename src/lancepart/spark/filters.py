"""Spark's filters as ours: never stricter than in Spark, since rows that are dropped here are lost.

Negations are pushed inward first, so that only the rows for which a part is TRUE count, and widening one part widens
the whole filter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from lancepart.errors import InternalError, UnsupportedOperationError
from lancepart.model.aliases import JsonMapping
from lancepart.model.predicate import (
    And,
    BooleanColumn,
    Comparison,
    Constant,
    In,
    IsNull,
    Not,
    Opaque,
    Or,
    Predicate,
    StartsWith,
)
from lancepart.model.predicate_chains import all_of, any_of
from lancepart.spark.literals import literal

Tree: TypeAlias = JsonMapping

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "<=>": "<=>"}
_NANOSECONDS = 1_000


def predicate_of(handled: Sequence[Tree], pushed: Sequence[Tree], schema: pa.Schema) -> Predicate | None:
    """All filters together: those that Spark does not apply again, and as much of the others as can be expressed."""
    converter, exact = _Converter(schema), _Converter(schema, exact=True)
    parts = [exact.convert(tree, negated=False) for tree in handled]
    if None in parts:
        raise InternalError("a filter that was accepted as pushed down can't be evaluated")
    parts += [converter.convert(tree, negated=False) for tree in pushed]
    kept = tuple(part for part in parts if part is not None)
    return None if not kept else all_of(kept)


def unused_filters(pushed: Sequence[Tree], schema: pa.Schema) -> tuple[int, ...]:
    """Which filters ``predicate_of`` leaves to Spark alone, by their positions."""
    converter = _Converter(schema)
    return tuple(at for at, tree in enumerate(pushed) if converter.convert(tree, negated=False) is None)


def exact_predicate_of(trees: Sequence[Tree], schema: pa.Schema) -> Predicate:
    """All filters together, matching exactly the rows that they match in Spark: for rows that are to be deleted."""
    converter = _Converter(schema, exact=True)
    parts = [converter.convert(tree, negated=False) for tree in trees]
    kept = tuple(part for part in parts if part is not None)
    if len(kept) < len(parts):
        raise UnsupportedOperationError(
            "the rows to delete can't be found exactly by this condition, so nothing was changed: compare columns with "
            "literals (floats not), or use DELETE and append, or the option replaceWhere of df.write"
        )
    return all_of(kept) if kept else Constant(value=True)


class _Converter:
    """Filters over one schema; ``None`` is one that can't be expressed or, where ``exact``, only with more rows."""

    def __init__(self, schema: pa.Schema, *, exact: bool = False) -> None:
        self._types = {field.name: field.type for field in schema}
        self._exact = exact

    def convert(self, tree: Tree, *, negated: bool) -> Predicate | None:
        """A filter or, where ``negated``, its negation."""
        name, children = tree.get("name"), tree.get("children", ())
        match name:
            case "AND" | "OR":
                parts = [self.convert(child, negated=negated) for child in children]
                return self._both(parts) if (name == "AND") != negated else _either(parts)
            case "NOT":
                return self.convert(children[0], negated=not negated)
            case "ALWAYS_TRUE" | "ALWAYS_FALSE":
                return Constant(value=(name == "ALWAYS_TRUE") != negated)
            case "IS_NULL" | "IS_NOT_NULL":
                column = self._column(children[0])
                is_null = (name == "IS_NULL") != negated
                return None if column is None else _null(column, expected=is_null)
            case "BOOLEAN_EXPRESSION":
                return self._boolean(children[0], expected=not negated)
            case "STARTS_WITH":
                return self._starts_with(children, negated=negated)
            case "IN":
                return self._in(children, negated=negated)
            case _ if name in _MIRRORED:
                return self._comparison(name, children, negated=negated)
            case _:
                return self._boolean(tree, expected=not negated)

    def _both(self, parts: Sequence[Predicate | None]) -> Predicate | None:
        kept = tuple(part for part in parts if part is not None)
        return None if not kept or (self._exact and len(kept) < len(parts)) else all_of(kept)

    def _column(self, tree: Tree) -> str | None:
        path = tree.get("column", ())
        return path[0] if len(path) == 1 and path[0] in self._types else None

    def _boolean(self, tree: Tree, *, expected: bool) -> Predicate | None:
        column = self._column(tree)
        if column is None or not pa.types.is_boolean(self._types[column]):
            return None
        plain = BooleanColumn(column=column)
        return plain if expected else Not(operand=plain)

    def _comparison(self, operator: str, children: Sequence[Tree], *, negated: bool) -> Predicate | None:
        side, other = children
        if "value" in side:
            side, other, operator = other, side, _MIRRORED[operator]
        column = self._column(side)
        if column is None or "value" not in other:
            return None
        if operator == "<=>":
            return self._same(column, other["value"], negated=negated)
        if other["value"] is None:
            return Constant(value=None)
        return self._compared(column, _OPPOSITE[operator] if negated else operator, other["value"])

    def _same(self, column: str, text: str | None, *, negated: bool) -> Predicate | None:
        """``<=>``, which treats NULL as a value."""
        if text is None:
            return _null(column, expected=not negated)
        found = self._compared(column, "<>" if negated else "=", text)
        return _either([found, _null(column, expected=True)]) if negated else found

    def _compared(self, column: str, operator: str, text: str) -> Predicate | None:
        kind = self._types[column]
        if pa.types.is_boolean(kind):
            return self._truth(column, operator, text)
        value = literal(text, kind)
        if value is None:
            return None
        plain = Comparison(column=column, operator=operator, literal=value)
        if pa.types.is_floating(value.type):
            return None if self._exact else _float(plain)
        if pa.types.is_timestamp(kind) and kind.unit == "ns":
            return _nanoseconds(plain)
        return plain

    def _truth(self, column: str, operator: str, text: str) -> Predicate | None:
        if operator not in {"=", "<>"}:
            return None
        return self._boolean({"column": [column]}, expected=(text == "true") == (operator == "="))

    def _in(self, children: Sequence[Tree], *, negated: bool) -> Predicate | None:
        column = self._column(children[0])
        texts = [child.get("value") for child in children[1:]]
        if column is None or not all("value" in child for child in children[1:]):
            return None
        if negated and None in texts:
            return Constant(value=None)
        present = [text for text in texts if text is not None]
        kind = self._types[column]
        simple = not (pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_dictionary(kind))
        if simple and not (pa.types.is_timestamp(kind) and kind.unit == "ns"):
            values = tuple(literal(text, kind) for text in present)
            if not values:
                return Constant(value=None)
            return None if None in values else In(column=column, values=values, negated=negated)
        parts = [self._compared(column, "<>" if negated else "=", text) for text in present]
        return (self._both(parts) if negated else _either(parts)) if parts else Constant(value=None)

    def _starts_with(self, children: Sequence[Tree], *, negated: bool) -> Predicate | None:
        column, prefix = self._column(children[0]), children[1].get("value")
        kind = None if column is None else self._types[column]
        if column is None or prefix is None or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            return None
        if not prefix:
            return self._begins_with_nothing(column, negated=negated)
        plain = StartsWith(column=column, prefix=prefix)
        return Not(operand=plain) if negated else plain

    @staticmethod
    def _begins_with_nothing(column: str, *, negated: bool) -> Predicate:
        """What every text does, and NULL neither does nor does not."""
        return Constant(value=None) if negated else _null(column, expected=False)


def _either(parts: Sequence[Predicate | None]) -> Predicate | None:
    kept = tuple(part for part in parts if part is not None)
    if len(kept) < len(parts) or not kept:
        return None
    return any_of(kept)


def _null(column: str, *, expected: bool) -> Predicate:
    plain = IsNull(column=column)
    return plain if expected else Not(operand=plain)


def _float(plain: Comparison) -> Predicate | None:
    """To Spark every NaN is the one largest value, and both zeros are the same."""
    value, column = float(plain.literal.as_py()), str(plain.column)
    if math.isnan(value):
        return _null(column, expected=False)
    if value == 0 and plain.operator in {"=", "<>"}:
        zeros = tuple(replace(plain, literal=pa.scalar(zero, plain.literal.type)) for zero in (0.0, -0.0))
        return Or(operands=zeros) if plain.operator == "=" else _null(column, expected=False)
    if value == 0:
        plain = replace(plain, literal=pa.scalar(-0.0 if plain.operator in {">=", "<"} else 0.0, plain.literal.type))
    if plain.operator in {">", ">="}:
        return Or(operands=(plain, Opaque(template="isnan({0})", sources=(column,))))
    return plain


def _nanoseconds(plain: Comparison) -> Predicate | None:
    """Spark sees the microsecond of a timestamp, which is a thousand of the column's nanoseconds."""
    first = plain.literal
    after = first.value + _NANOSECONDS
    if after >= 2**63:
        return None
    following = pa.scalar(after, pa.int64()).cast(first.type)
    match plain.operator:
        case "=":
            until = replace(plain, operator="<", literal=following)
            return And(operands=(replace(plain, operator=">="), until))
        case "<>":
            beyond = replace(plain, operator=">=", literal=following)
            return Or(operands=(replace(plain, operator="<"), beyond))
        case ">":
            return replace(plain, operator=">=", literal=following)
        case "<=":
            return replace(plain, operator="<", literal=following)
        case _:
            return plain
