"""The types in which Arrow reads text and JSON whose values are then cast to those of a table's columns."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

NOT_WHOLE = "Failed to convert JSON to "
"""How Arrow's error about a number begins that does not fit a type."""
_WHOLE = pa.decimal128(38, 18)
"""Holds every integer of 64 bits, and shows which number of a file is none."""


def as_json(columns: pa.Schema) -> pa.Schema:
    """Columns in types that Arrow reads from JSON: it knows no dates, vectors or dictionaries."""
    return pa.schema([each.with_type(_mapped(each.type, _readable)) for each in columns])


def with_decimals(kind: pa.DataType) -> pa.DataType:
    """A type with decimals in place of its integers.

    >>> with_decimals(pa.list_(pa.int32())).value_type
    Decimal128Type(decimal128(38, 18))
    """
    return _mapped(kind, lambda inner: _WHOLE if pa.types.is_integer(inner) else inner)


def _readable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date(kind):
        return pa.timestamp("s")
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _mapped(kind: pa.DataType, inner: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type of the same shape with other types inside; a vector becomes a list."""
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return pa.struct([each.with_type(_mapped(each.type, inner)) for each in fields])
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_mapped(kind.value_type, inner)))
    return inner(kind)
