"""Conversion between Arrow and Spark types, and of arrays for Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable
from inspect import signature
from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.layout.columns import BLOB_MARK, converted, is_blob
from lancepart.model.aliases import JsonMapping, Value
from lancepart.model.schema import COMMENT, TEXT_LENGTH
from lancepart.write.casts import cast
from lancepart.write.fits import may_fit

_PLAIN: dict[pa.DataType, spark.DataType] = {
    pa.null(): spark.NullType(),
    pa.bool_(): spark.BooleanType(),
    pa.int8(): spark.ByteType(),
    pa.int16(): spark.ShortType(),
    pa.int32(): spark.IntegerType(),
    pa.int64(): spark.LongType(),
    pa.uint8(): spark.ShortType(),
    pa.uint16(): spark.IntegerType(),
    pa.uint32(): spark.LongType(),
    pa.uint64(): spark.DecimalType(20, 0),
    pa.float16(): spark.FloatType(),
    pa.float32(): spark.FloatType(),
    pa.float64(): spark.DoubleType(),
    pa.date32(): spark.DateType(),
    pa.date64(): spark.DateType(),
    pa.string(): spark.StringType(),
    pa.large_string(): spark.StringType(),
    pa.string_view(): spark.StringType(),
    pa.binary(): spark.BinaryType(),
    pa.large_binary(): spark.BinaryType(),
    pa.binary_view(): spark.BinaryType(),
}

VECTOR = "arrow.fixed-size-list.size"
"""Under this key Lance's own Spark connector keeps the length of vectors too."""

_TEXTS = (COMMENT, TEXT_LENGTH, BLOB_MARK)


class _Zone(TypedDict, total=False):
    timezone: str


_UTC: _Zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
"""Spark 4.1 has no other zone, and no name for it."""


def spark_schema(schema: Iterable[pa.Field]) -> spark.StructType:
    """An Arrow schema as Spark's; a column that Spark has no type for is named in the error."""
    fields = []
    for field in schema:
        try:
            fields.append(spark.StructField(field.name, spark_type(field.type), field.nullable, _metadata(field)))
        except UnsupportedOperationError as error:
            raise UnsupportedOperationError(f"column {field.name!r} can't be read on Spark: {error}") from None
    return spark.StructType(fields)


def _metadata(field: pa.Field) -> dict[str, Value]:
    """A field's comment and the length of its texts, where Spark has them too; how long its vectors are; its blobs."""
    held = field.metadata or {}
    found: dict[str, Value] = {key: held[key.encode()].decode() for key in _TEXTS if key.encode() in held}
    if pa.types.is_fixed_size_list(field.type):
        found[VECTOR] = field.type.list_size
    if is_blob(field.type):
        found[BLOB_MARK] = "true"
    return found


def spark_type(kind: pa.DataType) -> spark.DataType:
    """The Spark type that holds every value of an Arrow type; only nanoseconds are cut to microseconds.

    >>> spark_type(pa.list_(pa.float32(), 4)).simpleString(), spark_type(pa.uint32()).simpleString()
    ('array<float>', 'bigint')
    """
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return spark.BinaryType() if is_blob(kind) else spark_type(kind.storage_type)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if types.is_fixed_size_binary(kind):
        return spark.BinaryType()
    if types.is_timestamp(kind):
        return spark.TimestampType() if kind.tz is not None else spark.TimestampNTZType()
    if types.is_time(kind):
        return spark.TimeType({"s": 0, "ms": 3}.get(kind.unit, 6))
    if types.is_duration(kind):
        return spark.DayTimeIntervalType()
    if types.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return spark.DecimalType(kind.precision, kind.scale)
    return _nested(kind)


def _nested(kind: pa.DataType) -> spark.DataType:
    types = pa.types
    if types.is_struct(kind):
        return spark_schema(kind)
    if types.is_map(kind):
        return spark.MapType(spark_type(kind.key_type), spark_type(kind.item_type), kind.item_field.nullable)
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)
    if any(test(kind) for test in lists):
        return spark.ArrayType(spark_type(kind.value_type), kind.value_field.nullable)
    raise UnsupportedOperationError(f"Spark has no type for {kind}")


def read_schema(spelled: str | JsonMapping) -> spark.StructType:
    """A schema of Spark's from its JSON; a user-defined type is what it is stored as.

    PySpark itself would import the class that such a type names, or unpickle it.
    """
    try:
        given = json.loads(spelled) if isinstance(spelled, str) else spelled
        return spark.StructType.fromJson(_without_classes(given))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, PySparkException) as error:
        raise InvalidInputError(f"not a schema in Spark's JSON: {error!r}") from None


def read_type(spelled: str | JsonMapping) -> spark.DataType:
    """A type of Spark's from its JSON, as ``read_schema`` reads those of columns."""
    kind = json.loads(spelled) if isinstance(spelled, str) else spelled
    field = {"name": "type", "type": kind, "nullable": True, "metadata": {}}
    return read_schema({"type": "struct", "fields": [field]}).fields[0].dataType


def _without_classes(given: Value) -> Value:
    match given:
        case {"type": "udt", "sqlType": kind}:
            return _without_classes(kind)
        case {"type": "udt"}:
            raise ValueError("a user-defined type does not say what it is stored as")
        case dict():
            return {key: _without_classes(value) for key, value in given.items()}
        case list():
            return [_without_classes(value) for value in given]
        case _:
            return given


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema in which Spark takes rows."""
    return to_arrow_schema(schema, **_UTC)


def commented(columns: pa.Schema, schema: spark.StructType) -> pa.Schema:
    """An Arrow schema with the comments and lengths that Spark's columns have."""
    texts = [{key: field.metadata[key] for key in _TEXTS if field.metadata.get(key)} for field in schema]
    fields = [field.with_metadata(held) if held else field for field, held in zip(columns, texts, strict=True)]
    return pa.schema(fields, metadata=columns.metadata)


def with_vectors(columns: pa.Schema, schema: spark.StructType) -> pa.Schema:
    """An Arrow schema whose lists are vectors of fixed length where Spark's columns say how long."""
    return pa.schema([_sized(field, given) for field, given in zip(columns, schema, strict=True)], columns.metadata)


def _sized(field: pa.Field, given: spark.StructField) -> pa.Field:
    size = given.metadata.get(VECTOR)
    if size is not None and pa.types.is_list(field.type):
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise InvalidInputError(f"column {field.name!r}: {VECTOR} is {size!r}; give the length of its vectors")
        return field.with_type(pa.list_(field.type.value_field, size))
    if isinstance(given.dataType, spark.StructType):
        inner = pa.struct([_sized(each, own) for each, own in zip(field.type, given.dataType, strict=True)])
        return field.with_type(inner)
    return field


def as_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch in the Arrow schema in which Spark takes it."""
    arrays = [as_spark_array(batch.column(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def as_spark_array(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """An array in the type in which Spark takes it; times are cut toward the past, as their hashes are."""
    if array.type == wanted:
        return array
    if isinstance(array, pa.ExtensionArray):
        stored = pc.struct_field(array.storage, "data") if is_blob(array.type) else array.storage
        return as_spark_array(stored, wanted)
    kind = array.type
    if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns":
        return _floored(array).cast(wanted)
    return pc.cast(array, wanted, safe=False) if pa.types.is_nested(kind) else pc.cast(array, wanted)


def _floored(array: pa.Array) -> pa.Array:
    ticks = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False) // 1_000
    plain = pa.array(ticks, mask=pc.is_null(array).to_numpy(zero_copy_only=False))
    whole = pa.duration("us") if pa.types.is_duration(array.type) else pa.timestamp("us", array.type.tz)
    return plain.cast(whole)


def from_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch that Spark gives, in a table's own types; a value that one of them can't hold is refused."""
    arrays = [_taken(array, field.type, field.name) for array, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _taken(array: pa.Array, wanted: pa.DataType, name: str) -> pa.Array:
    if is_blob(wanted):
        return converted(array, wanted)
    if isinstance(wanted, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(wanted, _taken(array, wanted.storage_type, name))
    if pa.types.is_float16(wanted) and pa.types.is_floating(array.type):
        array = _halved(array, wanted)
    return cast(array, wanted, name)


def _halved(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The nearest values of a type that Spark has not; those that are too large stay, so that they are refused."""
    near = pc.cast(pc.cast(array, wanted), array.type)
    return pc.if_else(pc.or_(pc.is_finite(near), pc.invert(pc.is_finite(array))), near, array)


def may_be_taken(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type of Spark's can be values of a table's type."""
    if is_blob(wanted):
        return bool(pa.types.is_binary(given) or pa.types.is_large_binary(given))
    stored = wanted.storage_type if isinstance(wanted, pa.BaseExtensionType) else wanted
    return may_fit(given, stored)
