"""Writes of SQL to plain Lance tables of a warehouse: tasks write fragments, of which one version is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from lancepart.catalog.context import shown
from lancepart.errors import (
    CommitConflictError,
    ConcurrentModificationError,
    InvalidInputError,
    TableNotFoundError,
)
from lancepart.layout.plain import PlainManifest
from lancepart.model.aliases import Value
from lancepart.model.predicate import Predicate
from lancepart.queries.warehouse import Warehouse
from lancepart.read.leaf import ADDRESS, LEAF
from lancepart.spark import plain_tables, table_messages
from lancepart.spark.filters import exact_predicate_of
from lancepart.spark.results import dumps, loads
from lancepart.spark.row_changes import Gone
from lancepart.spark.types import from_spark, read_schema
from lancepart.spark.writing import columns_of
from lancepart.storage import leaf_data
from lancepart.storage.leaf_handle import split_addresses
from lancepart.storage.root import Root
from lancepart.storage.translate import ConflictError
from lancepart.write.conform import check_complete
from pyspark_lancepart.functions import WriteFunction, command

APPEND, TRUNCATE, FILTER, ROWS = "append", "truncate", "filter", "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainWriting:
    """What the tasks of a write to a plain Lance table need; ``version`` is the one whose columns they follow.

    It has this ``identity``. ``where`` are the rows of that version that the new ones replace.
    """

    root: Root
    location: str
    schema: Value
    mode: str
    version: int
    identity: int
    where: Predicate | str | None = None

    @property
    def filter(self) -> Predicate | str | None:
        """The rows that the write replaces."""
        return self.where

    def with_filter(self, where: Predicate | str | None) -> PlainWriting:
        """The same write with another filter."""
        return replace(self, where=where)

    def filter_columns(self) -> pa.Schema:
        """The columns of the table, which the filter may name."""
        return PlainManifest.at(self.root, self.location, self.version).snapshot().metadata.plain_schema

    def write(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        """One task: its rows written, part of no version yet."""
        rows = pa.RecordBatchReader.from_batches(self.schema, (from_spark(batch, self.schema) for batch in batches))
        if self.mode != TRUNCATE:
            return dumps(leaf_data.stage(self.root, self.location, rows, base=self.version))
        return dumps(leaf_data.stage_anew(self.root, self.location, rows))

    def commit(self, reports: Iterable[bytes]) -> int:
        """Publish what the tasks wrote as the table's next version."""
        items = [item for report in reports for item in loads(report).items]
        _refuse_other(self.root, self.location, self.version, self.identity)
        try:
            if self.mode == APPEND:
                return leaf_data.append(self.root, self.location, items, base=None, seen=self.version)
            if self.mode == FILTER:
                return self._replace(items)
            return leaf_data.overwrite(self.root, self.location, self.schema, items, seen=self.version)
        except ConflictError as error:
            raise ConcurrentModificationError(f"{error}; nothing was changed, so run it again") from None

    def _replace(self, items: Sequence[Value]) -> int:
        assert isinstance(self.where, Predicate)
        snapshot = PlainManifest.at(self.root, self.location, self.version).snapshot()
        gone = plain_tables.matching(self.root, snapshot, self.where)
        return leaf_data.replace_rows(self.root, self.location, gone, items, seen=self.version)

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
        _refuse_other(self.root, self.location, self.version, self.identity, *(identity for identity, _ in gone))
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
    location = plain_tables.writable(catalog, request.id)
    if request.mode == ROWS:
        return _reply(_rows(catalog.root, location, request))
    snapshot = PlainManifest.at(catalog.root, location).snapshot()
    schema = snapshot.dataset.schema
    columns = columns_of(read_schema(request.schema), schema)
    check_complete(columns, schema)
    if request.mode == TRUNCATE and columns.names != schema.names:
        raise InvalidInputError(
            f"the rows that replace those of {shown(request.id)} have the columns {', '.join(columns.names)}: give all "
            f"of its columns, {', '.join(schema.names)}"
        )
    where = exact_predicate_of(request.pushed, snapshot.metadata.plain_schema) if request.mode == FILTER else None
    return _reply(
        PlainWriting(
            root=catalog.root,
            location=location,
            schema=columns,
            mode=request.mode,
            version=snapshot.version,
            identity=snapshot.leaf.identity,
            where=where,
        )
    )


def _rows(root: Root, location: str, request: table_messages.PlainWriteRequest) -> PlainRowWriting:
    """A statement that changes rows which were read at a version."""
    if request.version is None:
        raise InvalidInputError("a write of rows needs the version that they were read at")
    snapshot = PlainManifest.at(root, location, request.version).snapshot()
    given = columns_of(read_schema(request.schema), snapshot.dataset.schema)
    columns = pa.schema([field for field in given if field.name not in (LEAF, ADDRESS)])
    return PlainRowWriting(
        root=root, location=location, schema=columns, version=request.version, identity=snapshot.leaf.identity
    )


def _refuse_other(root: Root, location: str, version: int, *identities: int) -> None:
    """Refuse to commit to another table that is in the directory now: what tasks wrote went with the first one."""
    try:
        there = PlainManifest.at(root, location, version).snapshot().leaf.identity
    except TableNotFoundError:
        there = None
    if {there} != set(identities):
        raise CommitConflictError(
            f"the table was replaced since version {version} was read, or that version expired; nothing was changed, "
            "so run it again"
        )


def _reply(work: PlainWriting | PlainRowWriting) -> table_messages.WriteReply:
    from lancepart.spark import planned_writes

    planned = planned_writes.dumps(work)
    return table_messages.WriteReply(function=command(WriteFunction(planned), WriteFunction.schema()), writer=planned)
