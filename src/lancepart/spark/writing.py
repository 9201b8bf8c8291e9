"""Writing on Spark: executors write fragments, the driver makes one commit of what the tasks that succeeded report."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self, cast

import pyarrow as pa

from lancepart.commit import distributed_write
from lancepart.commit.actions import Overwrite
from lancepart.commit.distributed_write import WriteJob
from lancepart.commit.idempotency import IdempotencyKey
from lancepart.errors import (
    InvalidInputError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableSchemaValidationError,
    UnsupportedOperationError,
)
from lancepart.layout import create
from lancepart.layout.layouts import capabilities
from lancepart.layout.metadata import STRONG
from lancepart.maintain.discard import discard_new, withdraw_late
from lancepart.model.aliases import Transactions
from lancepart.model.predicate import Filter
from lancepart.model.sql_text import arguments, tokens
from lancepart.read.leaf import ADDRESS, LEAF
from lancepart.spark.filters import exact_predicate_of, predicate_of
from lancepart.spark.new_columns import new_columns
from lancepart.spark.options import check as check_options
from lancepart.spark.repartitioning import refuse_new_cycles
from lancepart.spark.results import dumps, loads
from lancepart.spark.row_changes import Gone
from lancepart.spark.source import location
from lancepart.spark.spark_partitioning import KeyPart, key_parts
from lancepart.spark.table_messages import WriteRequest
from lancepart.spark.types import arrow_schema, from_spark, may_be_taken
from lancepart.storage import leaf_data, leaf_handle
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.table import PartitionedTable, create_table, open_pinned, open_table
from lancepart.write.conform import check_complete

Options = Mapping[str, str]
_ASIDE = "__jobs"
_DYNAMIC = "dynamic"
_MODES = {
    "append": distributed_write.APPEND,
    "truncate": distributed_write.REPLACE,
    "dynamic": distributed_write.OVERWRITE,
    "filter": distributed_write.WHERE,
}


class _OfJob:
    """A write whose tasks write fragments for one commit."""

    __slots__ = ()
    job: WriteJob

    @property
    def filter(self) -> Filter | None:
        """The rows that the write replaces."""
        return self.job.where

    def with_filter(self, where: Filter | None) -> Self:
        """The same write with another filter."""
        assert not isinstance(where, str)
        return replace(self, job=replace(self.job, where=where))  # type: ignore[type-var]

    def filter_columns(self) -> pa.Schema:
        """The columns of the table at the write's snapshot, which the filter may name."""
        root = self.job.root
        return open_pinned(root.uri, self.job.version, storage_options=root.storage_options).schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing(_OfJob):
    """The input of the tasks of a write: the job, and the columns of its rows.

    ``made`` is the salt of the table if the write made it.
    """

    job: WriteJob
    schema: Any
    made: str | None = None

    def write(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        """Run one task: write its rows, and return the report."""
        rows = (from_spark(batch, self.schema) for batch in batches)
        if self.job.done:
            for _ in rows:
                pass
        try:
            return dumps(distributed_write.write(self.job, pa.RecordBatchReader.from_batches(self.schema, rows)))
        finally:
            if self.made is not None:
                withdraw_late(Manifest(self.job.root), self.made, self.job.id)

    def commit(self, reports: Iterable[bytes]) -> int | None:
        """Publish what the tasks report."""
        return distributed_write.commit(Manifest(self.job.root), self.job, map(loads, reports))

    def abort(self) -> None:
        """Take a table back that this write had made; files in one that was there are found by remove_orphans."""
        if self.made is None or not discard_new(Manifest(self.job.root), self.made, self.job.id):
            distributed_write.abandon(self.job)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWriting(_OfJob):
    """A statement that changes rows: its tasks give new rows, and the identities of those that go."""

    job: WriteJob
    schema: Any

    def write(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        """Run one task: write its new rows, and report them and the rows to delete."""
        gone = Gone()
        rows = gone.split(batches, self.schema)
        given = pa.RecordBatchReader.from_batches(self.schema, rows) if len(self.schema) else list(rows)
        report = distributed_write.write(self.job, given)
        return dumps(replace(report, gone=gone.addresses()))

    def commit(self, reports: Iterable[bytes]) -> int | None:
        """Publish what the tasks report."""
        return distributed_write.commit(Manifest(self.job.root), self.job, map(loads, reports))

    def abort(self) -> None:
        """No version names the files that were written, and remove_orphans removes them."""
        distributed_write.abandon(self.job)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeWriting:
    """A write to a Hive-style tree, which knows no commit of many leaves: tasks put their rows aside, and the driver
    brings those of the tasks that succeeded to their leaves.
    """

    root: Root
    schema: Any
    mode: str
    where: Filter | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def filter(self) -> Filter | None:
        """The rows that the write replaces."""
        return self.where

    def with_filter(self, where: Filter | None) -> Self:
        """The same write with another filter."""
        return replace(self, where=where)

    def filter_columns(self) -> pa.Schema:
        """The columns of the table, which the filter may name."""
        return open_table(self.root.uri, storage_options=self.root.storage_options).schema

    def write(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        """One task: its rows put aside, and where."""
        location = f"{_ASIDE}/{self.id}/{uuid.uuid4().hex}"
        rows = pa.RecordBatchReader.from_batches(self.schema, (from_spark(batch, self.schema) for batch in batches))
        leaf_data.create_leaf(
            self.root, location, self.schema, leaf_data.stage(self.root, location, rows, base=None).items
        )
        return location.encode()

    def commit(self, reports: Iterable[bytes]) -> None:
        """Write the staged rows into the tree."""
        found = [leaf_handle.open_leaf(self.root, report.decode(), None).scanner().to_batches() for report in reports]
        rows = pa.RecordBatchReader.from_batches(self.schema, chain.from_iterable(found))
        table = open_table(self.root.uri, storage_options=self.root.storage_options)
        try:
            if self.mode == distributed_write.APPEND:
                table.append(rows)
            elif self.mode == distributed_write.REPLACE:
                table.delete("true")
                table.append(rows)
            else:
                table._perform(Overwrite(data=rows, where=self.where), None)
        finally:
            self.abort()

    def abort(self) -> None:
        """Remove the staged rows."""
        Files(self.root).delete_directory(f"{_ASIDE}/{self.id}", with_tables=True)


def plan(options: Options, schema: Any, request: WriteRequest) -> Writing | RowWriting | TreeWriting:
    """Plan a write of Spark; a missing table is created if the options define it.

    Of a table without partitions all rows are replaced, even if none come, as Spark does with its own tables.
    """
    check_options(options)
    given = _folded(options)
    if request.mode == distributed_write.ROWS:
        return _rows(options, request, schema)
    table, made = _table(given, request, schema)
    mode, where = _mode(given, request)
    if mode == distributed_write.OVERWRITE and not table.spec.fields:
        mode = distributed_write.REPLACE
    root = Root.parse(*location(options))
    try:
        if mode == distributed_write.WHERE and where is None:
            where = exact_predicate_of(request.pushed, table.schema)
        key = given.get("idempotency_key")
        if not capabilities(table.metadata).distributed_writes:
            return _into_tree(root, table, schema, mode=mode, where=where, key=key)
        job = distributed_write.plan(
            Manifest(root),
            mode=mode,
            where=where,
            idempotency=None if key is None else IdempotencyKey(key=key),
            file_bytes=file_size(given.get("target_file_size")),
        )
        return Writing(job=job, schema=columns_of(schema, table.schema), made=made)
    except BaseException:
        if made is not None:
            discard_new(Manifest(root), made)
        raise


def _into_tree(
    root: Root, table: PartitionedTable, schema: Any, *, mode: str, where: Filter | None, key: str | None
) -> TreeWriting:
    if key is not None:
        raise UnsupportedOperationError("an idempotency key needs a table with snapshots; lancepart.upgrade makes one")
    columns = columns_of(schema, table.schema)
    check_complete(columns, table.schema)
    return TreeWriting(root=root, schema=columns, mode=mode, where=where)


def _folded(options: Options) -> dict[str, str]:
    """Options by names in lower case: their case does not matter."""
    return {key.lower(): value for key, value in options.items()}


def without_jar(schema: Any, overwrite: bool) -> WriteRequest:
    """A write of Spark's Python data source."""
    return WriteRequest(mode="truncate" if overwrite else "append", schema=schema.jsonValue())


def _rows(options: Options, request: WriteRequest, schema: Any) -> RowWriting:
    """What Spark made of the rows that a scan read: the same snapshot, and the same filter."""
    if request.version is None or request.command is None:
        raise InvalidInputError("a write of rows needs the snapshot that they were read at, and the statement's name")
    root, storage = location(options)
    table = open_pinned(root, request.version, storage_options=storage)
    if not capabilities(table.metadata).transactions:
        raise UnsupportedOperationError(
            f"{request.command.upper()} in SQL needs a table with strong transactions: use table.update, "
            "table.upsert or table.delete in Python"
        )
    job = distributed_write.plan(
        Manifest(Root.parse(root, storage)),
        mode=distributed_write.ROWS,
        where=predicate_of(request.handled, request.pushed, table.schema),
        version=request.version,
        name=request.command,
        file_bytes=file_size(_folded(options).get("target_file_size")),
    )
    given = [field for field in columns_of(schema, table.schema) if field.name not in (LEAF, ADDRESS)]
    return RowWriting(job=job, schema=pa.schema(given))


def columns_of(schema: Any, table: pa.Schema) -> pa.Schema:
    """The columns of Spark's rows, each in the table's type if the table has it; what never fits that is refused."""
    given = arrow_schema(schema)
    for each in given:
        wanted = table.field(each.name).type if each.name in table.names else each.type
        if not may_be_taken(each.type, wanted):
            raise TableSchemaValidationError(
                f"column {each.name!r} is {each.type} in the data and {wanted} in the table: cast it first"
            )
    return pa.schema([table.field(each.name) if each.name in table.names else each for each in given])


def _mode(options: Options, request: WriteRequest) -> tuple[str, Filter | None]:
    """What happens to the rows that are there: what Spark says, unless the options say it more exactly."""
    mode = request.mode
    if mode == "truncate" and "replacewhere" in options:
        return distributed_write.WHERE, options["replacewhere"]
    if mode == "truncate" and options.get("partitionoverwritemode", "").lower() == _DYNAMIC:
        return distributed_write.OVERWRITE, None
    return _MODES[mode], None


def _table(options: Options, request: WriteRequest, schema: Any) -> tuple[PartitionedTable, str | None]:
    """The table to write to, made if it is not there and the options or the request say how it is partitioned.

    With it the salt of one that was made here.
    """
    root, storage = location(options)
    try:
        return open_table(root, storage_options=storage), None
    except TableNotFoundError:
        by = partition_list(options["partition_by"]) if "partition_by" in options else list(request.by)
        if not by and "partition_by" not in options:
            raise TableNotFoundError(
                f"there is no table at {root!r}: make one with .option('partition_by', 'year(ts), country'), or with "
                "an empty partition_by for a table without partitions"
            ) from None
    nullable = pa.schema([field.with_nullable(True) for field in new_columns(schema)])
    if "partition_by" not in options:
        refuse_new_cycles(by, nullable, options)
    mode = cast(Transactions, options.get("transactions", STRONG))
    with contextlib.suppress(TableAlreadyExistsError):
        table = create_table(root, nullable, by, transactions=mode, storage_options=storage)
        return table, table.metadata.salt
    return open_table(root, storage_options=storage), None


def keys_of_new(options: Options, schema: Any, by: Sequence[str]) -> tuple[KeyPart, ...]:
    """What the rows of a table that is to be made can be brought together by."""
    given = _folded(options)
    fields = partition_list(given["partition_by"]) if "partition_by" in given else by
    metadata = create.define(new_columns(schema), fields, transactions=STRONG)
    return key_parts(metadata, [metadata.spec.id], metadata.schema.names)


def file_size(text: str | None) -> int | None:
    """The bytes that a file is to have; without the jar an option is in bytes."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text)):
        raise InvalidInputError(f"target_file_size is {text!r}: give a number of bytes")
    return int(text)


def partition_list(text: str) -> list[str]:
    """What an option names, one by one.

    >>> partition_list("year(ts), bucket(id, 16), \\"a, b\\"")
    ['year(ts)', 'bucket(id, 16)', '"a, b"']
    """
    whole = f"({text})"
    found = tokens(whole)
    return [whole[start:end] for start, end in arguments(found, 0, len(found) - 1)]
