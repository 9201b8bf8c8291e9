"""Files that only a stream can be made of, JSON arrays and Arrow's streams: the columns and rows of each."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.fs as pa_fs
import pyarrow.ipc
import pyarrow.json as pa_json

from lancepart.errors import InvalidInputError
from lancepart.storage.json_arrays import ArrayLines

_FIRST_BYTES = 1_024
_ARROW_FILE = b"ARROW1"
_CUT_SHORT = "Expected to be able to read"
_ELEMENT_BYTES = 8 << 20
"""An element of a JSON array can have so many bytes; the first ones of a file say which columns there are."""


def is_stream(kind: str, path: str, system: pa_fs.FileSystem) -> bool:
    """Whether a file is of the form that pyarrow's datasets do not read."""
    if kind not in ("json", "ipc"):
        return False
    with system.open_input_stream(path) as stream:
        first = stream.read(_FIRST_BYTES)
    if kind == "json":
        return bool(first.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["))
    return bool(first) and not first.startswith(_ARROW_FILE)


def columns_of(kind: str, path: str, system: pa_fs.FileSystem) -> pa.Schema:
    """The columns of a file."""
    with _opened(kind, path, system, None) as reader:
        return reader.schema


def rows_of(kind: str, path: str, system: pa_fs.FileSystem, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a file, whose columns are known; JSON is read in their types."""
    with _opened(kind, path, system, columns) as reader:
        yield from reader


@contextmanager
def _opened(
    kind: str, path: str, system: pa_fs.FileSystem, columns: pa.Schema | None
) -> Iterator[pa.RecordBatchReader]:
    """The reader of a file; its errors name the file."""
    try:
        with system.open_input_stream(path) as stream:
            yield pa.ipc.open_stream(stream) if kind == "ipc" else _elements(stream, path, columns)
    except pa.ArrowInvalid as error:
        raise _refused(kind, path, error) from None
    except OSError as error:
        if _CUT_SHORT not in str(error):
            raise
        raise _refused(kind, path, error) from None


def _elements(stream: pa.NativeFile, path: str, columns: pa.Schema | None) -> pa.RecordBatchReader:
    lines = pa.PythonFile(io.BufferedReader(ArrayLines(stream, path), _ELEMENT_BYTES), mode="r")
    expected = pa_json.ParseOptions(explicit_schema=columns, unexpected_field_behavior="error" if columns else "infer")
    options = pa_json.ReadOptions(block_size=_ELEMENT_BYTES, use_threads=False)
    return pa_json.open_json(lines, read_options=options, parse_options=expected)


def _refused(kind: str, path: str, error: Exception) -> InvalidInputError:
    if kind == "ipc":
        return InvalidInputError(f"{path!r} can't be read as Arrow, neither as a file nor as a stream: {error}")
    if "unexpected field" in str(error):
        return InvalidInputError(
            f"{path!r} has a field that none of its first rows has: put a row with all fields, null where there is no "
            "value, at its beginning, or convert the file to Parquet"
        )
    return InvalidInputError(
        f"{path!r} can't be read as a JSON array of objects, each of at most {_ELEMENT_BYTES >> 20} MB: {error}"
    )


def fitted(batch: pa.RecordBatch, columns: pa.Schema, constants: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
    """A batch in the columns of all files: those of folders have their values, and those that it lacks are NULL."""
    arrays = []
    for field in columns:
        at = batch.schema.get_field_index(field.name)
        if field.name in constants:
            arrays.append(pa.repeat(constants[field.name], batch.num_rows))
        elif at < 0:
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            arrays.append(batch.column(at).cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)
