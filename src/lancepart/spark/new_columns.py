"""Columns that Spark's statements and frames define: Arrow's types for them, or a refusal where a type would change."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import types as spark

from lancepart.errors import UnsupportedOperationError
from lancepart.layout.columns import BLOB_MARK
from lancepart.model.schema import TEXT_LENGTH
from lancepart.spark.types import arrow_schema, commented, with_vectors

_BINARY = "UTF8_BINARY"
_PLACES = ("GeometryType", "GeographyType")
"""Types that Spark 4.1 may not have yet."""


def new_columns(schema: spark.StructType) -> pa.Schema:
    """The columns of a new table, with their comments, the lengths of texts and vectors, and what is a blob."""
    fields = [_plain(field) for field in schema]
    requested = spark.StructType(fields)
    columns = with_vectors(commented(arrow_schema(requested), requested), requested)
    return pa.schema([_with_blobs(field) for field in columns], metadata=columns.metadata)


def _with_blobs(field: pa.Field) -> pa.Field:
    return field.with_type(pa.large_binary()) if BLOB_MARK.encode() in (field.metadata or {}) else field


def _plain(field: spark.StructField) -> spark.StructField:
    """A column as it is stored: a CHAR or VARCHAR as STRING, with the length that Spark checks in the metadata."""
    kind, metadata = field.dataType, {**field.metadata}
    if isinstance(kind, spark.CharType | spark.VarcharType):
        metadata[TEXT_LENGTH] = kind.simpleString()
        kind = spark.StringType()
    if not isinstance(kind, spark.BinaryType):
        metadata.pop(BLOB_MARK, None)
    for each in _all(kind):
        if fault := _fault(each):
            raise UnsupportedOperationError(f"column {field.name!r} can't be {field.dataType.simpleString()}: {fault}")
    return spark.StructField(field.name, kind, field.nullable, metadata)


def _all(kind: spark.DataType) -> Iterator[spark.DataType]:
    yield kind
    match kind:
        case spark.StructType():
            for field in kind:
                yield from _all(field.dataType)
        case spark.ArrayType():
            yield from _all(kind.elementType)
        case spark.MapType():
            yield from _all(kind.keyType)
            yield from _all(kind.valueType)


def _fault(kind: spark.DataType) -> str | None:
    match kind:
        case spark.VariantType():
            return "there is no such type in Arrow; use STRING, and parse_json when reading"
        case spark.CharType() | spark.VarcharType():
            return "texts inside of other types have no length here; use STRING"
        case spark.StringType() if kind.collation != _BINARY:
            return "texts are compared by their bytes here; use STRING, and COLLATE in queries"
        case _ if type(kind).__name__ in _PLACES:
            return "it would become a struct of its parts; use BINARY, and ST_GeomFromWKB when reading"
        case _:
            return None
