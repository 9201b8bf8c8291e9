"""Decimals and whole numbers as unscaled integers, and arithmetic with them that never rounds or wraps.

Columns are arrays of 64-bit integers with a bound that no value exceeds. A result whose bound does not fit any more is
computed with Python's integers, which takes long and happens to very large values only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import JsonMapping

_WORD = 1 << 63
_LIMB_BITS = 31
_LIMBS = 5
MOST_DIGITS = 38
"""What a decimal of Spark's has at most."""

Integers: TypeAlias = npt.NDArray[Any]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Values of ``scale`` digits after the point, none larger than ``bound``; ``valid`` is None if no value is NULL."""

    values: Integers
    bound: int
    scale: int
    valid: Mask | None = None


def of_column(array: pa.Array) -> Numbers:
    """A column of whole numbers, or of decimals of at most 18 digits; a NULL counts as 0."""
    valid = None if not array.null_count else array.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_decimal128(array.type):
        words = np.frombuffer(array.buffers()[1], dtype=np.int64)
        values, scale = words[2 * array.offset : 2 * (array.offset + len(array)) : 2], array.type.scale
    else:
        values, scale = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64), 0
    if valid is not None:
        values = np.where(valid, values, 0)
    return Numbers(values=values, bound=_bound(values), scale=scale, valid=valid)


def _bound(values: Integers) -> int:
    return max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0


def evaluated(tree: JsonMapping, batch: pa.RecordBatch) -> Numbers:
    """The value of an expression: a column, a literal, or the sum, difference or product of two of them."""
    if "column" in tree:
        return of_column(batch.column(tree["column"]))
    if "literal" in tree:
        value = int(tree["literal"])
        kind = np.int64 if abs(value) < _WORD else object
        return Numbers(values=np.full(1, value, dtype=kind), bound=abs(value), scale=int(tree["scale"]))
    left, right = evaluated(tree["left"], batch), evaluated(tree["right"], batch)
    found = _product(left, right) if tree["op"] == "*" else _sum(left, right, negative=tree["op"] == "-")
    if found.bound >= 10**MOST_DIGITS and _bound(found.values) >= 10**MOST_DIGITS:
        raise InvalidInputError(
            f"a decimal of more than {MOST_DIGITS} digits came up in an aggregate: cast its operands"
        )
    return found


def _product(left: Numbers, right: Numbers) -> Numbers:
    bound = left.bound * right.bound
    one, other = _fitting(left.values, bound), _fitting(right.values, bound)
    return Numbers(values=one * other, bound=bound, scale=left.scale + right.scale, valid=both(left.valid, right.valid))


def _sum(left: Numbers, right: Numbers, *, negative: bool) -> Numbers:
    scale = max(left.scale, right.scale)
    factors = 10 ** (scale - left.scale), 10 ** (scale - right.scale)
    bound = left.bound * factors[0] + right.bound * factors[1]
    one, other = (_fitting(each.values, bound) for each in (left, right))
    one, other = (each if factor == 1 else each * factor for each, factor in zip((one, other), factors, strict=True))
    return Numbers(
        values=one - other if negative else one + other, bound=bound, scale=scale, valid=both(left.valid, right.valid)
    )


def _fitting(values: Integers, bound: int) -> Integers:
    """Values as Python's integers where the result may be larger than 64 bits."""
    return values if bound < _WORD else values.astype(object)


def both(one: Mask | None, other: Mask | None) -> Mask | None:
    """Where both are there."""
    return other if one is None else one if other is None else one & other


def limbs(values: Integers, bound: int, rows: int) -> list[Integers]:
    """Integers as digits to the base 2**31, lowest first, so that so many of each add up to 64 bits at most.

    A single one where the values themselves do.
    """
    if values.dtype != object and bound * max(rows, 1) < _WORD:
        return [values]
    count = _LIMBS if values.dtype == object else 2
    mask = (1 << _LIMB_BITS) - 1
    parts = [values >> (_LIMB_BITS * at) for at in range(count)]
    return [(part & mask if at < count - 1 else part).astype(np.int64) for at, part in enumerate(parts)]


def together(sums: list[Integers]) -> Integers:
    """The sums of values from those of their limbs."""
    if len(sums) == 1:
        return sums[0]
    return sum((part.astype(object) << (_LIMB_BITS * at) for at, part in enumerate(sums)), np.zeros(1, dtype=object))


def as_decimals(values: Integers, kind: pa.Decimal128Type) -> pa.Array:
    """Unscaled integers as decimals; what has more digits than the type is NULL, as Spark marks sums that overflow."""
    most = 10**kind.precision
    fits = None if values.dtype != object and most >= _WORD else np.abs(values) < most
    if fits is None or bool(fits.all()):
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(_words(values))])
    kept = np.where(fits, values, 0)
    bits = np.packbits(fits.astype(np.bool_), bitorder="little").tobytes()
    return pa.Array.from_buffers(kind, len(values), [pa.py_buffer(bits), pa.py_buffer(_words(kept))])


def _words(values: Integers) -> bytes:
    """Sixteen bytes a value, the lower eight first."""
    if values.dtype == object:
        return b"".join(int(value).to_bytes(16, "little", signed=True) for value in values)
    both_words = np.empty((len(values), 2), dtype=np.int64)
    both_words[:, 0], both_words[:, 1] = values, values >> 63
    return both_words.tobytes()
