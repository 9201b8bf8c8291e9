"""Partition values as text: keys that are equal exactly when the values are, and spellings for people."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.model.aliases import Value

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def value_keys(array: pa.Array | pa.ChunkedArray) -> list[str]:
    """For each value a text that is the same for equal values of any width, unit or precision, and for no others.

    >>> value_keys(pa.array([5, None], pa.int32())) == value_keys(pa.array([5, None], pa.int64()))
    True
    >>> value_keys(pa.array(["5", "n", ""]))
    ['s5', 'sn', 's']
    """
    plain = _plain(array)
    return ["n" if value is None else spelled for value, spelled in zip(*_spelled(plain), strict=True)]


def value_texts(array: pa.ChunkedArray) -> list[str | None]:
    """For each value what a person reads, NULL as None.

    >>> from datetime import date
    >>> value_texts(pa.array([date(2025, 12, 10), None]))
    ['2025-12-10', None]
    """
    plain = _plain(array)
    if pa.types.is_binary(plain.type) or pa.types.is_large_binary(plain.type):
        return [None if value is None else value.hex() for value in plain.to_pylist()]
    texts: list[str | None] = pc.cast(plain, pa.string()).to_pylist()
    return texts


def _plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type) or pa.types.is_large_string(array.type):
        return array.cast(pa.string())
    if pa.types.is_binary_view(array.type) or pa.types.is_fixed_size_binary(array.type):
        return array.cast(pa.binary())
    return array


def _spelled(array: pa.Array) -> tuple[list[Value], list[str]]:
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        number = array.cast(pa.int32()) if pa.types.is_time32(kind) else array
        values = number.cast(pa.int64()).to_pylist()
        factor = _NANOSECONDS[kind.unit]
        return values, [f"T{(value or 0) * factor}" for value in values]
    if pa.types.is_date(kind):
        values = array.cast(pa.date32()).cast(pa.int32()).to_pylist()
        return values, [f"D{value}" for value in values]
    values = array.to_pylist()
    return values, [_text(value) for value in values]


def _text(value: Value) -> str:
    match value:
        case bool():
            return f"b{int(value)}"
        case int():
            return f"i{value}"
        case float():
            return f"f{value + 0.0!r}"
        case str():
            return f"s{value}"
        case bytes():
            return f"x{value.hex()}"
        case _:
            return f"d{value.normalize():f}" if value else "d0"
