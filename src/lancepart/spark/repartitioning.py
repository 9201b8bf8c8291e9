"""Partition fields that come and go one by one: each change is a new version of the spec, made of the newest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lancepart.errors import InvalidInputError
from lancepart.layout import create
from lancepart.layout.metadata import TableMetadata
from lancepart.model.partition_by import parse_partition_by
from lancepart.model.spec import PartitionField

Fields = Sequence[str | PartitionField]


def added(metadata: TableMetadata, field: str) -> TableMetadata:
    """The definition with one more partition field, the innermost."""
    (wanted,) = parse_partition_by([field], metadata.schema)
    if any(wanted.same_values(each) for each in metadata.spec.fields):
        raise InvalidInputError(f"the table is partitioned by {field!r} already")
    return create.new_spec(metadata, [*metadata.spec.fields, field])


def dropped(metadata: TableMetadata, field: str) -> TableMetadata:
    """The definition without a partition field."""
    return _with(metadata, field, ())


def replaced(metadata: TableMetadata, field: str, by: str) -> TableMetadata:
    """The definition with another partition field in the place of one."""
    return _with(metadata, field, (by,))


def _with(metadata: TableMetadata, field: str, others: Fields) -> TableMetadata:
    fields = metadata.spec.fields
    place = fields.index(_meant(metadata, field))
    left: Fields = (*fields[:place], *others, *fields[place + 1 :])
    if not left:
        raise InvalidInputError(f"{field!r} is the last partition field: a table needs at least one, so replace it")
    return create.new_spec(metadata, left)


def _meant(metadata: TableMetadata, text: str) -> PartitionField:
    """The partition field that a text means: by its name, or as it would be written anew."""
    for field in metadata.spec.fields:
        if field.field_id == text:
            return field
    known = ", ".join(field.field_id for field in metadata.spec.fields)
    try:
        (wanted,) = parse_partition_by([text], metadata.schema)
    except InvalidInputError as error:
        raise InvalidInputError(f"there is no partition field {text!r}: the newest are {known} ({error})") from None
    for field in metadata.spec.fields:
        if field.same_values(wanted):
            return field
    raise InvalidInputError(f"the table is not partitioned by {text!r}: the newest partition fields are {known}")


def told(metadata: TableMetadata) -> list[Mapping[str, Any]]:
    """The newest spec, a row a field."""
    rows: list[Mapping[str, Any]] = []
    for field in metadata.spec.fields:
        names = [column.name if column is not None else "(removed)" for column in field.sources(metadata.schema)]
        what = field.expression if field.transform is None else field.transform.name
        rows.append(
            {"spec_id": metadata.spec.id, "field_id": field.field_id, "source": ", ".join(names), "transform": what}
        )
    return rows
