"""Loading: a table out of data, and files of any size into a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.layout import same_definition
from lancepart.model.aliases import FileFormat, RowSource, TableLayout, Transactions
from lancepart.model.spec import PartitionField
from lancepart.storage.row_files import files_at, is_path
from lancepart.table.functions import create_table, discard_new_table, exists, open_table
from lancepart.table.partitioned import PartitionedTable
from lancepart.write.conform import reader
from lancepart.write.dicts import are_dicts, table_of
from lancepart.write.streams import counted

Progress = Callable[[int], object]


def create_table_from(
    root: str | os.PathLike[str],
    data: RowSource,
    partition_by: Sequence[str | PartitionField],
    *,
    schema: pa.Schema | None = None,
    transactions: Transactions = "strong",
    layout: TableLayout = "manifest",
    progress: Progress | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionedTable:
    """Make a table with the columns of some data, or of a schema, and write the data to it.

    If that fails, the table is removed again, unless others have committed to it meanwhile. A Hive-style table, whose
    writes are not atomic, is kept with what was written.
    """
    stream = counted(reader(_typed(data, schema), schema), progress)
    table = create_table(
        root,
        schema if schema is not None else stream.schema.remove_metadata(),
        partition_by,
        transactions=transactions,
        layout=layout,
        storage_options=storage_options,
    )
    try:
        table.append(stream)
    except BaseException:
        discard_new_table(table)
        raise
    return table


def load(
    root: str | os.PathLike[str],
    data: RowSource,
    *,
    partition_by: Sequence[str | PartitionField] | None = None,
    schema: pa.Schema | None = None,
    format: FileFormat | None = None,
    progress: Progress | None = None,
    source_options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionedTable:
    """Write files, or any other data, to a table in one commit; the table is made if there is none.

    One that is there must have the columns of ``schema`` and be partitioned by ``partition_by``, where these are given.

    ``data`` is a path or a glob, such as ``"data/*.parquet"`` or ``"s3://bucket/in/*.csv"``, or a list of them;
    ``source_options`` say how to reach these, if not as the table. ``progress`` is called with the rows read so far.
    """
    reachable = source_options if source_options is not None else storage_options
    rows = files_at(data, format=format, storage_options=reachable) if is_path(data) else data
    if exists(root, storage_options=storage_options):
        table = open_table(root, storage_options=storage_options)
        if schema is not None:
            same_definition.refuse_other_columns(table.metadata, schema)
        if partition_by is not None:
            same_definition.refuse_other_partitioning(table.metadata, partition_by)
        table.append(counted(reader(rows, table.schema), progress))
        return table
    if partition_by is None:
        raise InvalidInputError(
            f"there is no table at {os.fspath(root)!r} yet: say how to partition it, as in "
            "partition_by=['country'], or partition_by=[] for a table without partitions"
        )
    return create_table_from(
        root, rows, partition_by, schema=schema, progress=progress, storage_options=storage_options
    )


def _typed(data: RowSource, schema: pa.Schema | None) -> RowSource:
    """Lists of dicts as a table, whose types come from the schema or else from the values."""
    return table_of(data, schema) if are_dicts(data) and data else data
