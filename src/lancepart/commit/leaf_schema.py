"""Preparing a leaf to take rows of the table's current schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as dataclass_field

import pyarrow as pa

from lancepart.layout.columns import (
    AS_BYTES,
    is_blob,
    is_marked,
    leaf_field_id,
    leaf_schema,
    physical_name,
    to_table_columns,
)
from lancepart.layout.matching import Matching
from lancepart.layout.metadata import TableMetadata
from lancepart.model.schema import field_id
from lancepart.storage import leaf_data, leaf_handle, leaf_record
from lancepart.storage.cache import cache
from lancepart.storage.leaf_data import Fragments
from lancepart.storage.leaf_handle import LeafHandle, LeafShape
from lancepart.storage.open_leaves import kept_leaf
from lancepart.storage.root import Root


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafColumns:
    """The columns of a leaf that can take rows of the table as they are."""

    shape: LeafShape
    matching: Matching


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A version of a leaf that can take rows, ``rewritten`` for that if need be, and open if it was there already."""

    version: int | None
    columns: LeafColumns
    rewritten: bool = False
    handle: LeafHandle | None = None


_Kind = tuple[str, frozenset[tuple[bytes, bytes]]]


@dataclass(frozen=True, slots=True)
class _Known:
    """What holds for all leaves under one definition: the columns of a new one, and of each kind that was met."""

    metadata: TableMetadata
    new: pa.Schema
    met: dict[_Kind, LeafColumns] = dataclass_field(default_factory=dict)


_recent: list[_Known] = []


def _known(metadata: TableMetadata) -> _Known:
    """What is known under a definition; that of the last one used is kept, for the many leaves of one commit."""
    known = next((each for each in _recent if each.metadata is metadata), None)
    if known is None:
        known = _Known(metadata, leaf_schema(metadata.schema))
        _recent[:] = [known]
    return known


def _kind(handle: LeafHandle) -> _Kind:
    """What tells a leaf from those with other columns."""
    return leaf_record.fingerprint(handle), frozenset((handle.schema.metadata or {}).items())


def stage_new_rows(
    root: Root, metadata: TableMetadata, location: str, rows: pa.Table, file_bytes: int | None = None
) -> tuple[pa.Schema, Fragments]:
    """Write rows for a leaf that does not exist yet; its schema, and the fragments."""
    fitted = _new_rows(metadata, rows)
    return fitted.schema, leaf_data.stage(root, location, fitted, base=None, file_bytes=file_bytes)


def create_with_rows(
    root: Root, metadata: TableMetadata, location: str, rows: pa.Table
) -> tuple[int, Fragments] | None:
    """Make version 1 of a leaf that does not exist yet out of rows, unless that takes several steps.

    It does for blobs, and for dictionaries: Lance would write down something of theirs that later versions lack.
    """
    fitted = _new_rows(metadata, rows)
    if any(is_blob(field.type) or is_marked(field) or _has_dictionary(field.type) for field in fitted.schema):
        return None
    return leaf_data.create_with_rows(root, location, fitted)


def _has_dictionary(kind: pa.DataType) -> bool:
    """Whether a type, or one inside it, is a dictionary."""
    inner = [kind.field(at).type for at in range(kind.num_fields)]
    return pa.types.is_dictionary(kind) or any(map(_has_dictionary, inner))


def _new_rows(metadata: TableMetadata, rows: pa.Table) -> pa.Table:
    """Rows of the table in the columns of a new leaf."""
    schema = _known(metadata).new
    return rows.rename_columns(schema.names).cast(schema)


def as_it_is(root: Root, metadata: TableMetadata, location: str, version: int | None) -> Prepared | None:
    """A version of a leaf that takes rows of the table's schema as it is, open; None if another must be made."""
    kept = kept_leaf(root, location, version)
    shared = None if version is None or metadata.foreign else cache.session
    handle = leaf_handle.open_leaf(root, location, version, session=shared) if kept is None else kept
    met, kind = _known(metadata).met, _kind(handle)
    if (columns := met.get(kind)) is None:
        shape = leaf_handle.shape_of(handle)
        matching = Matching.of(shape, metadata, location)
        if _is_outgrown(shape, matching, metadata) or matching.missing(metadata.schema):
            return None
        columns = met[kind] = LeafColumns(shape=shape, matching=matching)
    return Prepared(version=version, columns=columns, handle=handle)


def _is_outgrown(shape: LeafShape, matching: Matching, metadata: TableMetadata) -> bool:
    """Whether a leaf must be rewritten to take rows, because added columns would not do."""
    return bool(matching.narrower(metadata.schema)) or _stuck(shape, matching, metadata)


def prepared(root: Root, metadata: TableMetadata, location: str, version: int | None) -> Prepared:
    """A version of a leaf that can take rows of the table's schema as it is now, made if need be."""
    if (ready := as_it_is(root, metadata, location, version)) is not None:
        return ready
    handle = leaf_handle.open_leaf(root, location, version)
    shape = leaf_handle.shape_of(handle)
    matching = Matching.of(shape, metadata, location)
    if _is_outgrown(shape, matching, metadata):
        return _rewritten(root, metadata, location, version, handle)
    missing = matching.missing(metadata.schema)
    taken = set(shape.schema.names)
    fields = []
    for field in leaf_schema(missing):
        number = leaf_field_id(field)
        name = physical_name(field.name, number if number is not None else 0, taken)
        taken.add(name)
        fields.append(field.with_name(name).with_nullable(True))
    extended = leaf_data.add_columns(root, location, fields, base=version)
    newer = leaf_handle.shape_of(leaf_handle.open_leaf(root, location, extended if version is not None else None))
    if newer.ids[: len(shape.ids)] != shape.ids:
        return _rewritten(root, metadata, location, version, handle)
    columns = LeafColumns(shape=newer, matching=Matching.of(newer, metadata, location))
    return Prepared(version=extended if version is not None else None, columns=columns)


def _stuck(shape: LeafShape, matching: Matching, metadata: TableMetadata) -> bool:
    """Whether the leaf has a column that the table dropped and that may not be null, so that no row can be added."""
    known = {field_id(field) for field in metadata.schema}
    kept = {name for number, name in matching.names.items() if number in known}
    return any(field.name not in kept and not field.nullable for field in shape.schema)


def _rewritten(root: Root, metadata: TableMetadata, location: str, version: int | None, handle: LeafHandle) -> Prepared:
    """A version of a leaf with exactly the table's columns, all rows rewritten."""
    shape = leaf_handle.shape_of(handle)
    matching = Matching.of(shape, metadata, location)
    schema = leaf_schema(metadata.schema)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in handle.scanner(**AS_BYTES).to_batches():
            shown = to_table_columns(batch, metadata.schema, matching)
            yield pa.RecordBatch.from_arrays(shown.columns, schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    newer, _ = leaf_data.rewrite(root, location, reader, base=version)
    made = newer if version is not None else None
    fresh = leaf_handle.shape_of(leaf_handle.open_leaf(root, location, made))
    columns = LeafColumns(shape=fresh, matching=Matching.of(fresh, metadata, location))
    return Prepared(version=made, columns=columns, rewritten=True)
