"""Arrow as Spark takes it: the type that stands for each of Arrow's, and batches converted to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import UnsupportedOperationError

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """A schema in types that Spark has; the names are the same.

    >>> spark_schema(pa.schema([("n", pa.uint32()), ("t", pa.timestamp("ns", "Europe/Paris"))])).types
    [DataType(int64), TimestampType(timestamp[us, tz=UTC])]
    """
    return pa.schema([_field(field) for field in schema])


def spark_type(data_type: Any) -> Any:
    """The type that Spark takes for one of Arrow's."""
    types = pa.types
    if data_type in _WIDER:
        return _WIDER[data_type]
    if isinstance(data_type, pa.BaseExtensionType):
        return spark_type(data_type.storage_type)
    if types.is_dictionary(data_type):
        return spark_type(data_type.value_type)
    if types.is_fixed_size_binary(data_type):
        return pa.binary()
    if types.is_timestamp(data_type):
        return pa.timestamp("us", None if data_type.tz is None else "UTC")
    if types.is_time(data_type):
        return pa.time64("ns")
    if types.is_duration(data_type):
        return pa.duration("us")
    if types.is_decimal(data_type):
        return _decimal(data_type)
    return _nested(data_type)


def _decimal(data_type: Any) -> Any:
    if data_type.precision > 38 or not 0 <= data_type.scale <= data_type.precision:
        raise UnsupportedOperationError(
            f"Spark has no type for {data_type}: its decimals have up to 38 digits; leave the column out"
        )
    return pa.decimal128(data_type.precision, data_type.scale)


def _nested(data_type: Any) -> Any:
    types = pa.types
    if types.is_struct(data_type):
        return pa.struct([_field(data_type.field(at)) for at in range(data_type.num_fields)])
    if types.is_map(data_type):
        return pa.map_(_field(data_type.key_field), _field(data_type.item_field))
    if any(
        test(data_type)
        for test in (
            types.is_list,
            types.is_large_list,
            types.is_fixed_size_list,
            types.is_list_view,
            types.is_large_list_view,
        )
    ):
        return pa.list_(_field(data_type.value_field))
    if types.is_run_end_encoded(data_type) or types.is_interval(data_type) or types.is_union(data_type):
        raise UnsupportedOperationError(f"Spark has no type for {data_type}: leave the column out")
    return data_type


def _field(field: Any) -> Any:
    return pa.field(field.name, spark_type(field.type), field.nullable)


def for_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch in the types of a schema that ``spark_schema`` made; nanoseconds are cut to microseconds, downwards."""
    arrays = [_converted(array, field.type) for array, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _converted(array: Any, wanted: Any) -> Any:
    if array.type == wanted:
        return array
    if isinstance(array, pa.ExtensionArray):
        return _converted(array.storage, wanted)
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        ticks = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        cut = pa.array(np.floor_divide(ticks, 1000), mask=array.is_null().to_numpy(zero_copy_only=False))
        return cut.cast(wanted)
    return pc.cast(array, wanted, safe=False)
