"""Columns of bytes that are marked as blobs, as Lance stores them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from lance.fragment import FragmentMetadata

_MARK = b"lance-encoding:blob"
_EXTENSION = {b"ARROW:extension:name": b"lance.blob.v2"}
_STORED = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
_SINCE = (2, 2)


def stored_schema(schema: pa.Schema, fragments: Sequence[FragmentMetadata]) -> pa.Schema:
    """The schema that fragments of a new table were written with.

    From file format 2.2 on Lance makes a struct of marked bytes. Its children have ids too, so that columns after it
    have other ids than in the schema that was given.
    """
    files = [file for item in fragments for file in item.files]
    if all((file.file_major_version, file.file_minor_version) < _SINCE for file in files):
        return schema
    return pa.schema([_stored(field) for field in schema], metadata=schema.metadata)


def _stored(field: pa.Field) -> pa.Field:
    held = field.metadata or {}
    if held.get(_MARK) == b"true" and _is_bytes(field.type):
        kept = {key: value for key, value in held.items() if key != _MARK}
        return pa.field(field.name, _STORED, field.nullable, kept | _EXTENSION)
    return field


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
