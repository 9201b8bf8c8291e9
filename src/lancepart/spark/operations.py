"""The operations of the planning service: for each the types of its request and of its reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lancepart.spark.catalog_messages import (
    AlterRequest,
    CallReply,
    CallRequest,
    CreateRequest,
    DropNamespaceRequest,
    DroppedReply,
    LoadReply,
    LoadRequest,
    NamesReply,
    PathRequest,
    ProceduresReply,
    PropertiesReply,
    PropertiesRequest,
    RenameRequest,
    StagedTable,
)
from lancepart.spark.protocol import Message
from lancepart.spark.table_messages import (
    AbortRequest,
    CommitRequest,
    Committed,
    DeleteRequest,
    EvolveRequest,
    ExistsReply,
    HandedOverRequest,
    InlineReply,
    KeysReply,
    KeysRequest,
    Nothing,
    PartitionsReply,
    PartitionsRequest,
    PlainWriteRequest,
    ReadOnlyRequest,
    RowsReply,
    ScanReply,
    ScanRequest,
    SearchReply,
    SearchRequest,
    SearchRowsRequest,
    TableReply,
    WriteReply,
    WriteRequest,
)


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
    "read_only": Operation(ReadOnlyRequest, RowsReply),
    "search": Operation(SearchRequest, SearchReply),
    "search_rows": Operation(SearchRowsRequest, InlineReply),
    "keys": Operation(KeysRequest, KeysReply),
    "evolve": Operation(EvolveRequest, Nothing, changes=True),
    "partitions": Operation(PartitionsRequest, PartitionsReply),
    "delete": Operation(DeleteRequest, Committed, changes=True),
    "write": Operation(WriteRequest, WriteReply, changes=True),
    "write_plain": Operation(PlainWriteRequest, WriteReply, changes=True),
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
