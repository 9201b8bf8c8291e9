"""What is true of all leaves of a scan: the transforms whose value is the same for every row of a leaf.

Spark joins by these without a shuffle. Where leaves of several spec versions are read, only what all of them share is
reported; a column that the scan does not have, or that Spark holds differently, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.aliases import JsonMapping, JsonObject, Value
from lancepart.model.ordering import unscaled
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.transforms import Transform
from lancepart.model.transforms.spark_key import SparkKey


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart:
    """One part of a key: a function that the jar has too, of one column."""

    transform: str
    column: str
    buckets: int = 0

    def to_json(self) -> JsonObject:
        """The part as the jar reads it."""
        return {"transform": self.transform, "column": self.column, "buckets": self.buckets}


def key_parts(metadata: TableMetadata, spec_ids: Sequence[int], columns: Sequence[str]) -> tuple[KeyPart, ...]:
    """The parts that leaves of these spec versions have in common, over columns of the scan; the newest one's order."""
    specs = [spec for spec in metadata.specs if spec.id in set(spec_ids)]
    if not specs:
        return ()
    common = _keys(specs[0], metadata, columns)
    for spec in specs[1:]:
        own = _keys(spec, metadata, columns)
        merged = {each: common[each].common(key) for each, key in own.items() if each in common}
        common = {each: key for each, key in merged.items() if key is not None}
    return tuple(
        KeyPart(transform=key.function, column=column, buckets=key.number) for (_, column), key in common.items()
    )


def _keys(spec: PartitionSpec, metadata: TableMetadata, columns: Sequence[str]) -> dict[tuple[str, str], SparkKey]:
    """A spec's keys by family and column."""
    found: dict[tuple[str, str], SparkKey] = {}
    for at, field in enumerate(spec.fields):
        source = metadata.columns.get(field.source_ids[0])
        if source is None or source.name not in columns:
            continue
        own = _transforms(spec.fields, field.source_ids[0], source.type)
        key = own[at].spark_key(own.values()) if at in own else None
        if key is not None:
            name = key.family, source.name
            found[name] = key.finest(found.get(name, key))
    return found


def _transforms(fields: Sequence[PartitionField], source: int, kind: pa.DataType) -> dict[int, Transform]:
    """The transforms of one column that Spark computes alike, by the position of their field."""
    return {
        at: field.transform
        for at, field in enumerate(fields)
        if field.source_ids == (source,)
        and field.transform is not None
        and not (field.opaque or field.any_zone)
        and _is_faithful(field.transform, kind)
    }


def _is_faithful(transform: Transform, kind: pa.DataType) -> bool:
    """Whether the transform of Spark's value is that of ours; floats are out, as Spark joins them by another value."""
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if transform.spark_function is None or types.is_time(kind):
        return False
    if (
        isinstance(kind, pa.BaseExtensionType)
        or types.is_floating(kind)
        or types.is_duration(kind)
        or kind == pa.null()
    ):
        return False
    return not types.is_uint64(kind) or not transform.is_function


def key_of(parts: Sequence[KeyPart], leaf: Leaf, metadata: TableMetadata) -> tuple[Value, ...]:
    """A leaf's key, as JSON values that the jar turns into Spark's own."""
    spec = metadata.spec_of(leaf.spec_id)
    assert spec is not None
    names = {field.name: (number, field.type) for number, field in metadata.columns.items()}
    return tuple(_value(part, *names[part.column], spec.fields, leaf) for part in parts)


def _value(part: KeyPart, source: int, kind: pa.DataType, fields: Sequence[PartitionField], leaf: Leaf) -> Value:
    own = _transforms(fields, source, kind)
    values = {transform: _plain(leaf.key[at], transform.result_type([kind])) for at, transform in own.items()}
    keys = (transform.spark_key(values) for transform in values)
    key = next(each for each in keys if each is not None and each.yields(part.transform, part.buckets))
    return key.value(part.transform, part.buckets, values)


def _plain(text: str, kind: pa.DataType) -> Value:
    """A partition value of some type by its key text."""
    if text == "n":
        return None
    tag, rest = text[0], text[1:]
    match tag:
        case "s" | "x":
            return rest
        case "b":
            return rest == "1"
        case "T":
            return int(rest) if pa.types.is_time(kind) else int(rest) // 1_000
        case "d":
            return str(unscaled(Decimal(rest), kind.scale))
        case _:
            return rest if pa.types.is_uint64(kind) else int(rest)


def partition_sources(metadata: TableMetadata) -> list[str]:
    """The columns that some partition field is made of."""
    used = {number for spec in metadata.specs for field in spec.fields for number in field.source_ids}
    names = {metadata.owners[number].name for number in used if number in metadata.owners}
    return [name for name in metadata.schema.names if name in names]


def to_parts(reported: Sequence[JsonMapping]) -> tuple[KeyPart, ...]:
    """The parts that were reported to Spark before."""
    return tuple(KeyPart(**each) for each in reported)
