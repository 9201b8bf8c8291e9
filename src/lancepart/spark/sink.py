"""Exactly-once streaming writes: a batch's rows and its number are one commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lancepart.commit import distributed_write
from lancepart.commit.actions import Upsert
from lancepart.commit.distributed_write import WriteJob
from lancepart.commit.idempotency import IdempotencyKey
from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.layout import create
from lancepart.layout.metadata import STRONG
from lancepart.model.aliases import Distribution
from lancepart.spark import planned_writes
from lancepart.spark.results import loads
from lancepart.spark.source import STREAM
from lancepart.spark.value_json import ValueJson
from lancepart.spark.writing import Options, Writing, plan, without_jar
from lancepart.storage.manifest import Manifest
from lancepart.table import PartitionedTable

_QUERY = "sql.streaming.queryId"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """One batch of a query: what its tasks do, and the key that its query's batches are counted under."""

    writing: Writing
    key: str

    def write(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        """Run one task: write its rows, and return the report with the job that they belong to."""
        return _MESSAGES.dumps((planned_writes.dumps(self.writing), self.writing.write(batches)))

    def dumps(self) -> bytes:
        """The batch as JSON, for its tasks and its commit."""
        return _MESSAGES.dumps((planned_writes.dumps(self.writing), self.key.encode()))

    @staticmethod
    def loads(text: bytes) -> Sink:
        """A batch from its JSON; anything else is refused."""
        writing, key = _pair(text)
        return Sink(writing=_writing(writing), key=key.decode())

    def commit(self, reports: Iterable[bytes], batch: int) -> int | None:
        """Publish what the tasks report, unless the batch was published before.

        Spark plans the commit in another process than the tasks, so that the job is the one that the tasks name.
        """
        messages = [_pair(report) for report in reports]
        job = _writing(messages[0][0]).job if messages else self.writing.job
        return published(job, IdempotencyKey(key=self.key, sequence=batch), [loads(report) for _, report in messages])


_MESSAGES = ValueJson((), what="a batch of a stream")


def _pair(text: bytes) -> tuple[bytes, bytes]:
    found: object = _MESSAGES.loads(text)
    match found:
        case (bytes() as first, bytes() as second):
            return first, second
    raise InvalidInputError(f"a batch of a stream is not understood: it is a {type(found).__name__}")


def _writing(text: bytes) -> Writing:
    found = planned_writes.loads(text)
    if not isinstance(found, Writing):
        raise InvalidInputError(f"a batch of a stream is not understood: it is a {type(found).__name__}")
    return found


def published(
    job: WriteJob, idempotency: IdempotencyKey, reports: Sequence[distributed_write.WriteResult]
) -> int | None:
    """Commit under a key and a number; what has them already is left as it is."""
    manifest = Manifest(job.root)
    snapshot = manifest.snapshot()
    if idempotency.is_done(snapshot):
        return snapshot.version
    return distributed_write.commit(manifest, replace(job, idempotency=idempotency), reports)


def sink(options: Options, schema: Any, overwrite: bool) -> Sink:
    """Plan a batch; a query is known by the option ``idempotency_key`` or by the id that the jar hands over."""
    given = {key.lower(): value for key, value in options.items()}
    stream = json.loads(given.get(STREAM, "{}"))
    key = given.pop("idempotency_key", None) or stream.get("query")
    if not key:
        raise InvalidInputError(
            "Spark does not say which query this is, so that a repeated batch could not be recognised: use a "
            "session of lancepart.spark.session, or give the query a name that is its own with "
            ".option('idempotency_key', …)"
        )
    request = without_jar(schema, overwrite)
    if "mode" in stream:
        request = replace(request, mode=stream["mode"], by=tuple(stream.get("by", ())))
    writing = plan(given, schema, request)
    if not isinstance(writing, Writing):
        raise UnsupportedOperationError("a stream needs a table with snapshots; lancepart.upgrade makes one")
    manifest = Manifest(writing.job.root)
    if create.load(manifest.snapshot(writing.job.version)).transactions != STRONG:
        raise UnsupportedOperationError(f"a stream is written to a table with transactions={STRONG!r} only")
    return Sink(writing=writing, key=_counted(key))


def upsert_batches(
    table: PartitionedTable,
    on: Sequence[str],
    *,
    idempotency_key: str | None = None,
    distribution: Distribution = "auto",
) -> Callable[[Any, int], None]:
    """A function for ``foreachBatch`` that upserts each batch exactly once.

    The query is identified by its id, or by ``idempotency_key`` where the session has no id (Spark Connect) or where
    one query upserts into one table more than once.
    """
    columns, root = tuple(on), table._manifest.root

    def upsert(frame: Any, batch: int) -> None:
        idempotency = IdempotencyKey(key=_counted(idempotency_key or _query_of(frame.sparkSession)), sequence=batch)
        manifest = Manifest(root)
        distributed_write.write_frame(
            manifest, frame, Upsert(data=frame, on=columns, distribution=distribution), idempotency=idempotency
        )

    return upsert


def _counted(key: str) -> str:
    """The key of a query's batches, which is never that of a job of the same name."""
    return f"stream {key}"


def _query_of(spark: Any) -> str:
    from pyspark.errors import PySparkException

    try:
        found = spark.sparkContext.getLocalProperty(_QUERY)
    except PySparkException:
        found = None
    if not found:
        raise InvalidInputError(
            "Spark does not say which query this is: use it in foreachBatch, and over Spark Connect give it a name "
            "with upsert_batches(…, idempotency_key=…)"
        )
    return str(found)
