"""Adding and dropping partition fields one by one: each change is a new version of the spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.layout import create
from lancepart.layout.metadata import TableMetadata
from lancepart.model.aliases import JsonMapping
from lancepart.model.partition_by import cycles, parse_partition_by
from lancepart.model.schema import assign_field_ids
from lancepart.model.spec import PartitionField

CYCLES = "cyclic_partitions"
"""The table property that says that a lone month, day or hour is meant."""

Fields = Sequence[str | PartitionField]


def added(metadata: TableMetadata, field: str) -> TableMetadata:
    """The definition with one more partition field, the innermost, or with those of a span of time."""
    wanted = parse_partition_by([field], metadata.schema)
    fresh = [each for each in wanted if not any(each.same_values(old) for old in metadata.spec.fields)]
    if not fresh:
        raise InvalidInputError(f"the table is partitioned by {field!r} already")
    return create.new_spec(metadata, [*metadata.spec.fields, field])


def dropped(metadata: TableMetadata, field: str) -> TableMetadata:
    """The definition without a partition field."""
    return _with(metadata, field, ())


def replaced(metadata: TableMetadata, field: str, by: str) -> TableMetadata:
    """The definition with another partition field in the place of one."""
    return _with(metadata, field, (by,))


def _with(metadata: TableMetadata, field: str, others: Fields) -> TableMetadata:
    meant = _meant(metadata, field)
    fields = metadata.spec.fields
    place = fields.index(meant[0])
    kept = [each for each in fields[place:] if each not in meant]
    left: Fields = (*fields[:place], *others, *kept)
    return create.new_spec(metadata, left)


def _meant(metadata: TableMetadata, text: str) -> list[PartitionField]:
    """The partition fields that a text refers to: one by its name, or by its definition."""
    for field in metadata.spec.fields:
        if field.field_id == text:
            return [field]
    known = ", ".join(field.field_id for field in metadata.spec.fields)
    try:
        wanted = parse_partition_by([text], metadata.schema)
    except InvalidInputError as error:
        raise InvalidInputError(f"there is no partition field {text!r}: the newest are {known} ({error})") from None
    found = [field for field in metadata.spec.fields if any(field.same_values(each) for each in wanted)]
    if len(found) < len(wanted):
        raise InvalidInputError(f"the table is not partitioned by {text!r}: the newest partition fields are {known}")
    return found


def refuse_cycles(
    fields: Sequence[PartitionField],
    schema: pa.Schema,
    properties: Mapping[str, str],
    before: Sequence[PartitionField] = (),
) -> None:
    """Refuse a month, day or hour without its parents, which users of SQL write and mean a span of time.

    ``before`` are fields that the table has already: cyclic ones among them are intended.
    """
    known = cycles(before)
    fresh = [field for field in cycles(fields) if field not in known]
    if not fresh or properties.get(CYCLES, "").lower() == "true":
        return
    (source,), name = fresh[0].sources(schema), fresh[0].transform.name  # type: ignore[union-attr]
    column = source.name if source is not None else "?"
    raise UnsupportedOperationError(
        f"PARTITIONED BY {name}({column}) would put the same {name} of all years into one partition: write "
        f"{name}s({column}) for {name}s of time, or confirm {name}({column}) with TBLPROPERTIES ({CYCLES} = 'true')"
    )


def refuse_new_cycles(by: Sequence[str], columns: pa.Schema, properties: Mapping[str, str]) -> None:
    """Refuse the same of a table that is about to be made."""
    numbered = assign_field_ids(columns)
    refuse_cycles(parse_partition_by(by, numbered), numbered, properties)


def field_rows(metadata: TableMetadata) -> list[JsonMapping]:
    """The newest spec, a row a field."""
    rows: list[JsonMapping] = []
    for field in metadata.spec.fields:
        names = [column.name if column is not None else "(removed)" for column in field.sources(metadata.schema)]
        what = field.expression if field.transform is None else field.transform.name
        rows.append(
            {"spec_id": metadata.spec.id, "field_id": field.field_id, "source": ", ".join(names), "transform": what}
        )
    return rows
