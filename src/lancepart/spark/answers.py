"""What the planning service does for each operation on a table by its path; the catalog's are in ``statements``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lancepart.commit.actions import Delete
from lancepart.errors import InvalidInputError, TableNotFoundError
from lancepart.spark import operations, plain_tables, protocol, table_messages, warm
from lancepart.spark.describe import partitions_of, schema_json, table_info
from lancepart.spark.filters import exact_predicate_of, unused_filters
from lancepart.spark.inline import inlined, task_count
from lancepart.spark.options import check, check_batch
from lancepart.spark.planning import plan
from lancepart.spark.protocol import Message, Request
from lancepart.spark.source import (
    Options,
    feed_schema,
    location,
    plan_bytes,
    refuse_other_version,
    wanted_version,
    wants_changes,
)
from lancepart.spark.spark_plan import Pickled
from lancepart.spark.tasks import handed
from lancepart.spark.types import read_schema, spark_schema
from lancepart.storage.root import Root
from lancepart.table import PartitionedTable, open_table
from pyspark_lancepart.functions import ReadFunction, WriteFunction, command


def answer(request: Request) -> Message:
    """Execute a request and return its reply."""
    known = operations.OPERATIONS.get(request.op)
    if known is None:
        raise InvalidInputError(f"there is no operation {request.op!r}: use the jar inside lancepart")
    body = protocol.from_json(known.request, request.body, request.op)
    own = _ANSWERS.get(request.op)
    if own is not None:
        check(request.options)
        return own(request.options, body)
    from lancepart.spark import statements

    return statements.respond(request.options, request.op, body)


def _table(options: Options, request: table_messages.Nothing) -> Message:
    """Table metadata, all of it at one snapshot."""
    table = _fresh(options)
    shown = feed_schema(table.schema) if wants_changes(options) else table.schema
    return table_messages.TableReply(schema=schema_json(spark_schema(shown)), table=table_info(table, table.version))


def _exists(options: Options, request: table_messages.Nothing) -> Message:
    try:
        _fresh(options)
    except TableNotFoundError:
        return table_messages.ExistsReply(exists=False)
    return table_messages.ExistsReply(exists=True)


def _scan(options: Options, request: table_messages.ScanRequest) -> Message:
    check_batch(options)
    if wanted_version(options) is not None:
        refuse_other_version(_fresh(options).version, request.version)
    table = _pinned(options, request.version)
    found = plan(table, request)
    schema = spark_schema(found.schema)
    streams = inlined(found, schema, request.inline_bytes)
    return table_messages.ScanReply(
        schema=schema_json(schema),
        read=read_plan(plan_bytes(found), schema) if streams is None else inline_plan(streams),
        tasks=task_count(found, streams),
        keys=found.keys,
        partitioning=tuple(part.to_json() for part in found.parts),
        rows=found.rows,
        bytes=found.bytes,
        estimated_bytes=found.estimated_bytes,
        leaves_read=found.pruning.read,
        leaves_pruned=found.pruning.pruned,
        fragments=found.pruning.fragments,
        file_bytes=found.pruning.bytes,
        reasons=found.pruning.reasons,
        unused=unused_filters(request.pushed, table.schema),
    )


def _handed_over(options: Options, request: table_messages.HandedOverRequest) -> Message:
    schema, planned = handed(options, request.columns)
    return table_messages.RowsReply(schema=schema_json(schema), read=read_plan(planned, schema))


def _search(options: Options, request: table_messages.SearchRequest) -> Message:
    from lancepart.spark import table_function

    return table_function.planned(_pinned(options, request.version), request, location(options))


def _search_rows(options: Options, request: table_messages.SearchRowsRequest) -> Message:
    from lancepart.spark import table_function

    return table_function.answered(_pinned(options, request.version), request)


def _partitions(options: Options, request: table_messages.PartitionsRequest) -> Message:
    return table_messages.PartitionsReply(partitions=partitions_of(_pinned(options, request.version)))


def _keys(options: Options, request: table_messages.KeysRequest) -> Message:
    from lancepart.spark import writing

    parts = writing.keys_of_new(options, read_schema(request.schema), request.by)
    return table_messages.KeysReply(partitioning=tuple(part.to_json() for part in parts))


def _evolve(options: Options, request: table_messages.EvolveRequest) -> Message:
    from lancepart.spark import altering

    altering.alter_at(Root.parse(*location(options)), request.changes)
    return table_messages.Nothing()


def _delete(options: Options, request: table_messages.DeleteRequest) -> Message:
    """Remove rows by filters that mean the same here as in Spark."""
    if plain_tables.is_plain(options):
        return table_messages.Committed(version=plain_tables.delete(options, location(options)[1], request.where))
    table = _opened(options)
    where = exact_predicate_of(request.where, table.schema)
    return table_messages.Committed(version=table._perform(Delete(where=where), None))


def _write(options: Options, request: table_messages.WriteRequest) -> Message:
    from lancepart.spark import planned_writes, writing

    planned = planned_writes.dumps(writing.plan(options, read_schema(request.schema), request))
    return table_messages.WriteReply(function=command(WriteFunction(planned), WriteFunction.schema()), writer=planned)


def _commit(options: Options, request: table_messages.CommitRequest) -> Message:
    from lancepart.spark import planned_writes, written

    version = planned_writes.loads(request.writer).commit(request.reports)
    found = written.measured(request.reports)
    return table_messages.Committed(
        version=version, rows=found.rows, files=found.files, bytes=found.bytes, removed=found.removed
    )


def _abort(options: Options, request: table_messages.AbortRequest) -> Message:
    from lancepart.spark import planned_writes

    planned_writes.loads(request.writer).abort()
    return table_messages.Nothing()


def read_plan(planned: Pickled, schema: Any) -> table_messages.ReadPlan:
    """A plan as Spark's Python workers take it."""
    work, tasks = planned
    return table_messages.ReadPlan(
        function=command(ReadFunction(work, json.dumps(schema_json(schema))), schema), tasks=tuple(tasks)
    )


def inline_plan(streams: Sequence[bytes]) -> table_messages.ReadPlan:
    """Rows that are there already: no worker reads them."""
    return table_messages.ReadPlan(function=b"", tasks=tuple(streams), inline=True)


def _fresh(options: Options) -> PartitionedTable:
    """The table at the snapshot that its options name, or the newest of now."""
    root, storage = location(options)
    if plain_tables.is_plain(options):
        return plain_tables.named(options, storage, wanted_version(options))
    return warm.fresh(root, wanted_version(options), storage)


def _pinned(options: Options, version: int) -> PartitionedTable:
    root, storage = location(options)
    if plain_tables.is_plain(options):
        return plain_tables.named(options, storage, version)
    return warm.pinned(root, version, storage)


def _opened(options: Options) -> PartitionedTable:
    """The table to be changed, never a kept one."""
    root, storage = location(options)
    return open_table(root, version=wanted_version(options), storage_options=storage)


_ANSWERS: Mapping[str, Callable[[Options, Any], Message]] = {
    "table": _table,
    "exists": _exists,
    "scan": _scan,
    "handed_over": _handed_over,
    "search": _search,
    "search_rows": _search_rows,
    "keys": _keys,
    "evolve": _evolve,
    "partitions": _partitions,
    "delete": _delete,
    "write": _write,
    "commit": _commit,
    "abort": _abort,
}
