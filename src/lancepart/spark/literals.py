"""Spark's literals in the type of the column that they are compared with."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import pyarrow as pa

_EXACT = {pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.string(), pa.large_string(), pa.string_view(), pa.date32()}


def is_exact(kind: pa.DataType) -> bool:
    """Whether comparing columns of this type means the same here as in Spark, for every literal that Spark can have.

    Floats do not (NaN, and a zero with a sign), nor does anything that Spark holds in another type. Decimals do with
    literals of the column's own type.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return False
    return kind in _EXACT or _is_micros(kind) or pa.types.is_decimal128(kind)


def _is_micros(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and str(kind.unit) == "us"


def literal(text: str, kind: pa.DataType) -> pa.Scalar | None:
    """The value that Spark spells so, as a scalar of an Arrow type; ``None`` where there is no such value.

    >>> literal("20000", pa.date32()), literal("300", pa.uint8())
    (<pyarrow.Date32Scalar: datetime.date(2024, 10, 4)>, None)
    """
    types = pa.types
    try:
        if types.is_dictionary(kind):
            return _encoded(literal(text, kind.value_type), kind)
        if types.is_integer(kind):
            number = Decimal(text)
            return pa.scalar(int(number), kind) if number == int(number) else None
        if types.is_floating(kind):
            return pa.scalar(float(text), kind)
        if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            return pa.scalar(text, kind)
        if types.is_date32(kind):
            return pa.scalar(int(text), pa.int32()).cast(kind)
        if types.is_timestamp(kind):
            return _timestamp(int(text), kind)
        if types.is_decimal128(kind):
            return pa.scalar(Decimal(text), kind)
        if types.is_binary(kind) or types.is_large_binary(kind):
            return pa.scalar(bytes.fromhex(text), kind)
    except (pa.ArrowException, OverflowError, ValueError, InvalidOperation):
        return None
    return None


def _encoded(value: pa.Scalar | None, kind: pa.DataType) -> pa.Scalar | None:
    """A value as one of a dictionary's; a float stays what it is, since it is compared in ways of its own."""
    if value is None or pa.types.is_floating(kind.value_type):
        return value
    whole = pa.DictionaryArray.from_arrays(pa.array([0], kind.index_type), pa.array([value], kind.value_type))
    return whole.cast(kind)[0] if whole.type != kind else whole[0]


def _timestamp(micros: int, kind: pa.DataType) -> pa.Scalar | None:
    """A moment in a column's own unit; between two ticks of a coarser one there is none."""
    if kind.unit == "ns":
        return pa.scalar(micros * 1_000, pa.int64()).cast(kind)
    ticks, rest = divmod(micros, {"s": 1_000_000, "ms": 1_000, "us": 1}[kind.unit])
    return None if rest else pa.scalar(ticks, pa.int64()).cast(kind)
