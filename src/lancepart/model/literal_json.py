"""Literals of filters as JSON: the Arrow type and the exact value, whatever its precision, zone or bits.

Floats are the hexadecimal digits of their bits, since JSON has no NaN and a zero loses its sign in many readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby

import numpy as np
import pyarrow as pa

from lancepart.model.aliases import JsonMapping, JsonObject, Value
from lancepart.model.arrow_json import type_from_json, type_to_json

_BITS = {16: np.uint16, 32: np.uint32, 64: np.uint64}
_FLOATS = {16: np.float16, 32: np.float32, 64: np.float64}


def literals_to_json(values: Sequence[pa.Scalar]) -> list[JsonObject]:
    """Literals in their order, those that follow each other and have one type together.

    >>> literals_to_json([pa.scalar(1, pa.int8()), pa.scalar(2, pa.int8())])
    [{'type': {'type': {'name': 'int', 'bitWidth': 8, 'isSigned': True}, 'children': []}, 'values': [1, 2]}]
    """
    runs = groupby(values, key=lambda value: value.type)
    return [{"type": type_to_json(kind), "values": [_spelled(value) for value in run]} for kind, run in runs]


def literals_from_json(given: Sequence[JsonMapping]) -> tuple[pa.Scalar, ...]:
    """The literals; a value that its type does not have is refused with a ``ValueError``."""
    found: list[pa.Scalar] = []
    for run in given:
        kind = type_from_json(run["type"])
        found += _one_by_one(run["values"], kind) if _is_composed(kind) else list(_array(run["values"], kind))
    return tuple(found)


def _spelled(value: pa.Scalar) -> Value:
    types, kind = pa.types, value.type
    if not value.is_valid:
        return None
    if types.is_dictionary(kind):
        return _spelled(value.value)
    if types.is_floating(kind):
        return f"{int(np.frombuffer(pa.array([value], kind).buffers()[1], _BITS[kind.bit_width])[0]):x}"
    if types.is_decimal(kind):
        return str(value.as_py())
    if _is_binary(kind):
        return value.as_py().hex()
    if types.is_temporal(kind):
        return value.value
    if _is_list(kind):
        return [_spelled(item) for item in value]
    return value.as_py()


def _array(given: Sequence[Value], kind: pa.DataType) -> pa.Array:
    """Values of a type that is not composed of others."""
    types = pa.types
    if types.is_floating(kind):
        bits = [int(_checked(each, str), 16) if each is not None else 0 for each in given]
        values = np.array(bits, _BITS[kind.bit_width]).view(_FLOATS[kind.bit_width])
        return pa.array(values, kind, mask=np.array([each is None for each in given], bool), from_pandas=False)
    if types.is_decimal(kind):
        return pa.array([None if each is None else Decimal(_checked(each, str)) for each in given], kind)
    if _is_binary(kind):
        return pa.array([None if each is None else bytes.fromhex(_checked(each, str)) for each in given], kind)
    if types.is_temporal(kind):
        ticks = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array([None if each is None else _checked(each, int) for each in given], ticks).view(kind)
    wanted = bool if types.is_boolean(kind) else int if types.is_integer(kind) else str
    return pa.array([None if each is None else _checked(each, wanted) for each in given], kind)


def _one_by_one(given: Sequence[Value], kind: pa.DataType) -> list[pa.Scalar]:
    """Dictionary values and lists."""
    if pa.types.is_dictionary(kind):
        return [_encoded(value, kind) for value in _array(given, kind.value_type)]
    return [_list(each, kind) for each in given]


def _encoded(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    index = pa.array([0 if value.is_valid else None], kind.index_type)
    return pa.DictionaryArray.from_arrays(index, pa.array([value], kind.value_type), ordered=kind.ordered)[0]


def _list(given: Value, kind: pa.DataType) -> pa.Scalar:
    if given is None:
        return pa.array([None], kind)[0]
    items = literals_from_json([{"type": type_to_json(kind.value_type), "values": _checked(given, list)}])
    return pa.array([list(items)], kind)[0]


def _checked(value: Value, wanted: type) -> Value:
    if type(value) is not wanted:
        raise ValueError(f"a literal is {value!r} where {wanted.__name__} is expected")
    return value


def _is_composed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind) or _is_list(kind))


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_binary(kind: pa.DataType) -> bool:
    types = pa.types
    plain = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return bool(plain or types.is_fixed_size_binary(kind))
