"""Exactly-once streaming writes: a batch's rows and its number are one commit."""

from __future__ import annotations

import json
import pickle
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
from lancepart.spark.results import loads
from lancepart.spark.source import STREAM
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
        """One task: its rows written, and what is to be reported of them, for the job that they were written for."""
        return pickle.dumps((self.writing.job, self.writing.write(batches)))

    def commit(self, reports: Iterable[bytes], batch: int) -> int | None:
        """Publish what the tasks report, unless the batch was published before.

        Spark plans the commit in another process than the tasks, so that the job is the one that the tasks name.
        """
        messages = [pickle.loads(report) for report in reports]
        job: WriteJob = messages[0][0] if messages else self.writing.job
        return published(job, IdempotencyKey(key=self.key, sequence=batch), [loads(report) for _, report in messages])


def published(job: WriteJob, once: IdempotencyKey, reports: Sequence[distributed_write.WriteResult]) -> int | None:
    """Commit under a key and a number; what has them already is left as it is."""
    manifest = Manifest(job.root)
    snapshot = manifest.snapshot()
    if once.is_done(snapshot):
        return snapshot.version
    return distributed_write.commit(manifest, replace(job, once=once), reports)


def sink(options: Options, schema: Any, overwrite: bool) -> Sink:
    """Plan a batch; a query is known by the option ``idempotency_key`` or by the id that the jar hands over."""
    given = {key.lower(): value for key, value in options.items()}
    told = json.loads(given.get(STREAM, "{}"))
    key = given.pop("idempotency_key", None) or told.get("query")
    if not key:
        raise InvalidInputError(
            "Spark does not say which query this is, so that a repeated batch could not be recognised: use a "
            "session of lancepart.spark.session, or give the query a name that is its own with "
            ".option('idempotency_key', …)"
        )
    request = without_jar(schema, overwrite)
    if "mode" in told:
        request = replace(request, mode=told["mode"], by=tuple(told.get("by", ())))
    writing = plan(given, schema, request)
    if not isinstance(writing, Writing):
        raise UnsupportedOperationError("a stream needs a table with snapshots; lancepart.upgrade makes one")
    manifest = Manifest(writing.job.root)
    if create.load(manifest, manifest.snapshot(writing.job.version)).transactions != STRONG:
        raise UnsupportedOperationError(f"a stream is written to a table with transactions={STRONG!r} only")
    return Sink(writing=writing, key=_counted(key))


def upsert_batches(
    table: PartitionedTable, on: Sequence[str], *, idempotency_key: str | None = None, distribution: str = "auto"
) -> Callable[[Any, int], None]:
    """A function for ``foreachBatch`` that upserts each batch exactly once.

    The query is known by its id, or by ``idempotency_key`` where a session can't tell it (Spark Connect) or where
    one query upserts into one table more than once.
    """
    columns, root = tuple(on), table._manifest.root

    def upsert(frame: Any, batch: int) -> None:
        once = IdempotencyKey(key=_counted(idempotency_key or _query_of(frame.sparkSession)), sequence=batch)
        manifest = Manifest(root)
        distributed_write.write_frame(
            manifest, frame, Upsert(data=frame, on=columns, distribution=distribution), once=once
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
