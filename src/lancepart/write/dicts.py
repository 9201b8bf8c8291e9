"""Rows that are dicts, as tables: every name that any of them has is a column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import TypeGuard

import pyarrow as pa

from lancepart.errors import InvalidInputError, TableSchemaValidationError
from lancepart.model.aliases import JsonObject, RowSource, Value
from lancepart.write.values import column_of

BUFFERED = 10_000
"""How many rows of a generator are read before its columns are known."""


def are_dicts(data: RowSource) -> TypeGuard[list[JsonObject]]:
    """Whether data is a list of rows that are dicts."""
    return isinstance(data, list) and all(isinstance(row, dict) for row in data)


def names_of(rows: Sequence[JsonObject]) -> list[str]:
    """The names that any row has, in the order in which they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row))


def table_of(rows: Sequence[JsonObject], schema: pa.Schema | None = None) -> pa.Table:
    """Rows as a table; columns that a schema has are of its types, the others of those that their values have.

    >>> table_of([{"a": 1}, {"a": 2, "b": "x"}]).to_pylist()
    [{'a': 1, 'b': None}, {'a': 2, 'b': 'x'}]
    """
    known = {} if schema is None else {field.name: field.type for field in schema}
    names = names_of(rows)
    return pa.table([_column([row.get(name) for row in rows], known.get(name), name) for name in names], names=names)


def _column(values: Sequence[Value], kind: pa.DataType | None, name: str) -> pa.Array:
    if kind is not None:
        return column_of(values, kind, name)
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TableSchemaValidationError(f"the values of column {name!r} have no type in common: {error}") from None


def batches_of(rows: Iterator[JsonObject], schema: pa.Schema | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """What a generator of dicts yields, with the columns that its first rows have; later ones must not have others."""
    first = table_of(list(islice(rows, BUFFERED)), schema)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first.to_batches()
        while more := list(islice(rows, BUFFERED)):
            late = [name for name in names_of(more) if name not in first.schema.names]
            if late:
                raise TableSchemaValidationError(
                    f"column {late[0]!r} is in none of the first {BUFFERED:,} rows of the generator, and in a later "
                    "one: let its first rows name all columns, or give a list"
                )
            arrays = [
                column_of([row.get(field.name) for row in more], field.type, field.name) for field in first.schema
            ]
            yield from pa.table(arrays, schema=first.schema).to_batches()

    return first.schema, batches()


def listed(data: RowSource) -> RowSource:
    """Data whose rows are held in memory anyway: a generator of dicts as a list, which knows what each row names."""
    if not isinstance(data, Iterator) or hasattr(data, "__arrow_c_stream__"):
        return data
    first = next(data, None)
    if first is None:
        return iter(())
    rest = chain([first], data)
    return list(flat(rest)) if isinstance(first, dict | list) else rest


def flat(parts: Iterator[object]) -> Iterator[JsonObject]:
    """The dicts that a generator yields, one by one or in lists."""
    for part in parts:
        for row in part if isinstance(part, list) else [part]:
            if not isinstance(row, dict):
                raise InvalidInputError(f"the generator yields dicts, and then a {type(row).__name__}: yield one kind")
            yield row
