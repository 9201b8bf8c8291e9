"""What the planning service does for each operation on a table by its path; the catalog's are in ``statements``."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from typing import Any

from lancepart.errors import InvalidInputError, TableNotFoundError
from lancepart.spark import operations as ops
from lancepart.spark import protocol, warm
from lancepart.spark.describe import partitions_of, schema_json, table_info
from lancepart.spark.filters import predicate_of
from lancepart.spark.options import check, check_batch
from lancepart.spark.planning import plan
from lancepart.spark.protocol import Message, Request
from lancepart.spark.source import (
    Options,
    Plan,
    feed_schema,
    location,
    plan_bytes,
    refuse_other_version,
    wanted_version,
    wants_changes,
)
from lancepart.spark.tasks import handed
from lancepart.spark.types import read_schema, spark_schema
from lancepart.table import PartitionedTable, open_table
from pyspark_lancepart.functions import ReadFunction, WriteFunction, command


def answer(request: Request) -> Message:
    """Do what a request asks."""
    known = ops.OPERATIONS.get(request.op)
    if known is None:
        raise InvalidInputError(f"there is no operation {request.op!r}: use the jar inside lancepart")
    body = protocol.from_json(known.request, request.body, request.op)
    own = _ANSWERS.get(request.op)
    if own is not None:
        check(request.options)
        return own(request.options, body)
    from lancepart.spark import statements

    return statements.respond(request.options, request.op, body)


def _table(options: Options, request: ops.Nothing) -> Message:
    """Table metadata, all of it at one snapshot."""
    table = _fresh(options)
    shown = feed_schema(table.schema) if wants_changes(options) else table.schema
    return ops.TableReply(schema=schema_json(spark_schema(shown)), table=table_info(table, table.version))


def _exists(options: Options, request: ops.Nothing) -> Message:
    try:
        _fresh(options)
    except TableNotFoundError:
        return ops.ExistsReply(exists=False)
    return ops.ExistsReply(exists=True)


def _scan(options: Options, request: ops.ScanRequest) -> Message:
    check_batch(options)
    if wanted_version(options) is not None:
        refuse_other_version(_fresh(options).version, request.version)
    found = plan(_pinned(options, request.version), request)
    schema = spark_schema(found.schema)
    return ops.ScanReply(
        schema=schema_json(schema),
        read=read_plan(plan_bytes(found), schema),
        tasks=len(found.tasks),
        keys=found.keys,
        partitioning=tuple(part.to_json() for part in found.parts),
        rows=found.rows,
        bytes=found.bytes,
        estimated_bytes=found.estimated_bytes,
    )


def _handed_over(options: Options, request: ops.HandedOverRequest) -> Message:
    schema, planned = handed(options, request.columns)
    return ops.RowsReply(schema=schema_json(schema), read=read_plan(planned, schema))


def _partitions(options: Options, request: ops.PartitionsRequest) -> Message:
    return ops.PartitionsReply(partitions=partitions_of(_pinned(options, request.version)))


def _delete(options: Options, request: ops.DeleteRequest) -> Message:
    """Remove rows by filters that mean the same here as in Spark."""
    table = _opened(options)
    predicate = predicate_of(request.where, (), table.schema)
    return ops.Committed(version=table.delete("true" if predicate is None else predicate.to_sql()))


def _write(options: Options, request: ops.WriteRequest) -> Message:
    from lancepart.spark import writing

    planned = pickle.dumps(writing.plan(options, read_schema(request.schema), request))
    return ops.WriteReply(function=command(WriteFunction(planned), WriteFunction.schema()), writer=planned)


def _commit(options: Options, request: ops.CommitRequest) -> Message:
    return ops.Committed(version=pickle.loads(request.writer).commit(request.reports))


def _abort(options: Options, request: ops.AbortRequest) -> Message:
    pickle.loads(request.writer).abort()
    return ops.Nothing()


def read_plan(planned: Plan, schema: Any) -> ops.ReadPlan:
    """A plan as Spark's Python workers take it."""
    work, tasks = planned
    return ops.ReadPlan(
        function=command(ReadFunction(work, json.dumps(schema_json(schema))), schema), tasks=tuple(tasks)
    )


def _fresh(options: Options) -> PartitionedTable:
    """The table at the snapshot that its options name, or the newest of now."""
    root, storage = location(options)
    return warm.fresh(root, wanted_version(options), storage)


def _pinned(options: Options, version: int) -> PartitionedTable:
    root, storage = location(options)
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
    "partitions": _partitions,
    "delete": _delete,
    "write": _write,
    "commit": _commit,
    "abort": _abort,
}
