"""Table metadata sent to the JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lancepart.layout.layouts import capabilities
from lancepart.layout.metadata import TableMetadata
from lancepart.model.aliases import JsonMapping, JsonObject
from lancepart.model.partition_by import span_of
from lancepart.model.spec import PartitionField
from lancepart.spark.literals import is_exact
from lancepart.spark.spark_partitioning import key_parts, partition_sources
from lancepart.spark.table_messages import TableInfo
from lancepart.table import PartitionedTable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def schema_json(schema: StructType) -> JsonObject:
    """A schema of Spark's as a message carries it."""
    found: JsonObject = schema.jsonValue()
    return found


def table_info(table: PartitionedTable, version: int) -> TableInfo:
    """The metadata of a table that is open at a snapshot."""
    metadata = table.metadata
    parts = key_parts(metadata, [metadata.spec.id], metadata.schema.names)
    return TableInfo(
        version=version,
        sources=tuple(partition_sources(metadata)),
        exact=tuple(field.name for field in table.schema if is_exact(field.type)),
        partitioning=tuple(part.to_json() for part in parts),
        by=tuple(spelled(metadata)),
        fields=tuple(field.field_id for field in metadata.spec.fields),
        snapshots=capabilities(metadata).snapshots,
    )


def partitions_of(table: PartitionedTable) -> tuple[tuple[str | None, ...], ...]:
    """The values of the partitions of the newest partitioning that have rows, as texts."""
    found = table.inspect.partitions().to_pylist()
    newest = table.spec.id
    kept = [each for each in found if each["spec_id"] == newest and each["rows"]]
    return tuple(tuple(value for _, value in each["partition"]) for each in kept)


def spelled(metadata: TableMetadata) -> list[JsonMapping]:
    """The newest partitioning as SQL spells it; Spark shows only the last one of some names, as of buckets.

    A field whose column was dropped is left out: all new rows have NULL for it.
    """
    found: list[JsonMapping] = []
    columns = metadata.schema
    fields = [each for each in metadata.spec.fields if all(own is not None for own in each.sources(columns))]
    while fields:
        count = span_of(fields)
        own, fields = fields[max(count - 1, 0)], fields[max(count, 1) :]
        first = _spelled(own, metadata)
        name = f"{first['name']}s" if count else _shown(own, fields) or first["name"]
        found.append({**first, "name": name})
    return found


def _shown(field: PartitionField, later: Sequence[PartitionField]) -> str | None:
    """The name of a field that Spark would not show beside a later one of its own name; None: its own."""
    names = {each.transform.name for each in later if each.transform is not None}
    return field.transform.repeated_name if field.transform is not None and field.transform.name in names else None


def _spelled(field: PartitionField, metadata: TableMetadata) -> JsonObject:
    columns = [{"column": each.name} for each in field.sources(metadata.schema) if each is not None]
    if field.transform is None:
        return {"name": "expr", "arguments": [{"text": field.expression}, *columns]}
    numbers = [{"number": number} for number in field.transform.parameters]
    return {"name": field.transform.name, "arguments": [*numbers, *columns]}
