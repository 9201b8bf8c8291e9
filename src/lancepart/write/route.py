"""Routing rows to partitions: computing partition values and splitting rows by them."""

from __future__ import annotations

from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.model.nested import null_inside
from lancepart.model.partition_keys import value_keys
from lancepart.model.schema import source_path
from lancepart.model.spec import PartitionSpec

_BLOCK_ROWS, _LEAST_PIECE = 1 << 17, 256
"""How many rows are sorted at a time, if each partition has so many of them on average."""
_THREADS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRows:
    """The rows of one partition; ``values`` are Arrow scalars, one a field of the spec."""

    key: tuple[str, ...]
    values: tuple[pa.Scalar, ...]
    rows: pa.Table


def route(rows: pa.Table, schema: pa.Schema, spec: PartitionSpec) -> Iterator[PartitionRows]:
    """Split rows by partition, in the order in which the partitions first appear.

    ``schema`` has field ids, and its columns are in the order of the rows'.
    """
    if rows.num_rows == 0:
        return
    values = partition_values(rows, schema, spec)
    codes, first = _codes(values, rows.num_rows)
    distinct = [array.take(pa.array(first)) for array in values]
    parts = _split(rows, codes, len(first))
    for code, (key, part) in enumerate(zip(_keys(distinct, len(first)), parts, strict=True)):
        yield PartitionRows(key=key, values=tuple(array[code] for array in distinct), rows=part)


def _split(rows: pa.Table, codes: npt.NDArray[np.integer], count: int) -> list[pa.Table]:
    """The rows of each number, in their order.

    Of few partitions a block of rows that the processor's cache holds is sorted at a time: in one sort of all, each
    partition's rows are gathered from all of memory, which takes twice as long.
    """
    size = _BLOCK_ROWS if count * _LEAST_PIECE <= _BLOCK_ROWS else rows.num_rows
    blocks = [(rows.slice(at, size), codes[at : at + size], count) for at in range(0, rows.num_rows, size)]
    if len(blocks) == 1 or count == 1:
        return _sorted_block((rows, codes, count))
    with ThreadPoolExecutor(_THREADS) as pool:
        pieces = list(zip(*pool.map(_sorted_block, blocks), strict=True))
        return list(pool.map(lambda each: pa.concat_tables(each).combine_chunks(), pieces))


def _sorted_block(block: tuple[pa.Table, npt.NDArray[np.integer], int]) -> list[pa.Table]:
    """The rows of each number in a block."""
    rows, codes, count = block
    ordered = rows if count == 1 else rows.take(pa.array(np.argsort(codes, kind="stable")))
    ends = [0, *np.cumsum(np.bincount(codes, minlength=count)).tolist()]
    parts = [ordered.slice(start, end - start) for start, end in pairwise(ends)]
    return [_copied(part) for part in parts] if any("struct<" in str(field.type) for field in rows.schema) else parts


def in_partitions(
    rows: pa.Table, schema: pa.Schema, spec: PartitionSpec, keys: Set[tuple[str, ...]]
) -> npt.NDArray[np.bool_]:
    """Which rows belong to one of some partitions."""
    values = partition_values(rows, schema, spec)
    codes, first = _codes(values, rows.num_rows)
    distinct = _keys([array.take(pa.array(first)) for array in values], len(first))
    chosen: npt.NDArray[np.bool_] = np.array([key in keys for key in distinct], dtype=bool)[codes]
    return chosen


def partition_numbers(rows: pa.Table, schema: pa.Schema, spec: PartitionSpec) -> npt.NDArray[np.int64]:
    """A number for each row that is the same wherever rows of one partition are met; others may share it."""
    values = partition_values(rows, schema, spec)
    codes, first = _codes(values, rows.num_rows)
    keys = _keys([array.take(pa.array(first)) for array in values], len(first))
    hashes = np.array([crc32("\0".join(key).encode()) & 0x7FFFFFFF for key in keys], dtype=np.int64)
    numbers: npt.NDArray[np.int64] = hashes[codes]
    return numbers


def _copied(rows: pa.Table) -> pa.Table:
    """The same rows in arrays that start at their own beginning: Lance fails on structs in a slice of structs."""
    return rows.take(pa.array(np.arange(rows.num_rows)))


def partition_values(rows: pa.Table, schema: pa.Schema, spec: PartitionSpec) -> list[pa.Array]:
    """The partition value of each row, one array a field; a removed source column counts as NULL."""
    return [field.apply([_source(rows, schema, number) for number in field.source_ids]) for field in spec.fields]


def _source(rows: pa.Table, schema: pa.Schema, number: int) -> pa.Array:
    """A source column, or what a struct holds of it."""
    path = source_path(schema, number)
    if path is None:
        return pa.nulls(rows.num_rows)
    array = rows.column(schema.get_field_index(path[0].name)).combine_chunks()
    for field in path[1:]:
        array = pc.struct_field(array, field.name)
    return null_inside(array)


def _keys(distinct: list[pa.Array], count: int) -> list[tuple[str, ...]]:
    """The keys of some partitions; without partition fields there is one, and it has no values."""
    return list(zip(*map(value_keys, distinct), strict=True)) if distinct else [()] * count


def _codes(values: list[pa.Array], count: int) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.int64]]:
    """A number for each row, the same for the same partition, and a row that has each number.

    Small numbers are held in 16 bits, for which numpy's stable sort is linear.
    """
    if not values:
        return np.zeros(count, dtype=np.uint16), np.zeros(min(count, 1), dtype=np.int64)
    encoded = values[0].dictionary_encode(null_encoding="encode")
    for array in values[1:]:
        own = array.dictionary_encode(null_encoding="encode")
        mixed = _numbers(encoded) * len(own.dictionary) + _numbers(own)
        encoded = pa.array(mixed).dictionary_encode()
    codes = _numbers(encoded)
    first = np.empty(len(encoded.dictionary), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return codes.astype(np.uint16) if len(first) < 2**16 else codes, first


def _numbers(encoded: pa.Array) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
