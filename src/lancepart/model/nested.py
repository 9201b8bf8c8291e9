"""Fields inside struct columns, by their paths: ``s.a``, with quotes around names that hold a dot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError
from lancepart.model.sql_text import tokens

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def path_of(name: object, schema: pa.Schema) -> tuple[str, ...] | None:
    """The path that a name refers to: a column, or a field inside one; None if there is no such.

    >>> path_of("s.`a.b`", pa.schema([("s", pa.struct([("a.b", pa.int64())]))]))
    ('s', 'a.b')
    """
    if not isinstance(name, str):
        return None
    if name in schema.names:
        return (name,)
    try:
        found = tokens(name)
    except InvalidInputError:
        return None
    dotted = len(found) % 2 == 1 and all(token.text == "." for token in found[1::2])
    names = [token.text if token.kind == "word" else token.name for token in found[::2]]
    path = tuple(each for each in names if each is not None)
    if not dotted or len(path) < len(names):
        return None
    return path if _inside(schema, path) is not None else None


def field_of(name: str, schema: pa.Schema) -> pa.Field:
    """The field that a name refers to, under just that name; one inside a struct may always be missing."""
    path = path_of(name, schema)
    field = None if path is None else _inside(schema, path)
    if field is None or path is None:
        raise InvalidInputError(f"there is no column {name!r}")
    return field if len(path) == 1 else pa.field(name, field.type)


def _inside(fields: pa.Schema, path: Sequence[str]) -> pa.Field | None:
    found = None
    for key in path:
        index = fields.get_field_index(key) if isinstance(fields, pa.Schema | pa.StructType) else -1
        if index < 0:
            return None
        found = fields.field(index)
        fields = found.type
    return found


def project(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """The columns, and the fields inside columns, that names refer to; NULL where a struct around one is."""
    arrays, fields = [], []
    for name in names:
        first, *rest = path_of(name, batch.schema) or (name,)
        array = batch.column(first)
        arrays.append(pc.struct_field(array, rest) if rest else array)
        fields.append(field_of(name, batch.schema))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def null_inside(array: pa.Array) -> pa.Array:
    """The same values, with NULL in the fields of structs that are NULL: DataFusion reads what lies beneath them.

    >>> hidden = pa.StructArray.from_arrays([pa.array([1, 2])], ["n"], mask=pa.array([False, True]))
    >>> null_inside(hidden).field("n").to_pylist()
    [1, None]
    """
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([null_inside(chunk) for chunk in array.chunks], array.type)
    if not isinstance(array, pa.StructArray) or not array.type.num_fields:
        return array
    nested = any(pa.types.is_struct(field.type) for field in array.type)
    if not nested and not array.null_count and not array.offset:
        return array
    inner = [null_inside(each) for each in array.flatten()]
    return pa.StructArray.from_arrays(inner, fields=list(array.type), mask=array.is_null())


def nulls_inside(rows: Rows) -> Rows:
    """The same rows, with NULL in the fields of structs that are NULL."""
    columns = [null_inside(column) for column in rows.columns]
    if all(new is old for new, old in zip(columns, rows.columns, strict=True)):
        return rows
    made: Rows = type(rows).from_arrays(columns, schema=rows.schema)
    return made
