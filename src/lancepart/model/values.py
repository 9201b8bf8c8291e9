"""Values on their way to becoming partition values: without encodings, one zero, one NaN, cut toward zero."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def logical_type(arrow_type: pa.DataType) -> pa.DataType:
    """A type without its encoding: a dictionary's values, an extension's storage, a view's plain form.

    >>> logical_type(pa.dictionary(pa.int8(), pa.string_view()))
    DataType(string)
    """
    if isinstance(arrow_type, pa.BaseExtensionType):
        return logical_type(arrow_type.storage_type)
    if pa.types.is_dictionary(arrow_type):
        return logical_type(arrow_type.value_type)
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return views.get(arrow_type, arrow_type)


def decoded(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One plain array of the logical type."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array if array.type == logical_type(array.type) else decoded(array.cast(logical_type(array.type)))


def canonical(array: pa.Array) -> pa.Array:
    """One zero and one NaN, so that equal floats are one partition."""
    if not pa.types.is_floating(array.type):
        return array
    values = array.to_numpy(zero_copy_only=False) + array.type.to_pandas_dtype()(0)
    values[np.isnan(values)] = np.nan
    return pa.array(values, array.type, mask=_nulls(array))


def _nulls(array: pa.Array) -> npt.NDArray[np.bool_]:
    nulls: npt.NDArray[np.bool_] = pc.is_null(array).to_numpy(zero_copy_only=False)
    return nulls


def truncated_integers(array: pa.Array, width: int, *, floor: bool = False) -> pa.Array:
    """Integers less their remainder by ``width``, in their own type."""
    values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    cut = _rounded_down if floor else _toward_zero
    return pa.array(cut(values, width), array.type, mask=_nulls(array))


def _rounded_down(values: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.int64]:
    """Each value less its remainder, which is never negative; what would leave the type stays at its least value."""
    limits = np.iinfo(values.dtype)
    if width > limits.max:
        return np.where(values < 0, limits.min, 0).astype(values.dtype)
    rest = np.mod(values, values.dtype.type(width))
    return np.where(values < limits.min + rest, limits.min, values - rest).astype(values.dtype)


def _toward_zero(values: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.int64]:
    """Each value less its remainder, which has the value's sign; a width beyond the type leaves 0."""
    limits = np.iinfo(values.dtype)
    if width <= limits.max:
        return values - np.fmod(values, values.dtype.type(width))
    return np.where(values == limits.min, limits.min if width == -limits.min else 0, 0).astype(values.dtype)


def truncated_decimals(array: pa.Array, width: int, *, floor: bool = False) -> pa.Array:
    """By the unscaled value: up to 18 digits as int64, longer ones in Python, each distinct value once."""
    kind = array.type
    step = width * 10**kind.scale
    if kind.precision <= 18 and not floor:
        words = kind.byte_width // 8
        narrow = pc.fill_null(array, pa.scalar(0, kind))
        unscaled = np.frombuffer(narrow.buffers()[1], np.int64).reshape(-1, words)[narrow.offset :][: len(array), 0]
        truncated = _toward_zero(unscaled, step)
        wide = np.repeat((truncated >> 63)[:, None], words, axis=1)
        wide[:, 0] = truncated
        plain = pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(np.ascontiguousarray(wide))])
        return pc.if_else(pc.is_null(array), pa.scalar(None, kind), plain)
    coded = array.dictionary_encode()
    least = Decimal((1, (9,) * kind.precision, -kind.scale))
    cut = _floored_decimal if floor else _truncated_decimal
    short = [None if value is None else max(cut(value, width), least) for value in coded.dictionary.to_pylist()]
    return pa.array(short, kind).take(coded.indices)


def _truncated_decimal(value: Decimal, width: int) -> Decimal:
    with localcontext(prec=100):
        return value - value % width


def _floored_decimal(value: Decimal, width: int) -> Decimal:
    with localcontext(prec=100):
        return value - (value % width + width) % width
