"""Filters as JSON that can be checked: the tree itself with typed literals, no SQL to be parsed again.

Only what no node describes, ``Opaque``, is SQL inside. It is parsed once to check that it is one expression over the
columns that there are, since a plan may come from anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pyarrow as pa

from lancepart.errors import InvalidInputError, LanceNamespaceError
from lancepart.model.aliases import JsonMapping, JsonObject, Value
from lancepart.model.literal_json import literals_from_json, literals_to_json
from lancepart.model.parse import parse
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
from lancepart.model.terms import Term
from lancepart.model.transforms import transform_from_json

MOST_DEEP = 250
MOST_NODES = 4_000_000
"""How many levels, and how many tests and literals, a filter may have."""

_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
_TEMPLATE = re.compile(r"(?:[^{}]|\{\{|\}\}|\{\d{1,6}\})*")
_PLACEHOLDER = re.compile(r"(?:\{\{|\}\})|\{(\d+)\}")


def predicate_to_json(predicate: Predicate) -> JsonObject:
    """A filter as JSON; one that is nested deeper than can be read is refused.

    >>> predicate_to_json(Not(operand=IsNull(column="day")))
    {'kind': 'not', 'operand': {'kind': 'is_null', 'column': 'day'}}
    """
    return _spelled(predicate, MOST_DEEP)


def predicate_from_json(given: Value, schema: pa.Schema) -> Predicate:
    """A filter over the columns of a schema; whatever is not one is refused."""
    try:
        return _Reader(schema).node(given, MOST_DEEP)
    except LanceNamespaceError as error:
        raise InvalidInputError(f"not a filter: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, pa.ArrowException) as error:
        raise InvalidInputError(f"not a filter: {error!r}") from error


def _spelled(predicate: Predicate, levels: int) -> JsonObject:
    if not levels:
        raise InvalidInputError(f"the filter is nested more than {MOST_DEEP} levels deep")
    match predicate:
        case And(operands=operands) | Or(operands=operands):
            kind = "and" if isinstance(predicate, And) else "or"
            return {"kind": kind, "operands": [_spelled(each, levels - 1) for each in operands]}
        case Not(operand=operand):
            return {"kind": "not", "operand": _spelled(operand, levels - 1)}
        case Is(operand=operand, outcome=outcome):
            return {"kind": "is", "operand": _spelled(operand, levels - 1), "outcome": outcome}
        case Comparison(column=column, operator=operator, literal=literal, widened=widened):
            spelled: JsonObject = {"kind": "comparison", "column": _column(column), "operator": operator}
            return spelled | {"literal": literals_to_json([literal])[0], "widened": widened}
        case In(column=column, values=values, negated=negated):
            return {"kind": "in", "column": _column(column), "values": literals_to_json(values), "negated": negated}
        case IsNull(column=column):
            return {"kind": "is_null", "column": _column(column)}
        case StartsWith(column=column, prefix=prefix):
            return {"kind": "starts_with", "column": _column(column), "prefix": prefix}
        case BooleanColumn(column=name):
            return {"kind": "boolean", "column": name}
        case Constant(value=value):
            return {"kind": "constant", "value": value}
        case Opaque(template=template, sources=sources, portable=portable):
            return {"kind": "opaque", "template": template, "sources": list(sources), "portable": portable}


def _column(column: Column) -> Value:
    if isinstance(column, str):
        return column
    return {"transform": column.transform.to_json().to_dict(), "columns": list(column.columns)}


class _Reader:
    """Reads one filter, within bounds."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._names = frozenset(schema.names)
        self._left = MOST_NODES
        self._kinds: Mapping[str, Callable[[JsonMapping, int], Predicate]] = {
            "and": lambda given, levels: And(operands=self._operands(given, levels)),
            "or": lambda given, levels: Or(operands=self._operands(given, levels)),
            "not": lambda given, levels: Not(operand=self.node(given["operand"], levels)),
            "is": lambda given, levels: Is(
                operand=self.node(given["operand"], levels), outcome=_optional(given["outcome"])
            ),
            "comparison": self._comparison,
            "in": self._in,
            "is_null": lambda given, _: IsNull(column=self._column(given["column"])),
            "starts_with": lambda given, _: StartsWith(
                column=self._column(given["column"]), prefix=_of(str, given["prefix"])
            ),
            "boolean": self._boolean,
            "constant": lambda given, _: Constant(value=_optional(given["value"])),
            "opaque": self._opaque,
        }

    def node(self, given: Value, levels: int) -> Predicate:
        """One node and all beneath it."""
        if not levels:
            raise ValueError(f"it is nested more than {MOST_DEEP} levels deep")
        self._count(1)
        kind = _of(dict, given)["kind"]
        if kind not in self._kinds:
            raise ValueError(f"it has a part of the kind {kind!r}")
        return self._kinds[kind](given, levels - 1)

    def _count(self, number: int) -> None:
        self._left -= number
        if self._left < 0:
            raise ValueError(f"it has more than {MOST_NODES} tests and values")

    def _operands(self, given: JsonMapping, levels: int) -> tuple[Predicate, ...]:
        operands = _of(list, given["operands"])
        if not operands:
            raise ValueError("an AND or an OR has no operands")
        return tuple(self.node(each, levels) for each in operands)

    def _comparison(self, given: JsonMapping, levels: int) -> Predicate:
        if given["operator"] not in _OPERATORS:
            raise ValueError(f"there is no operator {given['operator']!r}")
        (literal,) = literals_from_json([given["literal"]])
        return Comparison(
            column=self._column(given["column"]),
            operator=given["operator"],
            literal=literal,
            widened=_of(bool, given["widened"]),
        )

    def _in(self, given: JsonMapping, levels: int) -> Predicate:
        runs = _of(list, given["values"])
        self._count(sum(len(_of(list, run["values"])) for run in runs))
        values = literals_from_json(runs)
        if not values:
            raise ValueError("an IN has no values")
        return In(column=self._column(given["column"]), values=values, negated=_of(bool, given["negated"]))

    def _boolean(self, given: JsonMapping, levels: int) -> Predicate:
        column = self._name(given["column"])
        if not pa.types.is_boolean(self._schema.field(column).type):
            raise ValueError(f"column {column!r} is not a boolean")
        return BooleanColumn(column=column)

    def _opaque(self, given: JsonMapping, levels: int) -> Predicate:
        template, sources = _of(str, given["template"]), _of(list, given["sources"])
        numbers = [int(found) for found in _PLACEHOLDER.findall(template) if found]
        if not _TEMPLATE.fullmatch(template) or any(number >= len(sources) for number in numbers):
            raise ValueError("an expression names columns that it does not list")
        found = Opaque(
            template=template, sources=tuple(map(self._name, sources)), portable=_of(bool, given["portable"])
        )
        parse(found.to_sql(), self._schema)
        return found

    def _column(self, given: Value) -> Column:
        if isinstance(given, str):
            return self._name(given)
        transform = transform_from_json(_of(dict, given["transform"]))
        columns = tuple(self._name(name) for name in _of(list, given["columns"]))
        if not transform.is_function or not columns:
            raise ValueError(f"{transform.name} is not a function of columns")
        transform.check([self._schema.field(name).type for name in columns])
        return Term(transform=transform, columns=columns)

    def _name(self, given: Value) -> str:
        if given not in self._names:
            raise ValueError(f"there is no column {given!r}")
        return str(given)


def _of(wanted: type, value: Value) -> Value:
    if type(value) is not wanted:
        raise ValueError(f"{value!r:.100} is given where {wanted.__name__} is expected")
    return value


def _optional(value: Value) -> bool | None:
    return None if value is None else bool(_of(bool, value))
