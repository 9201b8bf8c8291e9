"""What callers name in a query: tables, datasets, frames, paths, as what a query reads."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.dataset as ds

from lancepart.errors import InvalidInputError
from lancepart.queries.sources import ArrowSource, DatasetSource, LanceSource, QuerySource, TableSource
from lancepart.read.dataset import PartitionedDataset
from lancepart.read.result import Result
from lancepart.read.scan import Scan
from lancepart.storage import lance_tables
from lancepart.storage.row_files import files_at, names_files
from lancepart.table import PartitionedTable, exists, open_table
from lancepart.write.dicts import are_dicts, table_of
from lancepart.write.streams import is_stream, stream_of


def source_of(name: str, data: object) -> QuerySource:
    """What a caller names in a query, as a source; paths are those of partitioned or plain Lance tables or of files."""
    if names_files(data) and not _is_table(data):
        return _files(data)
    if isinstance(data, str | os.PathLike):
        return source_of(name, open_table(data) if exists(data) else lance_tables.opened(os.fspath(data)))
    known = _as_it_is(data)
    return ArrowSource(_rows(name, data)) if known is None else known


def _is_table(data: object) -> bool:
    """Whether a path that looks like that of files, or like a glob, is a directory that holds a table."""
    return isinstance(data, str | os.PathLike) and os.path.isdir(data) and exists(data)


def _as_it_is(data: object) -> QuerySource | None:
    """What is read when the query runs; None of what is in memory, or is taken there first."""
    if isinstance(data, PartitionedTable):
        return TableSource(data.scan())
    if isinstance(data, Scan) and data.limit is None and not data.order and not data.offset and not data.with_row_id:
        return TableSource(data) if data.columns is None else DatasetSource(PartitionedDataset(data))
    if lance_tables.is_lance(data):
        return LanceSource(data)
    return DatasetSource(data) if isinstance(data, ds.Dataset) and not isinstance(data, ds.InMemoryDataset) else None


def _rows(name: str, data: object) -> pa.Table:
    """What a caller names in a query as rows in memory."""
    if isinstance(data, Result):
        return data.to_arrow()
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return data
    if are_dicts(data):
        return table_of(data)
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        return pa.Table.from_pandas(data, preserve_index=False)
    if is_stream(data):
        return stream_of(data, None).read_all()
    if hasattr(data, "__arrow_c_stream__"):
        return _stream(name, data).read_all()
    raise InvalidInputError(
        f"{name} is a {type(data).__name__}: a query reads tables of lancepart, lance.dataset, pyarrow, pandas, Polars "
        "and DuckDB, and paths of tables and files"
    )


def _stream(name: str, data: object) -> pa.RecordBatchReader:
    """Rows through Arrow's C stream, which a single column has too."""
    try:
        return pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid:
        raise InvalidInputError(f"{name} is a {type(data).__name__}, which has no columns: give a frame") from None


def _files(data: object) -> QuerySource:
    """Files by their paths or globs: read little by little where pyarrow's datasets know them."""
    files = files_at(data)
    dataset = files.dataset()
    if lance_tables.is_lance(dataset):
        return LanceSource(dataset)
    return ArrowSource(files.reader().read_all()) if dataset is None else DatasetSource(dataset)
