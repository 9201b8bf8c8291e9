"""Nested values encoded as bytes, so that structs, lists and maps can be hashed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.model.hashing import encoded, hashable, murmur3

_NOTHING = pa.scalar(b"", pa.large_binary())


def murmur3_any(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Murmur3 of values of any type: a nested one counts by the joined bytes of all that is in it and not NULL.

    >>> murmur3_any(pa.array([{"a": "ice", "b": ["be", "rg"]}, None])).to_pylist()
    [1210000089, None]
    """
    plain = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return murmur3(plain) if hashable(plain.type) else murmur3(joined(plain))


def joined(array: pa.Array) -> pa.Array:
    """The bytes that a value is hashed by, as large binary; NULL where the value is."""
    if isinstance(array, pa.ExtensionArray):
        return joined(array.storage)
    kind = array.type
    if pa.types.is_duration(kind):
        return encoded(array.cast(pa.int64()))
    if pa.types.is_struct(kind):
        parts = [pc.fill_null(joined(part), b"") for part in array.flatten()]
        empty = pa.array([b""] * len(array), pa.large_binary())
        return _where_valid(array, pc.binary_join_element_wise(*parts, _NOTHING) if parts else empty)
    if pa.types.is_map(kind):
        kept = array.drop_null()
        entries = pa.StructArray.from_arrays([kept.keys, kept.items], names=["key", "value"])
        return _gathered(array, entries)
    if pa.types.is_nested(kind):
        return _gathered(array, array.flatten())
    return encoded(array).cast(pa.large_binary())


def _gathered(array: pa.Array, values: pa.Array) -> pa.Array:
    """The bytes of each list's values, one after the other."""
    if pa.types.is_map(array.type):
        lengths = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field]))).value_lengths()
    else:
        lengths = pc.list_value_length(array)
    offsets = np.concatenate([[0], np.cumsum(pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False))]).astype(np.int64)
    pieces = pc.fill_null(joined(values), b"")
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), pieces)
    return _where_valid(array, pc.binary_join(lists, _NOTHING))


def _where_valid(array: pa.Array, found: pa.Array) -> pa.Array:
    return pc.if_else(array.is_valid(), found, pa.scalar(None, pa.large_binary()))
