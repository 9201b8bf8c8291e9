"""How far partition values that another client stored can be derived from its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.values import logical_type
from lancepart.model.widening import UTC_ZONES


def trusted(spec: PartitionSpec, schema: pa.Schema, *, foreign: bool) -> PartitionSpec:
    """A spec whose fields are marked where their values can't be derived, so that nothing is concluded from them."""
    return replace(spec, fields=tuple(_trusted(field, schema, foreign=foreign) for field in spec.fields))


def _trusted(field: PartitionField, schema: pa.Schema, *, foreign: bool) -> PartitionField:
    kinds = _kinds(field, schema)
    opaque = is_inexact(field, kinds) or not field.holds_exactly(kinds)
    zoned = foreign and field.transform is not None and field.transform.is_time_part and _has_zone(kinds[0])
    return replace(field, opaque=opaque, any_zone=zoned) if opaque or zoned else field


def check_stored(spec: PartitionSpec, schema: pa.Schema) -> None:
    """Check the spec of an existing table; the document knows fields that we only read."""
    known = [field for field in spec.fields if not is_inexact(field, _kinds(field, schema))]
    replace(spec, fields=tuple(known)).check(schema)


def is_inexact(field: PartitionField, source_types: Sequence[pa.DataType]) -> bool:
    """Whether a field is one of the document's that we don't compute: what is left of a truncated float."""
    return field.transform is not None and field.transform.is_inexact(source_types[0])


def _kinds(field: PartitionField, schema: pa.Schema) -> list[pa.DataType]:
    return [pa.null() if source is None else source.type for source in field.sources(schema)]


def _has_zone(source_type: pa.DataType) -> bool:
    kind = logical_type(source_type)
    return bool(pa.types.is_timestamp(kind) and kind.tz not in UTC_ZONES)
