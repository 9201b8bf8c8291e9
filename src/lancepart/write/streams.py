"""What users hold, as streams: datasets, scanners, generators, lazy frames, files; read little by little."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import pyarrow as pa
import pyarrow.dataset as ds

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import RowSource
from lancepart.storage.row_files import RowFiles, files_at, is_path
from lancepart.write.dicts import batches_of, flat


def is_stream(data: RowSource) -> bool:
    """Whether data is of a kind that only this module knows."""
    return (
        isinstance(data, RowFiles | ds.Dataset | ds.Scanner | Iterator)
        or is_path(data)
        or _is_lazy(data)
        or (hasattr(data, "to_reader") and not hasattr(data, "__arrow_c_stream__"))
    )


def is_repeatable(data: RowSource) -> bool:
    """Whether such data can be read more than once."""
    return not isinstance(data, Iterator | ds.Scanner) and not (
        hasattr(data, "to_reader") and not isinstance(data, RowFiles | ds.Dataset)
    )


def stream_of(data: RowSource, schema: pa.Schema | None) -> pa.RecordBatchReader:
    """Such data as a stream of record batches; a schema gives the types of text files."""
    if is_path(data):
        data = files_at(data)
    if isinstance(data, RowFiles):
        return data.reader(schema)
    if isinstance(data, ds.Dataset):
        return data.scanner().to_reader()
    if _is_lazy(data):
        return _of_parts(iter(data.collect_batches()), schema)  # type: ignore[attr-defined]
    if hasattr(data, "to_reader"):
        return data.to_reader()
    if isinstance(data, Iterator):
        return _of_parts(data, schema)
    raise InvalidInputError(f"can't read rows of a {type(data).__name__}")


def _is_lazy(data: RowSource) -> bool:
    return type(data).__module__.startswith("polars.") and type(data).__name__ == "LazyFrame"


def _of_parts(parts: Iterator[object], schema: pa.Schema | None) -> pa.RecordBatchReader:
    """What a generator yields: batches, tables, frames, lists of dicts or single dicts, all with the same columns."""
    first = next(parts, None)
    if first is None:
        return pa.RecordBatchReader.from_batches(schema if schema is not None else pa.schema([]), [])
    if isinstance(first, dict | list):
        return pa.RecordBatchReader.from_batches(*batches_of(flat(chain([first], parts)), schema))
    table = _table(first, None)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        for part in parts:
            yield from _table(part, table.schema).to_batches()

    return pa.RecordBatchReader.from_batches(table.schema, batches())


def _table(rows: object, like: pa.Schema | None) -> pa.Table:
    if isinstance(rows, pa.RecordBatch):
        found = pa.Table.from_batches([rows])
    elif isinstance(rows, pa.Table):
        found = rows
    elif type(rows).__module__.partition(".")[0] == "pandas":
        found = pa.Table.from_pandas(rows, schema=like, preserve_index=False)
    elif hasattr(rows, "__arrow_c_stream__"):
        found = pa.RecordBatchReader.from_stream(rows).read_all()
    else:
        raise InvalidInputError(
            f"the generator yields a {type(rows).__name__}: yield Arrow batches or tables, frames, or dicts"
        )
    return found if like is None or found.schema == like else found.select(like.names).cast(like)


def counted(stream: pa.RecordBatchReader, progress: Callable[[int], object] | None) -> pa.RecordBatchReader:
    """The same stream, with a callback for the rows read so far."""
    if progress is None:
        return stream

    def batches() -> Iterable[pa.RecordBatch]:
        rows = 0
        for batch in stream:
            yield batch
            rows += batch.num_rows
            progress(rows)

    return pa.RecordBatchReader.from_batches(stream.schema, chain(batches()))
