"""Routing rows to partitions: computing partition values and splitting rows by them."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.model.partition_keys import value_keys
from lancepart.model.schema import source_path
from lancepart.model.spec import PartitionSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRows:
    """The rows of one partition; ``values`` are Arrow scalars, one a field of the spec."""

    key: tuple[str, ...]
    values: tuple[pa.Scalar, ...]
    rows: pa.Table


def route(rows: pa.Table, schema: pa.Schema, spec: PartitionSpec) -> Iterator[PartitionRows]:
    """Split rows by partition: one pass over the columns, then one slice a partition.

    ``schema`` has field ids, and its columns are in the order of the rows'.
    """
    if rows.num_rows == 0:
        return
    values = partition_values(rows, schema, spec)
    codes, first = _codes(values, rows.num_rows)
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    bounds = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    ends = np.append(bounds[1:], len(order))
    distinct = [array.take(pa.array(first)) for array in values]
    keys = _keys(distinct, len(first))
    in_order = rows if len(bounds) == 1 else rows.take(pa.array(order))
    fresh = any("struct<" in str(field.type) for field in rows.schema)
    for start, end in zip(bounds.tolist(), ends.tolist(), strict=True):
        code = int(ordered[start])
        yield PartitionRows(
            key=keys[code],
            values=tuple(array[code] for array in distinct),
            rows=_copied(in_order.slice(start, end - start)) if fresh else in_order.slice(start, end - start),
        )


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
    return array


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
