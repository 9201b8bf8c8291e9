"""How large a scan's rows are: for Spark's choice of joins, which is the one that it makes for Parquet files."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lancepart.layout.leaves import Leaf

_ROW_BYTES, _COMPRESSED = 32, 8
_ROW_OVERHEAD = 8
_OF_PARQUET = 5 / 6
"""How large Parquet files of the same rows are: TPC-H's tables as Lance files are 1.1 to 1.4 times as large."""
_TEXT_WIDTH, _BINARY_WIDTH = 20, 100
"""What Spark takes a text and a binary value to be."""


def width(kind: pa.DataType) -> int | None:
    """The bytes of one value; ``None`` where values differ in length."""
    if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType) or pa.types.is_dictionary(kind):
        return None
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:
        return None


def narrowest(schema: pa.Schema) -> str:
    """The column that is cheapest to read, when only the number of rows is wanted."""
    return str(min(schema, key=lambda field: width(field.type) or 1_000).name)


def scanned_bytes(leaves: Sequence[Leaf], schema: pa.Schema, whole: pa.Schema) -> int:
    """The bytes that Parquet files would have times the columns' share of a row, as Spark estimates these.

    Where only columns of a fixed width are read, no more than their values take.
    """
    stats = [leaf.stats for leaf in leaves if leaf.stats]
    size = int(sum(each.bytes for each in stats) * _OF_PARQUET)
    return column_bytes(sum(each.rows for each in stats), size, schema, whole)


def column_bytes(rows: int, size: int, schema: pa.Schema, whole: pa.Schema) -> int:
    """The share that some columns have of files of this size, as ``scanned_bytes`` estimates it."""
    share = row_width(schema) / max(row_width(whole), 1)
    found = int(size * min(share, 1.0))
    widths = [width(field.type) for field in schema]
    return found if None in widths else min(found, rows * (_ROW_OVERHEAD + sum(each or 0 for each in widths)))


def held_bytes(leaves: Sequence[Leaf], schema: pa.Schema) -> int:
    """An upper estimate of the size of the rows in memory, where texts are not compressed."""
    stats = [leaf.stats for leaf in leaves if leaf.stats]
    widths = [width(field.type) for field in schema]
    fixed = sum(each.rows for each in stats) * (_ROW_BYTES + sum(each or 0 for each in widths))
    return fixed + (_COMPRESSED * sum(each.bytes for each in stats) if None in widths else 0)


def row_width(schema: pa.Schema | pa.StructType) -> int:
    """The bytes that a row is taken to have, lists at one value each unless they have a fixed length."""
    return _ROW_OVERHEAD + sum(_typical(field.type) for field in schema)


def _typical(kind: pa.DataType) -> int:
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _typical(kind.storage_type)
    if types.is_dictionary(kind):
        return _typical(kind.value_type)
    if types.is_struct(kind):
        return row_width(kind)
    if types.is_fixed_size_list(kind):
        return int(kind.list_size) * _typical(kind.value_type)
    if types.is_map(kind):
        return _typical(kind.key_type) + _typical(kind.item_type)
    if types.is_nested(kind):
        return _typical(kind.value_type)
    if types.is_decimal(kind):
        return 8 if kind.precision <= 18 else 16
    fixed = width(kind)
    if fixed is not None:
        return fixed
    return _TEXT_WIDTH if types.is_string(kind) or types.is_large_string(kind) else _BINARY_WIDTH
