"""Upserts: finding the rows that have given keys, and completing partial rows from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.commit.upsert_keys import KeyIndex, check_types
from lancepart.errors import InvalidInputError, TableColumnNotFoundError, TableSchemaValidationError
from lancepart.layout.leaves import Leaf
from lancepart.model.aliases import RowSource
from lancepart.model.predicate import And, In, Predicate
from lancepart.model.suggest import near
from lancepart.model.values import decoded
from lancepart.read import leaf as reading
from lancepart.read.leaf import ADDRESS, LeafTask
from lancepart.write.conform import Rows, partial_batches, refuse_nulls
from lancepart.write.dicts import listed

_MOST_KEYS = 1_000


Addresses: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Rows of one batch that have one of some keys, as in ``Matches``."""

    addresses: Addresses
    rows: npt.NDArray[np.int64]
    kept: pa.RecordBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """The rows of a table that have one of some keys: their leaves and addresses.

    ``kept`` are some of their columns, and ``rows`` is the row of the data that each of them matches.
    """

    addresses: tuple[tuple[Leaf, Addresses], ...]
    rows: npt.NDArray[np.int64]
    kept: pa.Table


def check_key(schema: pa.Schema, on: Sequence[str]) -> None:
    """Refuse a key that is no list of columns of the table, each once and of values that can be compared."""
    if isinstance(on, str) or not on:
        raise InvalidInputError(f"on is {on!r}: give a list of the columns that make the key, such as ['id']")
    unknown = [name for name in on if name not in schema.names]
    if unknown:
        raise TableColumnNotFoundError(
            f"there is no column {unknown[0]!r} to match on: the table has {', '.join(schema.names)}"
            f"{near(unknown[0], schema.names)}"
        )
    twice = [name for name in on if list(on).count(name) > 1]
    if twice:
        raise InvalidInputError(f"on has {twice[0]!r} twice: name each column of the key once")
    check_types(schema, on)


def require_key(on: Sequence[str], unnamed: Collection[str]) -> None:
    """Refuse data that does not name its key: its rows would match nothing, and be added at every run."""
    lacking = [name for name in on if name in unnamed]
    if lacking:
        raise TableSchemaValidationError(
            f"the data does not name {lacking[0]!r}, which is part of the key: every row needs it"
        )


def gathered(data: RowSource, schema: pa.Schema, on: Sequence[str]) -> Rows | None:
    """All rows of an upsert, each with its key; None if there are none."""
    chunks = list(partial_batches(listed(data), schema))
    names = {name for chunk in chunks for name in chunk.unnamed}
    require_key(on, names)
    if not chunks:
        return None
    unnamed = {
        name: np.concatenate([chunk.unnamed.get(name, np.zeros(chunk.table.num_rows, dtype=bool)) for chunk in chunks])
        for name in names
    }
    return Rows(table=pa.concat_tables([chunk.table for chunk in chunks]), unnamed=unnamed)


def find(
    leaves: Sequence[Leaf],
    task: Callable[[Leaf, Sequence[str]], LeafTask],
    index: KeyIndex,
    on: Sequence[str],
    keep: Sequence[str] = (),
    *,
    over: Callable[[Sequence[Leaf], Callable[[Leaf], list[_Found]]], list[list[_Found]]] | None = None,
) -> Matches:
    """Read the keys of leaves, and of the rows that match the columns to keep; ``over`` does so on threads."""
    wanted = [*on, *(name for name in keep if name not in on)]

    def look(item: Leaf) -> list[_Found]:
        return list(_matches(reading.with_addresses(task(item, wanted)), index, on, keep))

    found = [look(item) for item in leaves] if over is None else over(leaves, look)
    rows = [each.rows for own in found for each in own]
    kept = [each.kept for own in found for each in own]
    return Matches(
        addresses=tuple(
            (item, np.concatenate([each.addresses for each in own]))
            for item, own in zip(leaves, found, strict=True)
            if own
        ),
        rows=np.concatenate(rows) if rows else np.array([], dtype=np.int64),
        kept=pa.Table.from_batches(kept) if kept and keep else None,
    )


def _matches(
    batches: Iterable[pa.RecordBatch], index: KeyIndex, on: Sequence[str], keep: Sequence[str]
) -> Iterator[_Found]:
    """The rows of each batch that have one of the keys."""
    for batch in batches:
        found = index.find(pa.Table.from_batches([batch]).select(list(on)))
        there = found >= 0
        if there.any():
            yield _Found(
                addresses=batch.column(ADDRESS).to_numpy()[there],
                rows=found[there],
                kept=batch.select(list(keep)).filter(pa.array(there)),
            )


def completed(rows: Rows, matches: Matches, on: Sequence[str]) -> pa.Table:
    """Rows that have of the table's own what they do not name, and NULL in it if they are new."""
    if not rows.unnamed:
        refuse_nulls(rows.table)
        return rows.table
    _refuse_ambiguous(rows, matches, on)
    count = rows.table.num_rows
    old = np.full(count, -1, dtype=np.int64)
    old[matches.rows] = np.arange(len(matches.rows)) + count
    table = rows.table
    for name, unnamed in rows.unnamed.items():
        at = table.schema.get_field_index(name)
        _refuse_incomplete(rows, table.schema.field(at), unnamed & (old < 0), on)
        chunks = [*table.column(at).chunks, *(() if matches.kept is None else matches.kept.column(name).chunks)]
        place = np.where(unnamed, old, np.arange(count))
        both = pa.chunked_array(chunks, table.schema.field(at).type).unify_dictionaries().combine_chunks()
        table = table.set_column(at, table.schema.field(at), both.take(pa.array(place, mask=place < 0)))
    refuse_nulls(table)
    return table


def _refuse_ambiguous(rows: Rows, matches: Matches, on: Sequence[str]) -> None:
    found, counts = np.unique(matches.rows, return_counts=True)
    if (counts > 1).any():
        key = rows.table.slice(int(found[counts > 1][0]), 1).select(list(on)).to_pylist()[0]
        raise InvalidInputError(
            f"the key {key} is on {int(counts.max())} rows of the table, so that it is not known which of them "
            "keeps what the data does not name: name all columns, or use a key that is unique"
        )


def _refuse_incomplete(rows: Rows, field: pa.Field, lacking: npt.NDArray[np.bool_], on: Sequence[str]) -> None:
    if not field.nullable and lacking.any():
        key = rows.table.slice(int(np.flatnonzero(lacking)[0]), 1).select(list(on)).to_pylist()[0]
        raise TableSchemaValidationError(
            f"column {field.name!r} is missing, and may not be null: the row with the key {key} is new, and needs it"
        )


def key_filter(rows: pa.Table, on: Sequence[str]) -> Predicate | None:
    """A filter that the keys imply for their partitions, if they are few enough to list."""
    tests: list[Predicate] = []
    for name in on:
        column = decoded(rows.column(name))
        if pa.types.is_nested(column.type) or pa.types.is_float16(column.type):
            continue
        distinct = column.unique()
        if len(distinct) <= _MOST_KEYS:
            tests.append(In(column=name, values=tuple(distinct.drop_null()), negated=False))
    return None if not tests else tests[0] if len(tests) == 1 else And(operands=tuple(tests))
