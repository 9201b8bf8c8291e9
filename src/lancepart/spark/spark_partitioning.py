"""What is true of all leaves of a scan: the transforms whose value is the same for every row of a leaf.

Spark joins by these without a shuffle. Where leaves of several spec versions are read, only what all of them share is
reported; a column that the scan does not have, or that Spark holds differently, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import gcd

import numpy as np
import pyarrow as pa

from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.aliases import JsonMapping, JsonObject, Value
from lancepart.model.ordering import unscaled
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.transforms import CALENDAR, Bucket, Transform

_DEPTHS = ("year", "year_month", "year_month_day", "year_month_day_hour")


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
    common: dict[tuple[str, str], int] | None = None
    for spec in specs:
        own = _strengths(spec, metadata, columns)
        if common is None:
            common = own
        else:
            shared = [each for each in own if each in common]
            common = {each: _merged(each[0], common[each], own[each]) for each in shared}
    assert common is not None
    parts = []
    for (family, column), strength in common.items():
        if family == "time":
            parts.append(KeyPart(transform=_DEPTHS[strength], column=column))
        elif family != "bucket":
            parts.append(KeyPart(transform=family, column=column))
        elif strength > 1:
            parts.append(KeyPart(transform="bucket", column=column, buckets=strength))
    return tuple(parts)


def _merged(family: str, one: int, other: int) -> int:
    return gcd(one, other) if family == "bucket" else min(one, other)


def _strengths(spec: PartitionSpec, metadata: TableMetadata, columns: Sequence[str]) -> dict[tuple[str, str], int]:
    """A spec's parts by family and column, each with how fine it is: a number of buckets, how far down the year."""
    found: dict[tuple[str, str], int] = {}
    for field in spec.fields:
        source = metadata.columns.get(field.source_ids[0]) if len(field.source_ids) == 1 else None
        if source is None or source.name not in columns or field.transform is None:
            continue
        if field.opaque or field.any_zone:
            continue
        if not _is_faithful(field.transform, source.type):
            continue
        function = str(field.transform.spark_function)
        depth = _depth(spec, field.source_ids[0])
        if isinstance(field.transform, Bucket):
            found[function, source.name] = max(field.transform.num_buckets, found.get((function, source.name), 0))
        elif field.transform in CALENDAR[: depth + 1]:
            found["time", source.name] = depth
        else:
            found[function, source.name] = 0
    return found


def _depth(spec: PartitionSpec, source: int) -> int:
    """How far a spec goes down from the year by one column: -1 without a year, 3 down to the hour."""
    parts = {field.transform for field in spec.fields if field.source_ids == (source,)}
    depth = -1
    while depth < 3 and CALENDAR[depth + 1] in parts:
        depth += 1
    return depth


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
    own = {
        _label(field.transform): leaf.key[index]
        for index, field in enumerate(fields)
        if field.source_ids == (source,) and field.transform is not None
    }
    if part.transform == "bucket":
        multiples = {label: text for label, text in own.items() if label.startswith("bucket_")}
        text = next(text for label, text in multiples.items() if int(label[7:]) % part.buckets == 0)
        return None if text == "n" else int(text[1:]) % part.buckets
    if part.transform in _DEPTHS:
        texts = [own[each.name] for each in CALENDAR[: _DEPTHS.index(part.transform) + 1]]
        return None if "n" in texts else _moment(part.transform, [int(text[1:]) for text in texts])
    return _plain(own[part.transform], kind)


def _label(transform: Transform) -> str:
    return f"bucket_{transform.num_buckets}" if isinstance(transform, Bucket) else str(transform.spark_function)


def _moment(transform: str, numbers: Sequence[int]) -> int:
    """Parts from the year down as the one number that the jar's function gives."""
    year, month, day, hour = [*numbers, 1, 1, 0][: len(numbers)] + [1, 1, 0][len(numbers) - 1 :]
    if transform == "year":
        return year
    if transform == "year_month":
        return year * 12 + month - 1
    months = np.datetime64(year * 12 + month - 1 - 1970 * 12, "M")
    days = int(months.astype("M8[D]").astype(np.int64)) + day - 1
    return days if transform == "year_month_day" else days * 24 + hour


def _plain(text: str, kind: pa.DataType) -> Value:
    """A value of the column's own type by its key text."""
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
