"""Names and values as SQL text that both DataFusion and Lance's own filter parser read back exactly."""

from __future__ import annotations

import math
from datetime import date, timedelta

import pyarrow as pa

from lancepart.errors import InvalidInputError

_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
_PLAIN = {
    pa.bool_(): "Boolean",
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.uint8(): "UInt8",
    pa.uint16(): "UInt16",
    pa.uint32(): "UInt32",
    pa.uint64(): "UInt64",
    pa.float16(): "Float16",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.date32(): "Date32",
    pa.date64(): "Date64",
    pa.string(): "Utf8",
    pa.large_string(): "LargeUtf8",
    pa.string_view(): "Utf8View",
    pa.binary(): "Binary",
    pa.large_binary(): "LargeBinary",
    pa.binary_view(): "BinaryView",
}
_EPOCH = date(1970, 1, 1)


def quote_identifier(name: str) -> str:
    """A column's name in backticks: in a Lance filter double quotes make a string.

    >>> quote_identifier("Sales in €")
    '`Sales in €`'
    """
    return "`" + name.replace("`", "``") + "`"


def quote_string(text: str) -> str:
    """A string literal; nothing but the quote itself is special.

    >>> quote_string("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def arrow_type_name(data_type: pa.DataType) -> str:
    """The spelling of an Arrow type that ``arrow_cast`` understands.

    >>> arrow_type_name(pa.timestamp("us", "UTC"))
    'Timestamp(Microsecond, Some("UTC"))'
    """
    types = pa.types
    if data_type in _PLAIN:
        return _PLAIN[data_type]
    if types.is_timestamp(data_type):
        zone = "None" if data_type.tz is None else f'Some("{data_type.tz}")'
        return f"Timestamp({_UNITS[data_type.unit]}, {zone})"
    if types.is_decimal(data_type):
        return f"Decimal{data_type.bit_width}({data_type.precision}, {data_type.scale})"
    if types.is_time(data_type):
        return f"Time{data_type.bit_width}({_UNITS[data_type.unit]})"
    if types.is_duration(data_type):
        return f"Duration({_UNITS[data_type.unit]})"
    if types.is_fixed_size_binary(data_type):
        return f"FixedSizeBinary({data_type.byte_width})"
    raise InvalidInputError(f"a value of type {data_type} has no SQL spelling")


def quote_literal(value: pa.Scalar) -> str:
    """One Arrow scalar as SQL that gives back the same value of the same type.

    >>> quote_literal(pa.scalar(date(2025, 12, 10)))
    "DATE '2025-12-10'"
    >>> quote_literal(pa.scalar(5, pa.timestamp("us", "UTC")))
    'arrow_cast(5, \\'Timestamp(Microsecond, Some("UTC"))\\')'
    >>> quote_literal(pa.scalar(["a", None]))
    "make_array('a', NULL)"
    """
    types, kind = pa.types, value.type
    if types.is_dictionary(kind):
        return quote_literal(value.value if value.is_valid else pa.scalar(None, kind.value_type))
    if not value.is_valid:
        return "NULL"
    if types.is_boolean(kind):
        return "true" if value.as_py() else "false"
    if types.is_integer(kind):
        return _integer(value.as_py())
    if types.is_floating(kind):
        return _floating(float(value.as_py()), kind)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return quote_string(value.as_py())
    if types.is_decimal(kind):
        return f"arrow_cast('{value.as_py():f}', '{arrow_type_name(kind)}')"
    if types.is_date32(kind):
        return _date(value.value)
    if types.is_fixed_size_binary(kind):
        return f"arrow_cast(X'{value.as_py().hex()}', '{arrow_type_name(kind)}')"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return f"X'{value.as_py().hex()}'"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return f"make_array({', '.join(map(quote_literal, value))})"
    name = arrow_type_name(kind)
    number = f"arrow_cast({value.value}, 'Int32')" if kind.bit_width == 32 else _integer(value.value)
    return f"arrow_cast({number}, '{name}')"


def _integer(number: int) -> str:
    return str(number) if number > -(2**63) else "arrow_cast('-9223372036854775808', 'Int64')"


def _floating(number: float, kind: pa.DataType) -> str:
    name = {16: None, 32: "FLOAT", 64: "DOUBLE"}[kind.bit_width]
    if not math.isfinite(number):
        text = f"'{number}'"
    elif name == "DOUBLE":
        return repr(number)
    else:
        text = repr(number)
    return f"CAST({text} AS {name})" if name else f"arrow_cast({text}, 'Float16')"


def _date(days: int) -> str:
    try:
        return f"DATE '{(_EPOCH + timedelta(days=days)).isoformat()}'"
    except OverflowError:
        return f"arrow_cast({days}, 'Date32')"
