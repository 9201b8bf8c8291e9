"""Writes of SQL to plain Lance tables of a warehouse: tasks write fragments, of which one version is made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from lancepart.catalog import tables
from lancepart.catalog.context import shown
from lancepart.errors import (
    CommitConflictError,
    ConcurrentModificationError,
    InvalidInputError,
    UnsupportedOperationError,
)
from lancepart.model.aliases import Value
from lancepart.queries.warehouse import Warehouse
from lancepart.read.leaf import ADDRESS, LEAF
from lancepart.spark import table_messages
from lancepart.spark.metadata_tables import open_plain
from lancepart.spark.results import dumps, loads
from lancepart.spark.row_changes import Gone
from lancepart.spark.types import from_spark, read_schema
from lancepart.spark.writing import columns_of
from lancepart.storage import leaf_data, leaf_record
from lancepart.storage.leaf_handle import split_addresses
from lancepart.storage.root import Root
from lancepart.storage.translate import ConflictError
from lancepart.write.conform import check_complete
from pyspark_lancepart.functions import WriteFunction, command

APPEND, TRUNCATE, ROWS = "append", "truncate", "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainWriting:
    """What the tasks of a write to a plain Lance table need; ``version`` is the one whose columns they follow."""

    root: Root
    location: str
    schema: Value
    mode: str
    version: int

    def write(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        """One task: its rows written, part of no version yet."""
        rows = pa.RecordBatchReader.from_batches(self.schema, (from_spark(batch, self.schema) for batch in batches))
        if self.mode == APPEND:
            return dumps(leaf_data.stage(self.root, self.location, rows, base=self.version))
        return dumps(leaf_data.stage_anew(self.root, self.location, rows))

    def commit(self, reports: Iterable[bytes]) -> int:
        """Publish what the tasks wrote as the table's next version."""
        items = [item for report in reports for item in loads(report).items]
        try:
            if self.mode == APPEND:
                return leaf_data.append(self.root, self.location, items, base=None, seen=self.version)
            return leaf_data.overwrite(self.root, self.location, self.schema, items, seen=self.version)
        except ConflictError as error:
            raise ConcurrentModificationError(f"{error}; nothing was changed, so run it again") from None

    def abort(self) -> None:
        """Do nothing: no version names what was written, and Lance's own clean-up removes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRowWriting:
    """A statement that changes rows of a plain Lance table as they are at ``version``, which has this identity."""

    root: Root
    location: str
    schema: Value
    version: int
    identity: int

    def write(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        """One task: its new rows written, part of no version yet, and the addresses of those to delete."""
        gone = Gone()
        rows = gone.split(batches, self.schema)
        first = next(rows, None)
        staged = None
        if first is not None:
            given = pa.RecordBatchReader.from_batches(self.schema, chain([first], rows))
            staged = leaf_data.stage(self.root, self.location, given, base=self.version)
        return dumps((staged, gone.addresses()))

    def commit(self, reports: Iterable[bytes]) -> int | None:
        """Publish what the tasks report as the table's next version; if nothing changes there is none."""
        found = [loads(report) for report in reports]
        items = [item for staged, _ in found if staged is not None for item in staged.items]
        gone = [(identity, addresses) for _, each in found for identity, addresses in each.items()]
        if not items and not gone:
            return None
        there = leaf_record.identity(open_plain(self.root, self.location, self.version))
        if {there, *(identity for identity, _ in gone)} != {self.identity}:
            raise CommitConflictError("the table was replaced since it was read; nothing was changed, so run it again")
        offsets = split_addresses(np.unique(np.concatenate([each for _, each in gone]))) if gone else {}
        try:
            return leaf_data.replace_rows(self.root, self.location, offsets, items, seen=self.version)
        except ConflictError as error:
            raise CommitConflictError(f"{error}; nothing was changed, so run it again") from None

    def abort(self) -> None:
        """Do nothing: no version names what was written, and Lance's own clean-up removes it."""


def plan(warehouse: Warehouse, request: table_messages.PlainWriteRequest) -> table_messages.WriteReply:
    """Plan a write; a table whose versions others keep is refused."""
    catalog = warehouse.catalog
    located = tables.find(catalog, catalog.snapshot(), request.id)
    if located is None or located.leaf_of is not None:
        raise UnsupportedOperationError(f"{shown(request.id)} is part of a partitioned table: write to that one")
    if located.managed:
        raise UnsupportedOperationError(
            f"the catalog keeps the versions of table {shown(request.id)}: write to it with DirectoryNamespace"
        )
    if request.mode == ROWS:
        return _reply(_rows(catalog.root, located.location, request))
    handle = open_plain(catalog.root, located.location, None)
    columns = columns_of(read_schema(request.schema), handle.schema)
    check_complete(columns, handle.schema)
    if request.mode == TRUNCATE and columns.names != handle.schema.names:
        raise InvalidInputError(
            f"the rows that replace those of {shown(request.id)} have the columns {', '.join(columns.names)}: give all "
            f"of its columns, {', '.join(handle.schema.names)}"
        )
    version = int(handle.version)
    return _reply(
        PlainWriting(root=catalog.root, location=located.location, schema=columns, mode=request.mode, version=version)
    )


def _rows(root: Root, location: str, request: table_messages.PlainWriteRequest) -> PlainRowWriting:
    """A statement that changes rows which were read at a version."""
    if request.version is None:
        raise InvalidInputError("a write of rows needs the version that they were read at")
    handle = open_plain(root, location, request.version)
    given = columns_of(read_schema(request.schema), handle.schema)
    columns = pa.schema([field for field in given if field.name not in (LEAF, ADDRESS)])
    return PlainRowWriting(
        root=root, location=location, schema=columns, version=request.version, identity=leaf_record.identity(handle)
    )


def _reply(work: PlainWriting | PlainRowWriting) -> table_messages.WriteReply:
    from lancepart.spark import planned_writes

    planned = planned_writes.dumps(work)
    return table_messages.WriteReply(function=command(WriteFunction(planned), WriteFunction.schema()), writer=planned)
