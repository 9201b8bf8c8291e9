"""Schema evolution by field id: no leaf is rewritten, each is read with the columns it has."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lancepart.errors import InvalidInputError, TableColumnNotFoundError, TableSchemaValidationError
from lancepart.layout.metadata import TableMetadata, as_stored
from lancepart.model.schema import (
    COMMENT,
    assign_field_ids,
    check_column_names,
    field_id,
    max_field_id,
    refuse_empty_names,
    schema_to_json,
)
from lancepart.model.spec import PartitionField
from lancepart.model.suggest import near


def add_column(metadata: TableMetadata, field: pa.Field) -> TableMetadata:
    """The definition with one more column, under an id that no column ever had."""
    if not isinstance(field, pa.Field):
        raise InvalidInputError(f"add_column takes a pyarrow.Field, not a {type(field).__name__}")
    if not field.nullable:
        raise InvalidInputError(f"column {field.name!r} must be nullable: rows written before have no value for it")
    if not field.name or field.name in metadata.schema.names:
        raise InvalidInputError(f"a new column can't be called {field.name!r}: that is {_fault(field.name)}")
    refuse_empty_names(pa.schema([field]))
    single = assign_field_ids(pa.schema([as_stored(field)]), start=metadata.last_field_id + 1)
    schema_to_json(single)
    schema = pa.schema([*metadata.schema, single.field(0)], metadata=metadata.schema.metadata)
    check_column_names(schema)
    return metadata.changed(schema=schema, last_field_id=max_field_id(single))


def rename_column(metadata: TableMetadata, old: str, new: str) -> TableMetadata:
    """The definition with a column under another name, and the same id."""
    index = _index(metadata, old)
    if new == old:
        return metadata
    if not isinstance(new, str) or not new or new in metadata.schema.names:
        raise InvalidInputError(f"column {old!r} can't be called {new!r}: that is {_fault(new)}")
    schema = metadata.schema.set(index, metadata.schema.field(index).with_name(new))
    check_column_names(schema)
    return metadata.changed(schema=schema, past=_remembering(metadata, index))


def drop_column(metadata: TableMetadata, name: str) -> TableMetadata:
    """The definition without a column; its id is never used again."""
    index = _index(metadata, name)
    if len(metadata.schema) == 1:
        raise InvalidInputError(f"column {name!r} is the last one")
    return metadata.changed(schema=metadata.schema.remove(index), past=_remembering(metadata, index))


def widen_column(metadata: TableMetadata, name: str, wanted: pa.DataType) -> TableMetadata:
    """The definition with a wider type for a column, and for the partition fields that hold its values."""
    if not isinstance(wanted, pa.DataType):
        raise InvalidInputError(f"widen_column takes a pyarrow.DataType, not a {type(wanted).__name__}")
    index = _index(metadata, name)
    field = metadata.schema.field(index)
    if field.type == wanted:
        return metadata
    if not widens(field.type, wanted):
        raise TableSchemaValidationError(
            f"column {name!r} is {field.type} and can't become {wanted}: integers, floats and decimals become wider"
        )
    number = field_id(field)
    specs = tuple(
        replace(spec, fields=tuple(_widened(each, number, wanted) for each in spec.fields)) for spec in metadata.specs
    )
    return metadata.changed(schema=metadata.schema.set(index, field.with_type(wanted)), specs=specs)


def comment_column(metadata: TableMetadata, name: str, comment: str | None) -> TableMetadata:
    """The definition with a comment on a column, or without one."""
    return annotate_column(metadata, name, COMMENT, comment)


def annotate_column(metadata: TableMetadata, name: str, key: str, text: str | None) -> TableMetadata:
    """The definition with a text in a column's metadata, or without one."""
    index = _index(metadata, name)
    field = metadata.schema.field(index)
    annotations = {own: value for own, value in field.metadata.items() if own != key.encode()}
    if text:
        annotations[key.encode()] = text.encode()
    if annotations == field.metadata:
        return metadata
    return metadata.changed(schema=metadata.schema.set(index, field.with_metadata(annotations)))


def widens(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a type may become another: every value it has is one there too, of the same kind.

    >>> widens(pa.int32(), pa.int64()), widens(pa.float32(), pa.float64()), widens(pa.int64(), pa.int32())
    (True, True, False)
    """
    kinds = pa.types
    if kinds.is_signed_integer(given) and kinds.is_signed_integer(wanted):
        return bool(given.bit_width < wanted.bit_width)
    if kinds.is_unsigned_integer(given) and kinds.is_unsigned_integer(wanted):
        return bool(given.bit_width < wanted.bit_width)
    if kinds.is_floating(given) and kinds.is_floating(wanted):
        return bool(given.bit_width < wanted.bit_width)
    if kinds.is_decimal(given) and kinds.is_decimal(wanted):
        return bool(given.scale == wanted.scale and given.precision < wanted.precision)
    return False


def _remembering(metadata: TableMetadata, index: int) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """The past names with that of a column: leaves of other writers may know it by no other."""
    field = metadata.schema.field(index)
    past = dict(metadata.past)
    number = int(field_id(field) or 0)
    past[number] = tuple(dict.fromkeys([*past.get(number, ()), field.name]))
    return tuple(sorted(past.items()))


def _widened(field: PartitionField, number: int | None, wanted: pa.DataType) -> PartitionField:
    holds_value = field.transform is not None and field.transform.keeps_type
    if holds_value and field.source_ids == (number,):
        return replace(field, result_type=wanted)
    return field


def _fault(name: object) -> str:
    return "not a string" if not isinstance(name, str) else "taken" if name else "empty"


def _index(metadata: TableMetadata, name: str) -> int:
    index = metadata.schema.get_field_index(name)
    if index < 0:
        known = ", ".join(metadata.schema.names)
        raise TableColumnNotFoundError(
            f"there is no column {name!r}: the table has {known}{near(name, metadata.schema.names)}"
        )
    return int(index)
