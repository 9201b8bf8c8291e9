"""The order of an Arrow type's values, as keys that have a least, a greatest and a next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Key = Any
"""An ``int`` for numbers and times, a ``str`` for text, ``bytes`` for binary; as an upper bound None for no end."""

LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_COMPARED = {"text": (pa.large_string(), pa.string()), "binary": (pa.large_binary(), pa.binary())}
_FLOATS: dict[int, tuple[type[np.floating], type[np.signedinteger]]] = {
    16: (np.float16, np.int16),
    32: (np.float32, np.int32),
    64: (np.float64, np.int64),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """The order of one type's values; ``low`` is the least key, ``high`` lies above the greatest (None: no end).

    Floats are ordered as DataFusion orders them: negative NaNs, numbers with -0.0 below 0.0, positive NaNs.
    """

    type: pa.DataType
    kind: Literal["integer", "float", "decimal", "text", "binary"]
    low: Key
    high: Key

    def next(self, key: Key) -> Key:
        """The least key above this one: the reason why half-open spans can say everything."""
        if self.kind == "text":
            return key + "\0"
        return key + b"\0" if self.kind == "binary" else key + 1

    def key(self, value: pa.Scalar) -> Key:
        """The key of a non-null Arrow scalar of this type."""
        if pa.types.is_dictionary(value.type):
            value = value.value
        if self.kind == "float":
            return int(self.float_keys(pa.array([value.as_py()], self.type))[0])
        if self.kind == "decimal":
            return unscaled(value.as_py(), self.type.scale)
        if self.kind in {"text", "binary"}:
            return value.as_py()
        return int(value.as_py()) if not hasattr(value, "value") else value.value

    def values(self, keys: Sequence[Key | None]) -> pa.Array:
        """The Arrow array that has these keys."""
        if self.kind == "float":
            floats, ints = _FLOATS[self.type.bit_width]
            bits = np.array([key or 0 for key in keys], dtype=ints)
            flipped = bits ^ ((bits >> (self.type.bit_width - 1)) & np.iinfo(ints).max)
            return pa.array(flipped.view(floats), self.type, mask=np.array([key is None for key in keys], dtype=bool))
        if self.kind == "decimal":
            return _decimals(keys, self.type)
        if self.kind == "integer" and not pa.types.is_integer(self.type):
            return _integers(keys, self.type)
        return pa.array(keys, self.type)

    def float_keys(self, array: pa.Array) -> npt.NDArray[np.signedinteger]:
        """Floats as the integers that sort as they do; NULLs give anything."""
        floats, ints = _FLOATS[self.type.bit_width]
        bits = np.ascontiguousarray(array.to_numpy(zero_copy_only=False).astype(floats, copy=False)).view(ints)
        keys: npt.NDArray[np.signedinteger] = bits ^ ((bits >> (self.type.bit_width - 1)) & np.iinfo(ints).max)
        return keys

    def comparable(self, array: pa.Array) -> pa.Array:
        """An array of this type as one that ``pyarrow.compute`` compares by key."""
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        if self.kind == "float":
            return pa.array(self.float_keys(array), mask=array.is_null().to_numpy(zero_copy_only=False))
        if self.kind == "integer" and not pa.types.is_integer(self.type):
            return to_integers(array)
        known = _COMPARED.get(self.kind, ())
        return array.cast(known[0]) if known and array.type not in known else array

    def bound(self, key: Key) -> pa.Scalar:
        """A key as a scalar to compare with ``comparable`` arrays."""
        if self.kind in {"float", "text", "binary"}:
            return pa.scalar(key)
        return self.comparable(self.values([key]))[0]


def ordering(data_type: pa.DataType) -> Ordering | None:
    """The order of a type's values, or None for types that have none that filters could use.

    >>> ordering(pa.int8()).low, ordering(pa.int8()).high
    (-128, 128)
    """
    return None if isinstance(data_type, pa.BaseExtensionType) else _ordering(data_type)


@lru_cache(maxsize=256)
def _ordering(data_type: pa.DataType) -> Ordering | None:
    types = pa.types
    if types.is_dictionary(data_type):
        return ordering(data_type.value_type)
    if types.is_boolean(data_type):
        return Ordering(type=data_type, kind="integer", low=0, high=2)
    if types.is_decimal(data_type):
        edge = 10**data_type.precision
        return Ordering(type=data_type, kind="decimal", low=1 - edge, high=edge)
    if types.is_string(data_type) or types.is_large_string(data_type) or types.is_string_view(data_type):
        return Ordering(type=data_type, kind="text", low="", high=None)
    if types.is_binary(data_type) or types.is_large_binary(data_type) or types.is_binary_view(data_type):
        return Ordering(type=data_type, kind="binary", low=b"", high=None)
    if types.is_fixed_size_binary(data_type):
        return Ordering(type=data_type, kind="binary", low=b"", high=None)
    if types.is_integer(data_type) or types.is_temporal(data_type) or types.is_floating(data_type):
        return _fixed_width(data_type)
    return None


def _fixed_width(data_type: pa.DataType) -> Ordering | None:
    if pa.types.is_interval(data_type):
        return None
    bits = data_type.bit_width
    kind: Literal["integer", "float"] = "float" if pa.types.is_floating(data_type) else "integer"
    if pa.types.is_unsigned_integer(data_type):
        return Ordering(type=data_type, kind=kind, low=0, high=2**bits)
    return Ordering(type=data_type, kind=kind, low=-(2 ** (bits - 1)), high=2 ** (bits - 1))


def after_prefix(prefix: str) -> str | None:
    """The least text above every text that starts so, or None when there is none.

    >>> after_prefix("ab"), after_prefix(chr(0xD7FF)) == chr(0xE000), after_prefix(chr(0x10FFFF))
    ('ac', True, None)
    """
    kept = prefix.rstrip(chr(LAST_CODE_POINT))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)


def unscaled(value: Decimal, scale: int) -> int:
    """A decimal's digits as one integer at a given scale, never rounded by a context.

    >>> from decimal import Decimal
    >>> unscaled(Decimal("-1.50"), 2)
    -150
    """
    sign, digits, exponent = value.as_tuple()
    number: int = int("".join(map(str, digits))) * 10 ** (int(exponent) + scale)
    return -number if sign else number


def to_integers(array: pa.Array) -> pa.Array:
    """Booleans, dates, times, timestamps and durations by the integers that they are stored as."""
    if pa.types.is_boolean(array.type):
        return array.cast(pa.int8())
    return array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())


def _integers(keys: Sequence[Key | None], data_type: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(data_type):
        return pa.array([None if key is None else bool(key) for key in keys], data_type)
    return pa.array(keys, pa.int32() if data_type.bit_width == 32 else pa.int64()).cast(data_type)


def _decimals(keys: Sequence[Key | None], data_type: pa.DataType) -> pa.Array:
    texts = [None if key is None else f"{key}e{-data_type.scale}" for key in keys]
    return pa.array(texts, pa.string()).cast(data_type)
