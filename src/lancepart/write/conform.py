"""Data as it comes, made to fit the table's schema or refused, before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError, TableSchemaValidationError
from lancepart.write.elsewhere import is_spark

CHUNK_ROWS = 4_000_000
CHUNK_BYTES = 256 * 1024 * 1024


def batches(data: Any, schema: Any) -> Iterator[Any]:
    """The rows of anything that has Arrow inside, in the table's schema, in tables of bounded size."""
    held: list[Any] = []
    rows = size = 0
    for batch in reader(data, schema):
        if batch.num_rows == 0:
            continue
        fitted = fit(pa.Table.from_batches([batch]), schema)
        held.append(fitted)
        rows, size = rows + batch.num_rows, size + fitted.nbytes
        if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield pa.concat_tables(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.concat_tables(held)


def is_rereadable(data: Any) -> bool:
    """Whether data can be read more than once; a stream can't."""
    return not isinstance(data, pa.RecordBatchReader)


def rereadable(data: Any) -> Any:
    """Data that can be read more than once: a stream is taken into memory, anything else is so already."""
    return data if is_rereadable(data) else data.read_all()


def reader(data: Any, schema: Any) -> Any:
    """A stream of record batches out of what a user holds; its columns are checked before its first row."""
    if isinstance(data, pa.RecordBatchReader):
        stream = data
    elif isinstance(data, pa.Table):
        stream = data.to_reader()
    elif isinstance(data, pa.RecordBatch):
        stream = pa.RecordBatchReader.from_batches(data.schema, [data])
    elif type(data).__module__.partition(".")[0] == "pandas":
        stream = _from_pandas(data).to_reader()
    elif is_spark(data):
        stream = data.toArrow().to_reader()
    elif hasattr(data, "__arrow_c_stream__"):
        stream = pa.RecordBatchReader.from_stream(data)
    elif isinstance(data, list) and all(isinstance(row, dict) for row in data):
        stream = _from_dicts(data, schema).to_reader()
    else:
        raise InvalidInputError(
            f"can't write a {type(data).__name__}: give a pyarrow Table, RecordBatch or reader, a pandas or polars "
            "DataFrame, anything with __arrow_c_stream__, or a list of dicts"
        )
    check(stream.schema, schema)
    return stream


def _from_pandas(frame: Any) -> Any:
    """A DataFrame's columns; its index is not one of them."""
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TableSchemaValidationError(f"the DataFrame does not fit Arrow's types: {error}") from None


def _from_dicts(rows: list[dict[str, Any]], schema: Any) -> Any:
    extra = sorted({name for row in rows for name in row} - set(schema.names))
    if extra:
        raise TableSchemaValidationError(f"column {extra[0]!r} is not in the table: it has {', '.join(schema.names)}")
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TableSchemaValidationError(f"the rows do not fit the table's schema: {error}") from None


def check(given: Any, schema: Any) -> None:
    """Refuse columns that the table does not have, or has in another type, or must have."""
    doubled = {name for name in given.names if given.names.count(name) > 1}
    if doubled:
        raise TableSchemaValidationError(f"column {min(doubled)!r} stands twice in the data")
    extra = [name for name in given.names if name not in schema.names]
    if extra:
        raise TableSchemaValidationError(
            f"column {extra[0]!r} is not in the table: it has {', '.join(schema.names)}; add_column makes new ones"
        )
    for field in schema:
        index = given.get_field_index(field.name)
        if index < 0 and not field.nullable:
            raise TableSchemaValidationError(f"column {field.name!r} is missing, and may not be null")
        if index >= 0 and not fits(given.field(index).type, field.type):
            raise TableSchemaValidationError(
                f"column {field.name!r} is {given.field(index).type} in the data and {field.type} in the table, "
                "which would lose values: cast it first"
            )


def fit(rows: Any, schema: Any) -> Any:
    """Rows with all columns of the table, in its order and types."""
    arrays = []
    for field in schema:
        index = rows.schema.get_field_index(field.name)
        array = pa.chunked_array([pa.nulls(rows.num_rows, field.type)]) if index < 0 else rows.column(index)
        if array.type != field.type:
            array = _cast(array, field)
        if not field.nullable and array.null_count:
            raise TableSchemaValidationError(f"column {field.name!r} may not be null, and {array.null_count} rows are")
        arrays.append(array)
    return pa.table(arrays, schema=schema)


def _cast(array: Any, field: Any) -> Any:
    try:
        return pc.cast(array, field.type)
    except pa.ArrowException as error:
        raise TableSchemaValidationError(f"column {field.name!r} does not fit {field.type}: {error}") from None


def fits(given: Any, wanted: Any) -> bool:
    """Whether every value of one type is a value of the other, whatever it is.

    >>> fits(pa.int32(), pa.int64()), fits(pa.int64(), pa.int32()), fits(pa.large_string(), pa.string())
    (True, False, True)
    """
    if given == wanted or pa.types.is_null(given):
        return True
    if pa.types.is_dictionary(given):
        return fits(given.value_type, wanted)
    if pa.types.is_dictionary(wanted):
        return fits(given, wanted.value_type)
    return (
        _fits_number(given, wanted)
        or _fits_bytes(given, wanted)
        or _fits_time(given, wanted)
        or _fits_nested(given, wanted)
    )


def _fits_number(given: Any, wanted: Any) -> bool:
    t = pa.types
    if t.is_integer(given) and t.is_integer(wanted):
        if t.is_signed_integer(given) == t.is_signed_integer(wanted):
            return bool(given.bit_width <= wanted.bit_width)
        return bool(t.is_signed_integer(wanted) and given.bit_width < wanted.bit_width)
    if t.is_floating(given) and t.is_floating(wanted):
        return bool(given.bit_width <= wanted.bit_width)
    if t.is_decimal(given) and t.is_decimal(wanted):
        return bool(given.scale <= wanted.scale and given.precision - given.scale <= wanted.precision - wanted.scale)
    return False


def _fits_bytes(given: Any, wanted: Any) -> bool:
    t = pa.types

    def is_text(kind: Any) -> bool:
        return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))

    def is_bytes(kind: Any) -> bool:
        return bool(
            t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind)
        )

    if is_text(given) and is_text(wanted):
        return True
    return is_bytes(given) and is_bytes(wanted) and not t.is_fixed_size_binary(wanted)


def _fits_time(given: Any, wanted: Any) -> bool:
    t = pa.types
    order = ("s", "ms", "us", "ns")
    if t.is_date(given) and t.is_date(wanted):
        return bool(t.is_date32(given))
    if t.is_timestamp(given) and t.is_timestamp(wanted):
        zoned = (given.tz is None) == (wanted.tz is None)
        return zoned and order.index(given.unit) <= order.index(wanted.unit)
    if (t.is_time(given) and t.is_time(wanted)) or (t.is_duration(given) and t.is_duration(wanted)):
        return order.index(given.unit) <= order.index(wanted.unit)
    return False


def _fits_nested(given: Any, wanted: Any) -> bool:
    t = pa.types
    if t.is_struct(given) and t.is_struct(wanted):
        names = [given.field(i).name for i in range(given.num_fields)]
        own = [wanted.field(i) for i in range(wanted.num_fields)]
        return names == [field.name for field in own] and all(
            fits(given.field(i).type, field.type) for i, field in enumerate(own)
        )
    if t.is_map(given) and t.is_map(wanted):
        return fits(given.key_type, wanted.key_type) and fits(given.item_type, wanted.item_type)
    if t.is_fixed_size_list(wanted):
        sized = t.is_fixed_size_list(given) and given.list_size == wanted.list_size
        return (sized or t.is_list(given) or t.is_large_list(given)) and fits(given.value_type, wanted.value_type)
    if t.is_list(wanted) or t.is_large_list(wanted):
        listed = t.is_list(given) or t.is_large_list(given) or t.is_fixed_size_list(given)
        return bool(listed) and fits(given.value_type, wanted.value_type)
    return False
