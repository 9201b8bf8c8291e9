"""Hashes over Arrow arrays: the same value gives the same hash whatever its width, unit or encoding."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError
from lancepart.model.murmur import Bytes, Longs, Words, hash_bytes, hash_longs

_ROWS = 1 << 18
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def murmur3(array: pa.Array) -> pa.Array:
    """Murmur3 (x86, 32 bits, seed 0, signed) of each value; NULL stays NULL.

    >>> murmur3(pa.array([34, None])).to_pylist()
    [2017239379, None]
    >>> murmur3(pa.array(["iceberg"])).to_pylist()
    [1210000089]
    """
    return _hash_pieces([array], _murmur3_piece)


def murmur3_multi(arrays: Sequence[pa.Array]) -> pa.Array:
    """Murmur3 of the joined bytes of the columns that are not NULL; NULL only where all of them are.

    >>> murmur3_multi([pa.array(["ice", None]), pa.array(["berg", None])]).to_pylist()
    [1210000089, None]
    """
    if not arrays:
        raise InvalidInputError("murmur3_multi needs at least one column")
    return _hash_pieces(arrays, _murmur3_joined)


def safe_abs(array: pa.Array) -> pa.Array:
    """The absolute value as int64, so that the smallest int32 has one; the smallest int64 becomes the largest.

    >>> safe_abs(pa.array([-(2**31), 5, None], pa.int32())).to_pylist()
    [2147483648, 5, None]
    """
    longs = pc.max_element_wise(array.cast(pa.int64()), pa.scalar(-(2**63) + 1, pa.int64()), skip_nulls=False)
    return pc.abs(longs)


def bucket(array: pa.Array, num_buckets: int) -> pa.Array:
    """Which of ``num_buckets`` buckets each value falls into; NULL stays NULL.

    >>> bucket(pa.array([34, 6018035362574630912]), 16).to_pylist()
    [3, 0]
    """
    return _modulo(murmur3(array), num_buckets)


def multi_bucket(arrays: Sequence[pa.Array], num_buckets: int) -> pa.Array:
    """Which bucket each row falls into by all of its non-null columns together.

    >>> multi_bucket([pa.array([1, 1]), pa.array(["a", None])], 16).to_pylist()
    [4, 4]
    """
    return _modulo(murmur3_multi(arrays), num_buckets)


def md5_int(array: pa.Array) -> pa.Array:
    """The first 8 bytes of each value's MD5 as a signed int64; numbers and times count by their text.

    Each distinct value is digested once, in Python: meant for the older layouts, not for hot paths.

    >>> md5_int(pa.array(["a", None])).to_pylist()
    [919145239626757800, None]
    """
    results = [_md5_piece(piece) for (piece,) in _pieces([array])]
    return pa.chunked_array(results, pa.int64()).combine_chunks()


def hashable(arrow_type: pa.DataType) -> bool:
    """Whether values of this type have a hash: every type but the nested ones and spans of time."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return hashable(arrow_type.storage_type)
    if pa.types.is_dictionary(arrow_type):
        return hashable(arrow_type.value_type)
    spans = pa.types.is_duration(arrow_type) or pa.types.is_interval(arrow_type)
    return not (pa.types.is_nested(arrow_type) or spans or pa.types.is_run_end_encoded(arrow_type))


def _hash_pieces(arrays: Sequence[pa.Array], hash_piece: Callable[..., None]) -> pa.Array:
    for array in arrays:
        if not hashable(array.type):
            raise InvalidInputError(f"values of type {array.type} cannot be hashed; hash one of their parts instead")
    out = np.empty(len(arrays[0]), np.int32)
    valid = np.ones(len(out), np.bool_)
    position = 0
    for piece in _pieces(arrays):
        end = position + len(piece[0])
        hash_piece(*piece, out=out[position:end].view(np.uint32))
        nulls = _all_null(piece)
        if nulls is not None:
            valid[position:end] = ~nulls
        position = end
    return pa.array(out, mask=None if valid.all() else ~valid)


def _pieces(arrays: Sequence[pa.Array]) -> Iterator[tuple[pa.Array, ...]]:
    """Cut equally long columns alike, so that memory stays bounded and a piece stays near the cache."""
    if len({len(array) for array in arrays}) != 1:
        raise InvalidInputError(f"columns of different lengths: {[len(array) for array in arrays]}")
    for start in range(0, len(arrays[0]), _ROWS):
        yield tuple(_contiguous(array.slice(start, _ROWS)) for array in arrays)


def _contiguous(array: pa.Array) -> pa.Array:
    """One plain array: no chunks, no extension, no run of dictionary keys."""
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        return _contiguous(array.storage)
    return array


def _all_null(piece: Sequence[pa.Array]) -> npt.NDArray[np.bool_] | None:
    if any(_logical_null_count(array) == 0 for array in piece):
        return None
    nulls = [pc.is_null(array).to_numpy(zero_copy_only=False) for array in piece]
    missing: npt.NDArray[np.bool_] = np.logical_and.reduce(nulls)
    return missing


def _logical_null_count(array: pa.Array) -> int:
    return len(array) if pa.types.is_null(array.type) else array.null_count or _null_keys(array)


def _null_keys(array: pa.Array) -> int:
    """A dictionary may hold NULL as a value: then a key that is there still means NULL."""
    return array.dictionary.null_count if pa.types.is_dictionary(array.type) else 0


def _murmur3_piece(array: pa.Array, *, out: Words) -> None:
    if pa.types.is_null(array.type):
        return
    if pa.types.is_dictionary(array.type):
        values = murmur3(array.dictionary).take(array.indices)
        out[:] = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).view(np.uint32)
    elif _has_bytes(array.type):
        hash_bytes(*_byte_ranges(array), out)
    else:
        hash_longs(_longs(array), out)


def _murmur3_joined(*arrays: pa.Array, out: Words) -> None:
    separator = pa.scalar(b"", pa.large_binary())
    parts = [pc.fill_null(encoded(array), b"") for array in arrays]
    joined = pc.binary_join_element_wise(*parts, separator)
    hash_bytes(*_byte_ranges(joined), out)


def _has_bytes(arrow_type: pa.DataType) -> bool:
    kinds = pa.types
    text = kinds.is_string(arrow_type) or kinds.is_large_string(arrow_type) or kinds.is_string_view(arrow_type)
    plain = kinds.is_binary(arrow_type) or kinds.is_large_binary(arrow_type) or kinds.is_binary_view(arrow_type)
    return bool(text or plain or kinds.is_fixed_size_binary(arrow_type) or kinds.is_decimal(arrow_type))


def encoded(array: pa.Array) -> pa.Array:
    """The bytes that a value is hashed by, as binary."""
    if pa.types.is_dictionary(array.type):
        return encoded(array.dictionary).take(array.indices)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.large_binary())
    if pa.types.is_decimal(array.type):
        return _unscaled(array)
    if _has_bytes(array.type):
        return array.cast(pa.large_binary())
    longs = np.ascontiguousarray(_longs(array))
    offsets = np.arange(len(array) + 1, dtype=np.int64) * 8
    return _binary(offsets, longs.view(np.uint8), array)


def _binary(offsets: Longs, data: Bytes, like: pa.Array) -> pa.Array:
    validity = None if like.null_count == 0 else pa.array(pc.is_valid(like)).buffers()[1]
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(like), buffers)


def _values(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
    values: npt.NDArray[np.generic] = np.frombuffer(array.buffers()[1], dtype)
    return values[array.offset : array.offset + len(array)]


def _longs(array: pa.Array) -> Longs:
    """The 8 bytes that represent each number, date or time."""
    kind, values = array.type, pa.types
    if len(array) == 0:
        return np.empty(0, np.int64)
    if values.is_boolean(kind):
        return _values(array.cast(pa.uint8()), np.uint8).astype(np.int64)
    if values.is_floating(kind):
        doubles = _values(array, kind.to_pandas_dtype()).astype(np.float64) + 0.0
        return np.where(np.isnan(doubles), np.nan, doubles).view(np.int64)
    if values.is_date32(kind):
        return _values(array, np.int32).astype(np.int64)
    if values.is_date64(kind):
        return _values(array, np.int64).astype(np.int64, copy=False) // 86_400_000
    if values.is_timestamp(kind) or values.is_time(kind):
        ticks = _values(array, np.dtype(f"i{kind.bit_width // 8}")).astype(np.int64, copy=False)
        return ticks // 1_000 if kind.unit == "ns" else ticks * _MICROS[kind.unit]
    return _values(array, kind.to_pandas_dtype()).astype(np.int64, copy=False)


def _unscaled(array: pa.Array) -> pa.Array:
    """Decimals as the shortest big-endian two's complement of their unscaled value."""
    width = array.type.byte_width
    raw = np.frombuffer(array.buffers()[1], np.uint8) if len(array) else np.empty(0, np.uint8)
    raw = raw[array.offset * width : (array.offset + len(array)) * width].reshape(len(array), width)[:, ::-1]
    sign = np.where(raw[:, :1] & 0x80, np.uint8(0xFF), np.uint8(0))
    padding = (raw[:, :-1] == sign) & ((raw[:, 1:] & 0x80) == (sign & 0x80))
    keep = np.ones(raw.shape, np.bool_)
    keep[:, :-1] = ~np.logical_and.accumulate(padding, axis=1)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(keep.sum(axis=1), out=offsets[1:])
    return _binary(offsets, raw[keep], array)


def _byte_ranges(array: pa.Array) -> tuple[Bytes, Longs, Longs]:
    """The data buffer, and where in it each value starts and how long it is."""
    kind, size = array.type, len(array)
    if pa.types.is_decimal(kind):
        return _byte_ranges(_unscaled(array))
    if pa.types.is_fixed_size_binary(kind):
        starts = np.arange(array.offset, array.offset + size, dtype=np.int64) * kind.byte_width
        return _data(array.buffers()[1]), starts, np.full(size, kind.byte_width, np.int64)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return _byte_ranges(array.cast(pa.large_binary()))
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    narrow = np.frombuffer(array.buffers()[1] or b"", np.int64 if wide else np.int32)
    offsets: Longs = narrow[array.offset : array.offset + size + 1].astype(np.int64, copy=False)
    lengths = np.diff(offsets)
    if array.null_count:
        lengths[pc.is_null(array).to_numpy(zero_copy_only=False)] = 0
    return _data(array.buffers()[2]), offsets[:size], lengths


def _data(buffer: pa.Buffer) -> Bytes:
    data = np.frombuffer(buffer or b"", np.uint8)
    return data if len(data) >= 4 else np.concatenate([data, np.zeros(4, np.uint8)])


def _modulo(hashes: pa.Array, num_buckets: int) -> pa.Array:
    if num_buckets < 1:
        raise InvalidInputError(f"num_buckets must be at least 1, not {num_buckets}")
    signed = _values(hashes, np.int32) if len(hashes) else np.empty(0, np.int32)
    distance = np.abs(signed).view(np.uint32)
    divisor = np.uint32(num_buckets)
    buckets = (distance - distance // divisor * divisor).view(np.int32)
    return pa.array(buckets, mask=_all_null([hashes]))


def _md5_piece(array: pa.Array) -> pa.Array:
    coded = _texts(array).dictionary_encode()
    digests = [
        None if value is None else int.from_bytes(hashlib.md5(value, usedforsecurity=False).digest()[:8], signed=True)
        for value in coded.dictionary.to_pylist()
    ]
    return pa.array(digests, pa.int64()).take(coded.indices)


def _texts(array: pa.Array) -> pa.Array:
    """What MD5 digests: bytes as they are, everything else by a text that its width does not change."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _texts(array.dictionary).take(array.indices)
    if _has_bytes(kind) and not pa.types.is_decimal(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_floating(kind):
        array = pa.array(_longs(array).view(np.float64), mask=_all_null([array]))
    elif pa.types.is_timestamp(kind):
        array = array.cast(pa.timestamp("us"), safe=False)
    elif pa.types.is_date64(kind):
        array = array.cast(pa.date32(), safe=False)
    return array.cast(pa.large_string()).cast(pa.large_binary())
