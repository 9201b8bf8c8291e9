"""Join keys of two columns: the type in which both can be compared without loss, and whether equal ones hash alike."""

from __future__ import annotations

import pyarrow as pa

from lancepart.model.values import logical_type

_UNITS = ("s", "ms", "us", "ns")


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both and distinguishes them as they do; None if there is none.

    >>> common_type(pa.int32(), pa.uint32()), common_type(pa.int64(), pa.float64())
    (DataType(int64), None)
    """
    left, right = logical_type(left), logical_type(right)
    kind = _kind(left)
    if kind is None or kind != _kind(right):
        return None
    if left == right:
        return _plain(left, kind)
    match kind:
        case "integer":
            return _integers(left, right)
        case "float":
            return max(left, right, key=lambda each: each.bit_width)
        case "decimal":
            return _decimals(left, right)
        case "zoned timestamp":
            return pa.timestamp(_finer(left, right), "UTC")
        case "timestamp":
            return pa.timestamp(_finer(left, right))
        case "duration":
            return pa.duration(_finer(left, right))
        case "time":
            unit = _finer(left, right)
            return pa.time64(unit) if unit in ("us", "ns") else pa.time32(unit)
        case "date":
            return pa.date64()
        case _:
            return _plain(left, kind)


def hash_alike(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether equal values of two types that can be compared fall into the same bucket."""
    left, right = logical_type(left), logical_type(right)
    return not pa.types.is_decimal(left) or left.scale == right.scale


def _kind(data_type: pa.DataType) -> str | None:
    """What values are, whatever their width; only values of one kind are ever equal."""
    types = pa.types
    if types.is_timestamp(data_type):
        return "timestamp" if data_type.tz is None else "zoned timestamp"
    for name, tests in {
        "boolean": (types.is_boolean,),
        "integer": (types.is_integer,),
        "float": (types.is_floating,),
        "decimal": (types.is_decimal,),
        "date": (types.is_date,),
        "time": (types.is_time,),
        "duration": (types.is_duration,),
        "text": (types.is_string, types.is_large_string),
        "bytes": (types.is_binary, types.is_large_binary, types.is_fixed_size_binary),
    }.items():
        if any(test(data_type) for test in tests):
            return name
    return None


def _plain(data_type: pa.DataType, kind: str) -> pa.DataType:
    if kind == "text":
        return pa.large_string() if pa.types.is_large_string(data_type) else pa.string()
    if kind == "bytes":
        return pa.large_binary() if pa.types.is_large_binary(data_type) else pa.binary()
    return data_type


def _integers(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    wide = max(left.bit_width, right.bit_width)
    if pa.types.is_signed_integer(left) == pa.types.is_signed_integer(right):
        return left if left.bit_width == wide else right
    unsigned = left if pa.types.is_unsigned_integer(left) else right
    needed = max(wide, 2 * unsigned.bit_width)
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(needed, pa.decimal128(20, 0))


def _decimals(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    scale = max(left.scale, right.scale)
    digits = scale + max(left.precision - left.scale, right.precision - right.scale)
    if digits > 76:
        return None
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


def _finer(left: pa.DataType, right: pa.DataType) -> str:
    units: tuple[str, str] = (left.unit, right.unit)
    return max(units, key=_UNITS.index)
