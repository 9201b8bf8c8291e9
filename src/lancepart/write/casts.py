"""Casting columns to the table's types without loss; errors name the column and the first value that does not fit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import TableSchemaValidationError
from lancepart.write.fits import fits


def cast(column: pa.Array | pa.ChunkedArray, wanted: pa.DataType, name: str) -> pa.Array | pa.ChunkedArray:
    """A column in another type that its values fit."""
    if column.type == wanted:
        return column
    try:
        made = _cast(column, wanted)
    except pa.ArrowException:
        at = _first(column, wanted)
        if at is not None:
            raise _refusal(name, column, at, wanted) from None
        made = _cast(_alone(column), wanted)
    if not fits(column.type, wanted):
        at = _inexact(_whole(column), _whole(made))
        if at is not None:
            raise _refusal(name, column, at, wanted)
    return made


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Arrow's safe cast; it takes integers for decimals only by way of one that holds them all."""
    if pa.types.is_integer(column.type) and pa.types.is_decimal(wanted) and wanted.scale >= 0:
        return pc.cast(pc.cast(column, pa.decimal256(20 + wanted.scale, wanted.scale)), wanted)
    if pa.types.is_fixed_size_list(wanted):
        if isinstance(column, pa.ChunkedArray):
            return pa.chunked_array([_as_vectors(chunk, wanted) for chunk in column.chunks], wanted)
        return _as_vectors(column, wanted)
    return pc.cast(column, wanted)


def _as_vectors(lists: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Lists as vectors of one length; Arrow's own cast of lists that are all NULL reads memory that is not there."""
    return pa.nulls(len(lists), wanted) if lists.null_count == len(lists) else pc.cast(lists, wanted)


def _refusal(name: str, column: pa.Array, at: int, wanted: pa.DataType) -> TableSchemaValidationError:
    length, given = vector_length(wanted), column[at]
    fits = length is None or not given.is_valid or len(given) == length
    advice = "" if fits else f": give {length} numbers in each row"
    return TableSchemaValidationError(
        f"column {name!r}: {_shown(given)} of type {column.type} does not fit {wanted}{advice}"
    )


def vector_length(kind: pa.DataType) -> int | None:
    """How many values each list of a type has; None if they may have any number."""
    return int(kind.list_size) if pa.types.is_fixed_size_list(kind) else None


def _shown(scalar: pa.Scalar) -> str:
    """A value as an error shows it; Python has no word for some, such as nanoseconds."""
    try:
        text = repr(scalar.as_py())
    except (ValueError, OverflowError):
        text = str(scalar)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _first(column: pa.Array, wanted: pa.DataType) -> int | None:
    """The first row that can't be cast, found by halves; None if each can."""

    def fail(start: int, stop: int) -> bool:
        try:
            _cast(_alone(column.slice(start, stop - start)), wanted)
        except pa.ArrowException:
            return True
        return False

    low, high = 0, len(column)
    if pa.types.is_nested(column.type) and not fail(low, high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fail(low, middle) else (middle, high)
    return low


def _alone(column: pa.Array) -> pa.Array:
    """Values of a nested type without those that lie beneath a NULL or outside a slice, which Arrow casts too."""
    if not pa.types.is_nested(column.type):
        return column
    rows = np.arange(len(column))
    return column.take(pa.array(rows, mask=column.is_null().to_numpy(zero_copy_only=False)))


def _inexact(given: pa.Array, made: pa.Array) -> int | None:
    """The first row whose value is another after the cast: Arrow rounds floats and cuts times without a word."""
    if pa.types.is_dictionary(given.type):
        return _inexact(given.dictionary_decode(), made)
    if pa.types.is_dictionary(made.type):
        return _inexact(given, made.dictionary_decode())
    if pa.types.is_struct(given.type):
        found = [
            _inexact(pc.struct_field(given, [at]), pc.struct_field(made, [at])) for at in range(given.type.num_fields)
        ]
        return min((at for at in found if at is not None), default=None)
    if pa.types.is_map(given.type):
        return _inexact(_entries(given), _entries(made))
    if pa.types.is_nested(given.type):
        inner = _inexact(pc.list_flatten(given), pc.list_flatten(made))
        return None if inner is None else int(pc.list_parent_indices(given)[inner].as_py())
    return _changed(given, made)


def _entries(maps: pa.Array) -> pa.Array:
    """Maps as lists of pairs."""
    return maps.cast(pa.list_(pa.struct([maps.type.key_field, maps.type.item_field])))


def _changed(given: pa.Array, made: pa.Array) -> int | None:
    t = pa.types
    rounded = t.is_floating(made.type) and (t.is_floating(given.type) or t.is_integer(given.type))
    cut = t.is_date(made.type) and t.is_timestamp(given.type)
    if not rounded and not cut:
        return None
    if rounded:
        before, after = (each.to_numpy(zero_copy_only=False) for each in (given, made))
        with np.errstate(invalid="ignore", over="ignore"):
            same = (after.astype(before.dtype) == before) | (np.isnan(before) & np.isnan(after))
        same |= pc.is_null(given).to_numpy(zero_copy_only=False)
    else:
        same = pc.fill_null(pc.equal(pc.cast(made, given.type), given), True).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(~same)
    return int(wrong[0]) if len(wrong) else None


def _whole(column: pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
