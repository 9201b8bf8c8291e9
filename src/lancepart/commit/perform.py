"""Run one change in a transaction of its own, for every layout and every kind of rows."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lancepart.commit import distributed_write
from lancepart.commit.actions import Action, RowsAction, Upsert
from lancepart.commit.conflicts import StaleReadError
from lancepart.commit.hive import write_leaf_by_leaf
from lancepart.commit.idempotency import IdempotencyKey
from lancepart.commit.result import CommitResult
from lancepart.commit.transaction import Transaction
from lancepart.errors import LanceNamespaceError
from lancepart.layout.layouts import capabilities
from lancepart.layout.table_manifest import TableManifest, committing, has_commits, load
from lancepart.model.config import config
from lancepart.storage.manifest import RETRY_SECONDS, Manifest
from lancepart.storage.turns import Turn
from lancepart.write.frames import is_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def perform(
    manifest: TableManifest, action: Action, *, idempotency: IdempotencyKey | None = None
) -> CommitResult | None:
    """Do one thing in a transaction of its own, again if what it read was changed meanwhile and that is possible.

    The new snapshot's version, ``None`` for a table without snapshots.
    """
    if idempotency is None and not has_commits(manifest):
        write_leaf_by_leaf(manifest, action)
        return None
    own = committing(manifest, "an idempotency key")
    if isinstance(action, RowsAction) and is_spark(action.data) and _is_for_executors(own, action, action.data):
        return distributed_write.write_frame(own, action.data, action, idempotency=idempotency)
    with Turn(own) as turn:
        return _performed(own, action, turn, idempotency=idempotency)


def _is_for_executors(manifest: Manifest, action: RowsAction, frame: DataFrame) -> bool:
    """Whether a cluster writes the rows of a DataFrame, or only a driver can complete them.

    An upsert of some columns needs what the others hold; without snapshots no task could say which version held it.
    """
    if not isinstance(action, Upsert):
        return True
    metadata = load(manifest)
    return capabilities(metadata).snapshots or not distributed_write.unnamed_columns(metadata, frame.columns)


def _performed(
    manifest: Manifest, action: Action, turn: Turn, *, idempotency: IdempotencyKey | None
) -> CommitResult | None:
    deadline, attempt = time.monotonic() + RETRY_SECONDS, 0
    while True:
        begun = time.monotonic()
        transaction = Transaction(manifest=manifest, operation=action.name, idempotency=idempotency)
        if idempotency is not None and idempotency.is_done(transaction.snapshot):
            return CommitResult(transaction.snapshot.version)
        try:
            with _reporting_what_was_written(transaction):
                action.apply(transaction)
                return transaction.commit()
        except StaleReadError:
            spent = config.retries is not None and attempt >= config.retries
            if spent or not action.is_repeatable or time.monotonic() > deadline:
                raise
            attempt += 1
            turn.lose(time.monotonic() - begun)
            time.sleep(random.uniform(0, 0.05))
        finally:
            transaction.abandon()


@contextmanager
def _reporting_what_was_written(transaction: Transaction) -> Iterator[None]:
    """In weak mode an error or interrupt halfway says how far the change got."""
    try:
        yield
    except (LanceNamespaceError, KeyboardInterrupt) as error:
        changed = [work.object_id for work in transaction.works.values() if work.is_changed and not work.is_new]
        written = list(dict.fromkeys([*changed, *transaction.known]))
        if not transaction.weak or not written:
            raise
        raise type(error)(f"{error}; partitions written so far: {', '.join(written)}") from error
