"""Preparing a leaf to take rows of the table's current schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lancepart.layout.columns import (
    AS_BYTES,
    leaf_field_id,
    leaf_schema,
    physical_name,
    to_table_columns,
)
from lancepart.layout.matching import Matching
from lancepart.layout.metadata import TableMetadata
from lancepart.model.schema import field_id
from lancepart.storage import leaf_data
from lancepart.storage.leaf_data import Fragments, LeafShape
from lancepart.storage.root import Root


def stage_new_rows(root: Root, metadata: TableMetadata, location: str, rows: pa.Table) -> tuple[pa.Schema, Fragments]:
    """Write rows for a leaf that does not exist yet; the schema that it gets, and what was written."""
    schema = leaf_schema(metadata.schema)
    fitted = rows.rename_columns(schema.names).cast(schema)
    return schema, leaf_data.stage(root, location, fitted, base=None)


def prepared(
    root: Root, metadata: TableMetadata, location: str, version: int | None
) -> tuple[int | None, LeafShape, bool]:
    """A version of a leaf that can take rows of the table's schema as it is now, made if need be.

    The third value says whether all its rows were rewritten for that.
    """
    handle = leaf_data.open_leaf(root, location, version)
    shape = leaf_data.shape_of(handle)
    matching = Matching.of(shape, metadata, location)
    if matching.narrower(metadata.schema) or _stuck(shape, matching, metadata):
        return *_rewritten(root, metadata, location, version, handle), True
    missing = matching.missing(metadata.schema)
    if not missing:
        return version, shape, False
    taken = set(shape.schema.names)
    fields = []
    for field in leaf_schema(missing):
        number = leaf_field_id(field)
        name = physical_name(field.name, number if number is not None else 0, taken)
        taken.add(name)
        fields.append(field.with_name(name).with_nullable(True))
    extended = leaf_data.add_columns(root, location, fields, base=version)
    newer = leaf_data.shape_of(leaf_data.open_leaf(root, location, extended if version is not None else None))
    if newer.ids[: len(shape.ids)] != shape.ids:
        return *_rewritten(root, metadata, location, version, handle), True
    return (extended if version is not None else None), newer, False


def _stuck(shape: LeafShape, matching: Matching, metadata: TableMetadata) -> bool:
    """Whether the leaf has a column that the table dropped and that may not be null, so that no row can be added."""
    known = {field_id(field) for field in metadata.schema}
    kept = {name for number, name in matching.names.items() if number in known}
    return any(field.name not in kept and not field.nullable for field in shape.schema)


def _rewritten(
    root: Root, metadata: TableMetadata, location: str, version: int | None, handle: Any
) -> tuple[int | None, LeafShape]:
    """A version of a leaf with the table's columns and no others, all rows written anew."""
    shape = leaf_data.shape_of(handle)
    matching = Matching.of(shape, metadata, location)
    schema = leaf_schema(metadata.schema)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in handle.to_batches(**AS_BYTES):
            shown = to_table_columns(batch, metadata.schema, matching)
            yield pa.RecordBatch.from_arrays(shown.columns, schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    newer, _ = leaf_data.rewrite(root, location, reader, base=version)
    fresh = leaf_data.open_leaf(root, location, newer if version is not None else None)
    return (newer if version is not None else None), leaf_data.shape_of(fresh)
