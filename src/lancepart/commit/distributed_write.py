"""Writes whose rows are written by many processes and published by one.

Tasks write fragments only, each for itself: a leaf's name and location follow from the job, so tasks need not
coordinate. The driver commits what the successful tasks report; what other tasks wrote is garbage.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lancepart.commit import upserts, verbs, writers
from lancepart.commit.actions import RowsAction
from lancepart.commit.conflicts import StaleReadError
from lancepart.commit.floors import CollectedError
from lancepart.commit.frame_writer import frame_writer
from lancepart.commit.idempotency import IdempotencyKey
from lancepart.commit.leaf_changes import LeafChanges
from lancepart.commit.lookup import Partition
from lancepart.commit.result import CommitResult
from lancepart.commit.transaction import Transaction
from lancepart.commit.write_job import (
    APPEND,
    MODES,
    OVERWRITE,
    REPLACE,
    ROWS,
    UPSERT,
    WHERE,
    StagedPartition,
    WriteJob,
    WriteResult,
    adopt,
)
from lancepart.errors import CommitConflictError, InvalidInputError, LanceNamespaceError
from lancepart.layout.metadata import TableMetadata
from lancepart.layout.table_manifest import load
from lancepart.model.aliases import RowSource
from lancepart.model.predicate import Filter
from lancepart.storage.manifest import RETRY_SECONDS, Manifest
from lancepart.storage.translate import MissingError, UnreadableError, storage_errors
from lancepart.storage.turns import Turn
from lancepart.write.conform import batches, partial_batches
from lancepart.write.route import route

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def plan(
    manifest: Manifest,
    *,
    mode: str = APPEND,
    where: Filter | None = None,
    on: Sequence[str] = (),
    columns: Collection[str] | None = None,
    idempotency: IdempotencyKey | None = None,
    version: int | None = None,
    name: str | None = None,
    file_bytes: int | None = None,
) -> WriteJob:
    """Plan a write, on a snapshot if one is given, and refuse what can't be done before any task starts.

    ``columns`` are those that the rows of an upsert name, if not all.
    """
    if mode not in MODES:
        raise InvalidInputError(f"mode is {mode!r}: use one of {', '.join(MODES)}")
    transaction = Transaction(manifest=manifest, operation=mode, idempotency=idempotency, version=version)
    unnamed = unnamed_columns(transaction.metadata, columns)
    if mode == UPSERT:
        upserts.check_key(transaction.metadata.plain_schema, on)
        upserts.require_key(on, unnamed)
    done = idempotency is not None and idempotency.is_done(transaction.snapshot)
    return WriteJob(
        root=manifest.root,
        version=transaction.snapshot.version,
        mode=mode,
        where=verbs.filter_of(transaction, where) if mode in (WHERE, ROWS) else None,
        on=tuple(on),
        idempotency=idempotency,
        done=done,
        name=name,
        partial=mode == UPSERT and bool(unnamed),
        file_bytes=file_bytes,
    )


def write_frame(
    manifest: Manifest, frame: DataFrame, action: RowsAction, *, idempotency: IdempotencyKey | None = None
) -> CommitResult | None:
    """Write a DataFrame's rows in one commit; an upsert whose tasks read rows is repeated if these changed."""
    deadline = time.monotonic() + RETRY_SECONDS
    schema = load(manifest).plain_schema
    while True:
        job = plan(manifest, **action.job, columns=frame.columns, idempotency=idempotency)
        reports = [] if job.done else frame_writer().stage(job, frame, schema, action.distribution)
        try:
            return commit(manifest, job, reports)
        except StaleReadError:
            if not job.partial or time.monotonic() > deadline:
                raise


def unnamed_columns(metadata: TableMetadata, columns: Collection[str] | None) -> frozenset[str]:
    """The columns of a table that rows do not name."""
    return frozenset() if columns is None else frozenset(metadata.schema.names) - frozenset(columns)


def write(job: WriteJob, data: RowSource) -> WriteResult:
    """One task: write its rows into the directories of their partitions."""
    if job.done:
        return WriteResult()
    transaction = _transaction(job, Manifest(job.root), job.version)
    metadata = transaction.metadata
    predicate = verbs.filter_of(transaction, job.where) if job.mode == WHERE else None
    found: list[StagedPartition] = []
    keys, rows = [], 0
    for chunk in _chunks(job, transaction, data):
        if predicate is not None:
            verbs.matching(chunk, predicate, predicate)
        rows += chunk.num_rows
        if job.on:
            keys.append(chunk.select(list(job.on)))
        routed = list(route(chunk, metadata.schema, transaction.spec))
        works = transaction.work_for(routed)
        staged = transaction.over(
            list(zip(works, routed, strict=True)), lambda pair: _staged(job, pair[0], pair[1].rows, pair[1])
        )
        found += staged
    return WriteResult(parts=tuple(found), keys=pa.concat_tables(keys) if keys else None, rows=rows)


def _chunks(job: WriteJob, transaction: Transaction, data: RowSource) -> Iterator[pa.Table]:
    """The rows of a task; those of a partial upsert are completed by what the table holds at the job's snapshot."""
    schema = transaction.metadata.plain_schema
    if not job.partial:
        yield from batches(data, schema)
        return
    for rows in partial_batches(data, schema):
        upserts.require_key(job.on, rows.unnamed)
        _, matches = verbs.find_keys(transaction, rows.table.select(list(job.on)), keep=list(rows.unnamed))
        yield upserts.completed(rows, matches, job.on)


def _staged(job: WriteJob, work: LeafChanges, rows: pa.Table, part: Partition) -> StagedPartition:
    """Write rows for a partition; for one that they replace and that can't be opened, as if it were new."""
    try:
        staged = work.stage([rows], file_bytes=job.file_bytes)
    except UnreadableError:
        if job.mode not in (OVERWRITE, REPLACE):
            raise
        work.start_anew()
        staged = work.stage([rows], file_bytes=job.file_bytes)
    assert staged is not None
    return StagedPartition(key=part.key, values=part.values, location=work.location, staged=staged)


def commit(manifest: Manifest, job: WriteJob, reports: Iterable[WriteResult]) -> CommitResult | None:
    """Publish what the tasks wrote, again on a newer snapshot if what it depends on changed meanwhile."""
    if job.done:
        return CommitResult(manifest.snapshot().version)
    with Turn(manifest) as turn:
        return _committed(manifest, job, list(reports), turn)


def _committed(manifest: Manifest, job: WriteJob, written: Sequence[WriteResult], turn: Turn) -> CommitResult | None:
    deadline = time.monotonic() + RETRY_SECONDS
    version: int | None = job.version
    while True:
        begun = time.monotonic()
        try:
            transaction = _transaction(job, manifest, version)
            with storage_errors("take in what tasks wrote", manifest.root):
                adopt(transaction, job, written)
            return transaction.commit()
        except (MissingError, FileNotFoundError) as error:
            message = (
                f"{job.operation}: the snapshot {job.version} at which it began, or what it wrote since, has expired"
            )
            raise CollectedError(f"{message}; nothing was changed, so run it again ({error})") from None
        except CommitConflictError as error:
            if job.mode == ROWS:
                message = f"{job.operation}: {error}; nothing was changed, so run it again"
                raise CommitConflictError(message, partitions=error.partitions) from None
            fatal = job.partial or isinstance(error, CollectedError) or not isinstance(error, StaleReadError)
            if fatal or time.monotonic() > deadline:
                raise
            version = None
            turn.lose(time.monotonic() - begun)
            time.sleep(random.uniform(0, 0.05))


def abandon(job: WriteJob) -> None:
    """Take the entry of a long write away that failed, so that collectors need not wait for it."""
    if writers.is_long(job.began):
        with contextlib.suppress(LanceNamespaceError, OSError):
            writers.leave(Manifest(job.root), job.id)


def job_of(transaction: Transaction) -> WriteJob:
    """A job whose rows become part of a transaction that has begun."""
    return WriteJob(root=transaction.manifest.root, version=transaction.snapshot.version, id=transaction.id)


def _transaction(job: WriteJob, manifest: Manifest, version: int | None) -> Transaction:
    """A transaction under the job's own id, which all its tasks share, and at whose snapshot they began."""
    return Transaction(
        manifest=manifest,
        operation=job.operation,
        idempotency=job.idempotency,
        version=version,
        since=job.version,
        id=job.id,
        began=job.began,
    )


__all__ = [
    "APPEND",
    "OVERWRITE",
    "REPLACE",
    "ROWS",
    "UPSERT",
    "WHERE",
    "WriteJob",
    "WriteResult",
    "abandon",
    "adopt",
    "commit",
    "job_of",
    "plan",
    "write",
]
