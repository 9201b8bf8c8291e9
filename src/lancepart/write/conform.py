"""Converting input data to the table's schema, or refusing it, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.errors import InvalidInputError, TableSchemaValidationError
from lancepart.model.aliases import JsonObject, RowSource, Value
from lancepart.model.suggest import near
from lancepart.read.result import Result
from lancepart.write.casts import cast
from lancepart.write.dicts import are_dicts, listed, names_of, table_of
from lancepart.write.fits import fits, may_fit
from lancepart.write.frames import is_spark
from lancepart.write.streams import is_repeatable, is_stream, stream_of
from lancepart.write.values import column_of, is_missing

if TYPE_CHECKING:
    import pandas as pd

CHUNK_ROWS = 4_000_000
CHUNK_BYTES = 256 * 1024 * 1024


def batches(data: RowSource, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of anything that has Arrow inside, in the table's schema, in tables of bounded size."""
    for rows in partial_batches(data, schema, complete=True):
        refuse_nulls(rows.table)
        yield rows.table


def _check_missing(names: Iterable[str], schema: pa.Schema) -> None:
    for name in names:
        if not schema.field(name).nullable:
            raise TableSchemaValidationError(f"column {name!r} is missing, and may not be null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows with all columns of the table; ``unnamed`` are, for each column, the rows that leave it out."""

    table: pa.Table
    unnamed: Mapping[str, npt.NDArray[np.bool_]]


def partial_batches(data: RowSource, schema: pa.Schema, *, complete: bool = False) -> Iterator[Rows]:
    """Rows that may leave columns out, in tables of bounded size; what is left out is NULL.

    ``complete`` ones may leave out only what may be null.
    """
    if are_dicts(data):
        for chunk in _from_dicts(data, schema):
            _check_missing(chunk.unnamed if complete else (), schema)
            yield chunk
        return
    buffered: list[pa.Table] = []
    rows = size = 0
    stream = reader(data, schema)
    missing = [name for name in schema.names if name not in stream.schema.names]
    _check_missing(missing if complete else (), schema)
    for batch in stream:
        if batch.num_rows == 0:
            continue
        if not len(stream.schema):
            raise TableSchemaValidationError("the data has rows and no column: name at least one")
        fitted = fit(pa.Table.from_batches([batch]), schema)
        buffered.append(fitted)
        rows, size = rows + batch.num_rows, size + fitted.nbytes
        if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield _without(pa.concat_tables(buffered), missing)
            buffered, rows, size = [], 0, 0
    if buffered:
        yield _without(pa.concat_tables(buffered), missing)


def _without(table: pa.Table, missing: Sequence[str]) -> Rows:
    return Rows(table=table, unnamed={name: np.ones(table.num_rows, dtype=bool) for name in missing})


def is_rereadable(data: RowSource) -> bool:
    """Whether data can be read more than once; a stream, and what only hands one out, perhaps can't."""
    if is_stream(data):
        return is_repeatable(data)
    kept = isinstance(data, pa.Table | pa.RecordBatch | Result) or _is_frame(data) or is_spark(data)
    return kept or not hasattr(data, "__arrow_c_stream__")


def _is_frame(data: RowSource) -> TypeGuard[pd.DataFrame]:
    return type(data).__module__.partition(".")[0] in ("pandas", "polars")


def rereadable(data: RowSource) -> RowSource:
    """Data that can be read more than once: a stream is taken into memory, anything else is so already."""
    if is_rereadable(data) or are_dicts(data := listed(data)):
        return data
    return stream_of(data, None).read_all() if is_stream(data) else pa.RecordBatchReader.from_stream(data).read_all()


def reader(data: RowSource, schema: pa.Schema | None) -> pa.RecordBatchReader:
    """A stream of record batches out of what a user holds; its columns are checked before its first row."""
    if isinstance(data, pa.RecordBatchReader):
        stream = data
    elif isinstance(data, pa.Table):
        stream = data.to_reader()
    elif isinstance(data, pa.RecordBatch):
        stream = pa.RecordBatchReader.from_batches(data.schema, [data])
    elif type(data).__module__.partition(".")[0] == "pandas":
        frame = _from_pandas(data, schema) if schema is not None else pa.Table.from_pandas(data, preserve_index=False)
        stream = frame.to_reader()
    elif is_spark(data):
        stream = data.toArrow().to_reader()
    elif is_stream(data):
        stream = stream_of(data, schema)
    elif hasattr(data, "__arrow_c_stream__"):
        stream = pa.RecordBatchReader.from_stream(data)
    else:
        if isinstance(data, list) and not data:
            raise InvalidInputError("the list has no rows, so that nothing says which columns there are: give a schema")
        hint = " of columns without pyarrow.table around it" if isinstance(data, dict) else ""
        raise InvalidInputError(
            f"can't write a {type(data).__name__}{hint}: give a pyarrow Table, RecordBatch or reader, a DataFrame of "
            "pandas or Polars, a dataset, a generator, a path of files, anything with "
            "__arrow_c_stream__, or a list of dicts"
        )
    if schema is not None:
        check(stream.schema, schema)
    return stream


def any_rows(data: RowSource, schema: pa.Schema) -> pa.Table:
    """All rows that a user holds, in their own columns; values of dicts take the types of the table's columns."""
    if are_dicts(data):
        return table_of(data, schema) if any(data) else schema.empty_table()
    if type(data).__module__.partition(".")[0] == "pandas":
        own = [field for field in schema if field.name in map(str, data.columns)]  # type: ignore[attr-defined]
        extra = [name for name in map(str, data.columns) if name not in schema.names]  # type: ignore[attr-defined]
        rows = pa.Table.from_pandas(data[extra], preserve_index=False) if extra else None  # type: ignore[index]
        fitted = _from_pandas(data.drop(columns=extra), pa.schema(own))  # type: ignore[attr-defined]
        for name in extra:
            assert rows is not None
            fitted = fitted.append_column(name, rows.column(name))
        return fitted
    return reader(data, None).read_all()


def named(data: RowSource, schema: pa.Schema) -> frozenset[str]:
    """The columns that at least one row names, as far as that is known without reading a stream."""
    if are_dicts(data):
        return frozenset(names_of(data))
    if is_spark(data) or _is_frame(data):
        return frozenset(map(str, data.columns))
    found = getattr(data, "schema", None)
    return frozenset(found.names if isinstance(found, pa.Schema) else schema.names)


def _from_pandas(frame: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    """A DataFrame's columns; its index is not one of them, and what pandas calls missing is NULL, NaN too."""
    if not hasattr(frame, "columns"):
        raise InvalidInputError(f"can't write a pandas {type(frame).__name__}: give a DataFrame")
    names = [str(name) for name in frame.columns]
    _check_names(names, schema)
    arrays = []
    for at, name in enumerate(names):
        series = frame.iloc[:, at]
        if series.dtype == object:
            values = [None if _is_nan(value) else value for value in series]
            arrays.append(column_of(values, schema.field(name).type, name))
            continue
        try:
            found = pa.array(series)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise TableSchemaValidationError(f"column {name!r} of the DataFrame has no Arrow type: {error}") from None
        arrays.append(found)
    return pa.table(arrays, names=names) if names else pa.table([pa.nulls(len(frame))], names=["_"]).select([])


def _is_nan(value: Value) -> bool:
    return is_missing(value) or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def _from_dicts(rows: list[JsonObject], schema: pa.Schema) -> Iterator[Rows]:
    _check_names(names_of(rows), schema)
    empty = [at for at, row in enumerate(rows) if not row]
    if empty:
        raise TableSchemaValidationError(f"row {empty[0]} of the data is empty: name at least one column")
    for start in range(0, len(rows), CHUNK_ROWS):
        chunk = rows[start : start + CHUNK_ROWS]
        arrays = [column_of([row.get(field.name) for row in chunk], field.type, field.name) for field in schema]
        unnamed = {name: np.array([name not in row for row in chunk], dtype=bool) for name in schema.names}
        yield Rows(
            table=pa.table(arrays, schema=schema),
            unnamed={name: which for name, which in unnamed.items() if which.any()},
        )


def refuse_doubled(names: Sequence[str]) -> None:
    """Refuse data with several columns of one name."""
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        raise TableSchemaValidationError(f"column {min(doubled)!r} appears twice in the data")


def _check_names(names: Sequence[str], schema: pa.Schema) -> None:
    refuse_doubled(names)
    extra = [name for name in names if name not in schema.names]
    if extra:
        raise TableSchemaValidationError(
            f"column {extra[0]!r} is not in the table: it has {', '.join(schema.names)}; add_column makes new ones"
            f"{near(extra[0], schema.names)}"
        )


def check(given: pa.Schema, schema: pa.Schema) -> None:
    """Refuse columns that the table does not have, or has in a type that values of theirs never fit."""
    _check_names(given.names, schema)
    for field in given:
        wanted = schema.field(field.name).type
        if not may_fit(field.type, wanted):
            raise TableSchemaValidationError(
                f"column {field.name!r} is {field.type} in the data and {wanted} in the table: cast it first"
            )


def check_complete(given: pa.Schema, schema: pa.Schema) -> None:
    """Refuse what ``check`` refuses, and data that lacks a column which may not be null."""
    check(given, schema)
    _check_missing([name for name in schema.names if name not in given.names], schema)


def fit(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with all columns of the table, in its order and types; those that they lack are NULL."""
    arrays = []
    for field in schema:
        index = rows.schema.get_field_index(field.name)
        given = pa.chunked_array([pa.nulls(rows.num_rows, field.type)]) if index < 0 else rows.column(index)
        arrays.append(cast(given, field.type, field.name))
    return pa.table(arrays, schema=schema)


def refuse_nulls(rows: pa.Table) -> None:
    """Refuse NULL where a column may not be."""
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if not field.nullable and column.null_count:
            raise TableSchemaValidationError(f"column {field.name!r} may not be null, and {column.null_count} rows are")


__all__ = [
    "CHUNK_ROWS",
    "Rows",
    "batches",
    "check",
    "check_complete",
    "fit",
    "fits",
    "is_rereadable",
    "named",
    "partial_batches",
    "refuse_nulls",
    "rereadable",
]
