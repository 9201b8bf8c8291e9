"""Converting rows between the table's columns and those of a leaf."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.format.names import LEAF_ID
from lancepart.layout.metadata import map_children, without_ids
from lancepart.model.schema import COMMENT, FIELD_ID, TEXT_LENGTH, field_id
from lancepart.storage.leaf_handle import BLOBS_AS_BYTES

if TYPE_CHECKING:
    from lancepart.layout.matching import Matching

BLOB_TYPE = "lance.blob.v2"


class BlobHandling(TypedDict):
    """How a scan of Lance gives blobs."""

    blob_handling: Literal["all_binary"]


AS_BYTES: BlobHandling = {"blob_handling": BLOBS_AS_BYTES}
BLOB_MARK = "lance-encoding:blob"
_RESERVED = {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}


def leaf_schema(schema: Iterable[pa.Field]) -> pa.Schema:
    """The schema to give a new leaf: each field carries its id under a key that Lance keeps."""
    taken: set[str] = set()
    fields = []
    for field in schema:
        name = physical_name(field.name, field_id(field) or 0, taken)
        taken.add(name)
        fields.append(_for_leaf(field).with_name(name))
    return pa.schema(fields)


def _for_leaf(field: pa.Field) -> pa.Field:
    """A field under its id; its comment and length stay with the table, where they can change."""
    own = (FIELD_ID.encode(), COMMENT.encode(), TEXT_LENGTH.encode())
    kept = {key: value for key, value in (field.metadata or {}).items() if key not in own}
    number = field_id(field)
    if number is not None:
        kept[LEAF_ID.encode()] = str(number).encode()
    return pa.field(field.name, map_children(field.type, _for_leaf), field.nullable, kept or None)


def leaf_field_id(field: pa.Field) -> int | None:
    """The id that a leaf's field carries, if lancepart wrote it."""
    text = (field.metadata or {}).get(LEAF_ID.encode())
    return int(text) if text is not None and text.isdigit() else None


def bare(arrow_type: pa.DataType) -> pa.DataType:
    """A type without what Lance does not keep of it, for comparing.

    That is the metadata of nested fields, a dictionary's order, and that a fixed-size list has no null inside.
    """
    if pa.types.is_dictionary(arrow_type):
        return pa.dictionary(arrow_type.index_type, bare(arrow_type.value_type))
    nullable = pa.types.is_fixed_size_list(arrow_type)
    return map_children(arrow_type, lambda field: pa.field(field.name, bare(field.type), nullable or field.nullable))


def is_marked(field: pa.Field) -> bool:
    """Whether a column of bytes is marked to hold blobs."""
    return bool((field.metadata or {}).get(BLOB_MARK.encode()) == b"true")


def is_blob(arrow_type: pa.DataType) -> bool:
    """Whether a type is Lance's own for blobs."""
    return isinstance(arrow_type, pa.BaseExtensionType) and arrow_type.extension_name == BLOB_TYPE


def stores(leaf_type: pa.DataType, field: pa.Field) -> bool:
    """Whether a leaf's type is how Lance stores a column; bytes that are marked as blobs get a type of their own."""
    marked = is_blob(field.type) or is_marked(field)
    alike = leaf_type == field.type or bare(leaf_type) == bare(field.type)
    return alike or (is_blob(leaf_type) and marked)


def converted(array: pa.Array | pa.ChunkedArray, wanted: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """An array in another type; a blob is read as its bytes, and made of them."""
    if array.type == wanted:
        return array
    if not is_blob(wanted):
        return pc.cast(array, wanted)
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([converted(chunk, wanted) for chunk in array.chunks], wanted)
    data = pc.cast(array, pa.large_binary())
    parts = [data if field.name == "data" else pa.nulls(len(data), field.type) for field in wanted.storage_type]
    storage = pa.StructArray.from_arrays(parts, fields=list(wanted.storage_type), mask=pc.is_null(data))
    return pa.ExtensionArray.from_storage(wanted, storage)


def to_table_columns(batch: pa.RecordBatch, schema: pa.Schema, matching: Matching) -> pa.RecordBatch:
    """A leaf's batch as the table shows it: renamed, widened, and NULL for columns that the leaf does not have."""
    if not len(schema):
        return batch.select([])
    arrays = []
    for field in schema:
        number = field_id(field)
        name = matching.names.get(number) if number is not None else None
        target = without_ids(field)
        if name is None:
            value = matching.constants.get(number) if number is not None else None
            arrays.append(constant(value, target.type, batch.num_rows))
            continue
        array = batch.column(batch.schema.get_field_index(name))
        arrays.append(converted(array, target.type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([without_ids(field) for field in schema]))


def constant(value: pa.Scalar | None, wanted: pa.DataType, count: int) -> pa.Array:
    """One value as a column of its own; None is NULL."""
    if value is None or not value.is_valid:
        return pa.nulls(count, wanted)
    return converted(pa.repeat(value, count), wanted)


def physical_name(wanted: str, number: int, taken: set[str]) -> str:
    """What to call a column in a leaf: its name, unless Lance can't have it there or another column still does.

    >>> physical_name("a.b", 3, set()), physical_name("a", 3, {"a"})
    ('a%2Eb', 'a__3')
    """
    name = wanted.replace(".", "%2E").replace("`", "%60")
    name = f"%5F{name[1:]}" if name in _RESERVED else name
    while name in taken:
        name = f"{name}__{number}"
    return name


def to_leaf_columns(rows: pa.Table, schema: pa.Schema, leaf: pa.Schema, matching: Matching) -> pa.Table:
    """Rows of the table as an existing leaf stores them; columns removed from the table are NULL."""
    by_name = {name: number for number, name in matching.names.items()}
    positions = {field_id(field): index for index, field in enumerate(schema)}
    arrays = []
    for field in leaf:
        index = positions.get(by_name.get(field.name))
        arrays.append(
            pa.nulls(rows.num_rows, field.type) if index is None else converted(rows.column(index), field.type)
        )
    return pa.table(arrays, schema=leaf)
