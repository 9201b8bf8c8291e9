"""What the jar can ask of the planning service: for each operation the types of its request and of its reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lancepart.model.aliases import JsonMapping
from lancepart.spark.protocol import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing(Message):
    """A request or a reply without fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo(Message):
    """Table metadata at one snapshot, which every scan of the table then names."""

    version: int
    sources: tuple[str, ...]
    exact: tuple[str, ...]
    partitioning: tuple[JsonMapping, ...]
    by: tuple[JsonMapping, ...]
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReply(Message):
    """A table that was opened by its path."""

    schema: JsonMapping
    table: TableInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistsReply(Message):
    """Whether there is a table."""

    exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest(Message):
    """What Spark wants to read of a table at a snapshot.

    ``handled`` are filters that Spark does not apply again, ``pushed`` those that it does.
    """

    version: int
    columns: tuple[str, ...]
    handled: tuple[JsonMapping, ...] = ()
    pushed: tuple[JsonMapping, ...] = ()
    aggregates: tuple[JsonMapping, ...] = ()
    limit: int | None = None
    parallelism: int = 2
    partitioning: tuple[JsonMapping, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan(Message):
    """What Spark's Python workers are given: the function that reads, pickled, and its argument for each task."""

    function: bytes
    tasks: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReply(Message):
    """A planned scan: first the tasks that have a key each, then those of the same rows without keys."""

    schema: JsonMapping
    read: ReadPlan
    tasks: int
    keys: tuple[Any, ...]
    partitioning: tuple[JsonMapping, ...]
    rows: int
    bytes: int
    estimated_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOverRequest(Message):
    """Some columns of a plan that ``scan.to_spark`` or ``join.to_spark`` put into the options."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideTable(Message):
    """What can only be read: a metadata table of a partitioned table, or a plain Lance table."""

    kind: str
    location: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRequest(Message):
    """Some columns of what can only be read."""

    table: SideTable
    columns: tuple[str, ...]
    parallelism: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsReply(Message):
    """A planned scan of which Spark is told nothing but its columns and tasks."""

    schema: JsonMapping
    read: ReadPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsRequest(Message):
    """The snapshot whose partitions are listed."""

    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsReply(Message):
    """The values of each partition, as texts."""

    partitions: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequest(Message):
    """Filters that mean the same here as in Spark; rows that all of them match go."""

    where: tuple[JsonMapping, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Message):
    """The snapshot that a commit made; none in a layout without snapshots."""

    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest(Message):
    """A write to be planned: ``mode`` is append, truncate, dynamic, filter (what ``pushed`` matches) or rows.

    The last is a statement that changes the rows which a scan at ``version`` with these filters reads.
    """

    mode: str
    schema: JsonMapping
    by: tuple[str, ...] = ()
    handled: tuple[JsonMapping, ...] = ()
    pushed: tuple[JsonMapping, ...] = ()
    version: int | None = None
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReply(Message):
    """A planned write: the function that Spark's Python workers run, and what commits, both pickled."""

    function: bytes
    writer: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest(Message):
    """A planned write, and what the tasks that succeeded report."""

    writer: bytes
    reports: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortRequest(Message):
    """A planned write that failed."""

    writer: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRequest(Message):
    """A namespace or a table of the catalog."""

    id: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesReply(Message):
    """Names of tables or of namespaces."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertiesReply(Message):
    """Properties of a namespace."""

    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertiesRequest(Message):
    """Properties to set and, where the value is null, to remove."""

    id: tuple[str, ...]
    properties: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropNamespaceRequest(Message):
    """A namespace to be dropped, with everything in it if ``cascade``."""

    id: tuple[str, ...]
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest(Message):
    """A table of the catalog, as it is or at a version, a tag or a moment (microseconds since 1970)."""

    id: tuple[str, ...]
    version: str | None = None
    timestamp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest(Message):
    """A table to be made: ``mode`` is create, replace or create_or_replace."""

    id: tuple[str, ...]
    mode: str
    schema: JsonMapping
    by: tuple[str, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTable(Message):
    """A table that has its directory and not yet its row in the catalog."""

    id: tuple[str, ...]
    location: str
    properties: Mapping[str, str]
    replaced: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReply(Message):
    """A table of the catalog: a partitioned one with its ``path`` and metadata, or a ``side`` table."""

    schema: JsonMapping
    properties: Mapping[str, str] = field(default_factory=dict)
    path: str | None = None
    table: TableInfo | None = None
    side: SideTable | None = None
    staged: StagedTable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedReply(Message):
    """Whether there was a table to drop."""

    dropped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameRequest(Message):
    """A table and its new name."""

    id: tuple[str, ...]
    to: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterRequest(Message):
    """Changes of a table's columns and properties, in their order."""

    id: tuple[str, ...]
    changes: tuple[JsonMapping, ...]


@dataclass(frozen=True, slots=True)
class Parameter(Message):
    """A parameter of a procedure: its type and, unless it must be given, its default, as Spark spells them."""

    name: str
    comment: str
    type: str = "string"
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureInfo(Message):
    """What Spark must know of a procedure to bind a call."""

    comment: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProceduresReply(Message):
    """All procedures, and the namespace that they are in."""

    namespace: str
    procedures: Mapping[str, ProcedureInfo]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest(Message):
    """A procedure and its arguments; ``catalog`` is the name under which Spark knows the warehouse."""

    procedure: str
    catalog: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReply(Message):
    """The rows that a procedure returns."""

    schema: JsonMapping
    rows: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """The types of an operation, and whether it changes a table or a catalog, so that it is never tried twice."""

    request: type[Message]
    reply: type[Message]
    changes: bool = False


OPERATIONS: Mapping[str, Operation] = {
    "table": Operation(Nothing, TableReply),
    "exists": Operation(Nothing, ExistsReply),
    "scan": Operation(ScanRequest, ScanReply),
    "handed_over": Operation(HandedOverRequest, RowsReply),
    "side": Operation(SideRequest, RowsReply),
    "partitions": Operation(PartitionsRequest, PartitionsReply),
    "delete": Operation(DeleteRequest, Committed, changes=True),
    "write": Operation(WriteRequest, WriteReply, changes=True),
    "commit": Operation(CommitRequest, Committed, changes=True),
    "abort": Operation(AbortRequest, Nothing, changes=True),
    "namespaces": Operation(PathRequest, NamesReply),
    "namespace": Operation(PathRequest, PropertiesReply),
    "tables": Operation(PathRequest, NamesReply),
    "load": Operation(LoadRequest, LoadReply),
    "procedures": Operation(Nothing, ProceduresReply),
    "create_namespace": Operation(PropertiesRequest, Nothing, changes=True),
    "alter_namespace": Operation(PropertiesRequest, Nothing, changes=True),
    "drop_namespace": Operation(DropNamespaceRequest, Nothing, changes=True),
    "create": Operation(CreateRequest, LoadReply, changes=True),
    "stage": Operation(CreateRequest, LoadReply, changes=True),
    "publish": Operation(StagedTable, Nothing, changes=True),
    "discard": Operation(StagedTable, Nothing, changes=True),
    "drop": Operation(PathRequest, DroppedReply, changes=True),
    "rename": Operation(RenameRequest, Nothing, changes=True),
    "alter": Operation(AlterRequest, Nothing, changes=True),
    "call": Operation(CallRequest, CallReply, changes=True),
}
