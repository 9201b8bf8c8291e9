"""Aligning buffers of Arrow data for Lance, which requires it."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa

Rows = TypeVar("Rows")
_WIDE, _PLAIN = 16, 8


def aligned(data: Rows) -> Rows:
    """Rows for Lance: columns whose buffers lie where Arrow allows and Rust does not are copied, all others are not.

    Arrow's IPC format, which Spark sends and which files are memory-mapped in, promises 8 bytes; decimals need 16.
    """
    if isinstance(data, pa.RecordBatchReader):
        reader: Rows = pa.RecordBatchReader.from_batches(data.schema, (aligned(batch) for batch in data))
        return reader
    if not isinstance(data, pa.RecordBatch | pa.Table):
        return data
    columns = data.columns
    moved = [_moved(column) for column in columns]
    copied: Rows = data if _are_same(moved, columns) else type(data).from_arrays(moved, schema=data.schema)
    return copied


def _moved(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column, or a copy of it where one of its buffers is not aligned."""
    if isinstance(column, pa.ChunkedArray):
        chunks = column.chunks
        moved = [_moved(chunk) for chunk in chunks]
        return column if _are_same(moved, chunks) else pa.chunked_array(moved, type=column.type)
    if isinstance(column, pa.DictionaryArray):
        parts = [column.indices, column.dictionary]
        moved = [_moved(part) for part in parts]
        if _are_same(moved, parts):
            return column
        return pa.DictionaryArray.from_arrays(*moved, ordered=column.type.ordered)
    width = _width(column.type)
    if all(buffer is None or buffer.address % width == 0 for buffer in column.buffers()):
        return column
    return pa.concat_arrays([column])


def _are_same(moved: list[pa.Array | pa.ChunkedArray], given: list[pa.Array | pa.ChunkedArray]) -> bool:
    return all(new is old for new, old in zip(moved, given, strict=True))


def _width(kind: pa.DataType) -> int:
    """The alignment that suffices for all buffers of a type.

    >>> _width(pa.list_(pa.string())), _width(pa.map_(pa.string(), pa.decimal128(10, 2)))
    (8, 16)
    """
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _width(kind.storage_type)
    if types.is_decimal(kind) or types.is_string_view(kind) or types.is_binary_view(kind):
        return _WIDE
    return max((_width(kind.field(at).type) for at in range(kind.num_fields)), default=_PLAIN)
