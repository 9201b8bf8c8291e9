"""Filter trees moved to other columns: under other names, or to a schema that changed since they were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from lancepart.errors import LanceNamespaceError
from lancepart.model.parse import parse
from lancepart.model.predicate import (
    And,
    BooleanColumn,
    Column,
    Comparison,
    In,
    Is,
    IsNull,
    Names,
    Not,
    Opaque,
    Or,
    Predicate,
    StartsWith,
)
from lancepart.model.widening import widening


def renamed(predicate: Predicate, names: Names) -> Predicate:
    """The same filter with columns under other names, which have the same types.

    >>> renamed(Not(operand=IsNull(column="day")), {"day": "date"}).to_sql()
    '(NOT (`date` IS NULL))'
    """
    match predicate:
        case And(operands=operands) | Or(operands=operands):
            return replace(predicate, operands=tuple(renamed(each, names) for each in operands))
        case Not(operand=operand) | Is(operand=operand):
            return replace(predicate, operand=renamed(operand, names))
        case Comparison(column=column) | In(column=column) | IsNull(column=column) | StartsWith(column=column):
            return replace(predicate, column=_renamed(column, names))
        case BooleanColumn(column=name):
            return BooleanColumn(column=names.get(name, name))
        case Opaque(sources=sources):
            return replace(predicate, sources=tuple(names.get(name, name) for name in sources))
        case _:
            return predicate


def _renamed(column: Column, names: Names) -> Column:
    if isinstance(column, str):
        return names.get(column, column)
    return replace(column, columns=tuple(names.get(name, name) for name in column.columns))


def bound(predicate: Predicate, schema: pa.Schema) -> Predicate:
    """A filter over a schema that may have changed since it was read: if so it is read again from its SQL.

    A column that is no longer there, or that the filter does not fit any more, is an error then.
    """
    types = {field.name: field.type for field in schema}
    return predicate if _fits(predicate, types) else parse(predicate.to_sql(), schema)


def _fits(predicate: Predicate, types: Mapping[str, pa.DataType]) -> bool:
    match predicate:
        case And(operands=operands) | Or(operands=operands):
            return all(_fits(each, types) for each in operands)
        case Not(operand=operand) | Is(operand=operand):
            return _fits(operand, types)
        case _ if not predicate.columns() <= types.keys():
            return False
        case Comparison(column=column, literal=literal, widened=widened):
            kind = _type(column, types)
            return kind is not None and (kind == literal.type or (widened and widening(kind, literal.type) is not None))
        case In(column=column, values=values):
            kind = _type(column, types)
            return kind is not None and all(value.type == kind for value in values)
        case StartsWith(column=column):
            kind = _type(column, types)
            return kind in (pa.string(), pa.large_string(), pa.string_view())
        case BooleanColumn(column=name):
            return bool(pa.types.is_boolean(types[name]))
        case _:
            return True


def _type(column: Column, types: Mapping[str, pa.DataType]) -> pa.DataType | None:
    if isinstance(column, str):
        return types[column]
    try:
        column.transform.check([types[name] for name in column.columns])
    except LanceNamespaceError:
        return None
    return column.value_type(types)
