"""Staged rows of one leaf, and how they become a version of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lancepart.layout.columns import (
    Matching,
    leaf_field_id,
    leaf_schema,
    physical_name,
    to_leaf_columns,
    to_table_columns,
)
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.schema import field_id
from lancepart.storage import leafdata
from lancepart.storage.leafdata import Fragments, LeafShape
from lancepart.storage.root import Root


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """Rows written to a leaf's directory, invisible so far.

    ``onto`` is the leaf's version that was published when they were staged, and ``base`` the one that they go on top
    of: the same, or one made of it to have the table's columns. Both are ``None`` for a new leaf, and in weak mode.
    """

    object_id: str
    key: tuple[str, ...]
    values: tuple[Any, ...]
    fragments: Fragments
    shape: LeafShape
    base: int | None
    is_new: bool
    onto: int | None = None

    @property
    def location(self) -> str:
        """The leaf's directory."""
        return self.fragments.location

    def plus(self, other: Staged) -> Staged:
        """More rows of the same leaf."""
        return replace(self, fragments=self.fragments + other.fragments)


def stage_new(root: Root, metadata: TableMetadata, object_id: str, location: str, part: Any) -> Staged:
    """Write the first rows of a leaf that does not exist yet."""
    schema = leaf_schema(metadata.schema)
    rows = part.rows.rename_columns(schema.names).cast(schema)
    fragments = leafdata.stage(root, location, rows, base=None)
    shape = LeafShape(schema=schema, ids=())
    return Staged(
        object_id=object_id, key=part.key, values=part.values, fragments=fragments, shape=shape, base=None, is_new=True
    )


def stage_existing(root: Root, metadata: TableMetadata, leaf: Leaf, part: Any, *, held: Staged | None = None) -> Staged:
    """Write rows to a leaf that exists, in the columns that it has, after giving it those that it lacks.

    ``held`` are rows staged for it before, so that it need not be prepared again.
    """
    if held is not None:
        base, shape = held.base, held.shape
    else:
        base, shape = prepared(root, metadata, leaf.location, leaf.read_version)
    matching = Matching.of(shape.schema, shape.native_ids)
    rows = to_leaf_columns(part.rows, metadata.schema, shape.schema, matching)
    fragments = leafdata.stage(root, leaf.location, rows, base=base if base is not None else "latest")
    return Staged(
        object_id=leaf.object_id,
        key=leaf.key,
        values=part.values,
        fragments=fragments,
        shape=shape,
        base=base,
        onto=leaf.read_version,
        is_new=False,
    )


def prepared(root: Root, metadata: TableMetadata, location: str, version: int | None) -> tuple[int | None, LeafShape]:
    """A version of a leaf that can take rows of the table's schema as it is now, made if need be."""
    handle = leafdata.open_leaf(root, location, version)
    shape = leafdata.shape_of(handle)
    matching = Matching.of(shape.schema, shape.native_ids)
    if matching.narrower(metadata.schema) or _stuck(shape, matching, metadata):
        return _rewritten(root, metadata, location, version, handle)
    missing = matching.missing(metadata.schema)
    if not missing:
        return version, shape
    taken = set(shape.schema.names)
    fields = []
    for field in leaf_schema(missing):
        number = leaf_field_id(field)
        name = physical_name(field.name, number if number is not None else 0, taken)
        taken.add(name)
        fields.append(field.with_name(name).with_nullable(True))
    extended = leafdata.add_columns(root, location, fields, base=version)
    newer = leafdata.shape_of(leafdata.open_leaf(root, location, extended if version is not None else None))
    if newer.ids[: len(shape.ids)] != shape.ids:
        return _rewritten(root, metadata, location, version, handle)
    return (extended if version is not None else None), newer


def _stuck(shape: LeafShape, matching: Matching, metadata: TableMetadata) -> bool:
    """Whether the leaf has a column that the table dropped and that may not be null, so that no row can be added."""
    known = {field_id(field) for field in metadata.schema}
    kept = {name for number, name in matching.names.items() if number in known}
    return any(field.name not in kept and not field.nullable for field in shape.schema)


def _rewritten(
    root: Root, metadata: TableMetadata, location: str, version: int | None, handle: Any
) -> tuple[int | None, LeafShape]:
    """A version of a leaf with the table's columns and no others, all rows written anew."""
    shape = leafdata.shape_of(handle)
    matching = Matching.of(shape.schema, shape.native_ids)
    schema = leaf_schema(metadata.schema)

    def batches() -> Any:
        for batch in handle.to_batches():
            shown = to_table_columns(batch, metadata.schema, matching)
            yield pa.RecordBatch.from_arrays(shown.columns, schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    newer, _ = leafdata.rewrite(root, location, reader, base=version)
    fresh = leafdata.open_leaf(root, location, newer if version is not None else None)
    return (newer if version is not None else None), leafdata.shape_of(fresh)


def restaged(root: Root, metadata: TableMetadata, staged: Staged, leaf: Leaf) -> Staged:
    """Staged rows written again for a leaf that turned out to be another one, or to have other columns."""
    source = leafdata.as_dataset(root, staged.location, staged.shape.schema, staged.fragments.items, base=staged.base)
    shape = leafdata.shape_of(source)
    rows = to_rows(source, metadata, Matching.of(shape.schema, shape.native_ids))
    return stage_existing(root, metadata, leaf, _Rows(rows=rows, values=staged.values))


def rebased(root: Root, metadata: TableMetadata, staged: Staged, leaf: Leaf) -> Staged:
    """Staged rows for a leaf that others may have changed since; written again only if its columns became others."""
    if leaf.read_version == staged.onto:
        return staged
    base, shape = prepared(root, metadata, leaf.location, leaf.read_version)
    if shape.ids == staged.shape.ids:
        return replace(staged, base=base, onto=leaf.read_version)
    return restaged(root, metadata, staged, leaf)


def to_rows(source: Any, metadata: TableMetadata, matching: Matching) -> Any:
    """All rows of a dataset in the table's schema."""
    batches = [to_table_columns(batch, metadata.schema, matching) for batch in source.to_batches()]
    return pa.Table.from_batches(batches, schema=metadata.plain_schema.remove_metadata())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    rows: Any
    values: tuple[Any, ...]
