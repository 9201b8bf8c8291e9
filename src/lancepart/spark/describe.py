"""What the jar is told of a table, and how an answer travels: as JSON on the first column of a schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from lancepart.layout.metadata import TableMetadata
from lancepart.model.aliases import JsonMapping, JsonObject
from lancepart.model.partition_by import span_of
from lancepart.model.spec import PartitionField
from lancepart.spark.literals import is_exact
from lancepart.spark.spark_partitioning import key_parts, partition_sources
from lancepart.spark.types import spark_schema
from lancepart.table import PartitionedTable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


ANSWER = "lancepart.answer"


def answering(schema: StructType, payload: object) -> StructType:
    """A schema of Spark's with an answer on its first column."""
    schema.fields[0].metadata = {**schema.fields[0].metadata, ANSWER: json.dumps(payload)}
    return schema


def only(payload: object) -> StructType:
    """An answer to a question that has nothing to do with columns."""
    return answering(spark_schema(pa.schema([("done", pa.bool_())])), payload)


def table_info(table: PartitionedTable, version: int) -> JsonObject:
    """What the jar must know of a table that is open at a snapshot, which every scan then names."""
    metadata = table.metadata
    return {
        "version": version,
        "sources": partition_sources(metadata),
        "exact": [field.name for field in table.schema if is_exact(field.type)],
        "partitioning": [part.to_json() for part in key_parts(metadata, [metadata.spec.id], metadata.schema.names)],
        "by": spelled(metadata),
        "fields": [field.field_id for field in metadata.spec.fields],
    }


def partitions_of(table: PartitionedTable) -> list[list[str | None]]:
    """The values of the partitions of the newest partitioning that have rows, as texts."""
    found = table.inspect.partitions().to_pylist()
    newest = table.spec.id
    return [[value for _, value in each["partition"]] for each in found if each["spec_id"] == newest and each["rows"]]


def spelled(metadata: TableMetadata) -> list[JsonMapping]:
    """The newest partitioning as SQL spells it; of several buckets Spark shows the last one only under that name."""
    found, fields = [], list(metadata.spec.fields)
    while fields:
        count = span_of(fields)
        first = _spelled(fields[max(count - 1, 0)], metadata)
        found.append({**first, "name": f"{first['name']}s"} if count else first)
        fields = fields[max(count, 1) :]
    buckets = [each for each in found if each["name"] == "bucket"]
    for each in buckets[:-1]:
        each["name"] = "multi_bucket"
    return list(found)


def _spelled(field: PartitionField, metadata: TableMetadata) -> JsonObject:
    columns = [{"column": each.name} for each in field.sources(metadata.schema) if each is not None]
    if field.transform is None:
        return {"name": "expr", "arguments": [{"text": field.expression}, *columns]}
    numbers = [{"number": number} for number in field.transform.parameters]
    return {"name": field.transform.name, "arguments": [*numbers, *columns]}
