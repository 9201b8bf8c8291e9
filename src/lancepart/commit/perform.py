"""Run one change in a transaction of its own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lancepart.commit.idempotency import IdempotencyKey
from lancepart.commit.leaf_changes import StaleReadError
from lancepart.commit.result import CommitResult
from lancepart.commit.transaction import Transaction
from lancepart.errors import LanceNamespaceError
from lancepart.storage.manifest import RETRY_SECONDS, Manifest
from lancepart.storage.turns import Turn


def perform(
    manifest: Manifest,
    operation: str,
    action: Callable[[Transaction], None],
    *,
    once: IdempotencyKey | None = None,
    again: bool = True,
) -> CommitResult | None:
    """Do one thing in a transaction of its own, again if what it read was changed meanwhile and ``again`` allows it."""
    with Turn(manifest) as turn:
        return _performed(manifest, operation, action, turn, once=once, again=again)


def _performed(
    manifest: Manifest,
    operation: str,
    action: Callable[[Transaction], None],
    turn: Turn,
    *,
    once: IdempotencyKey | None,
    again: bool,
) -> CommitResult | None:
    deadline = time.monotonic() + RETRY_SECONDS
    while True:
        begun = time.monotonic()
        transaction = Transaction(manifest=manifest, operation=operation, once=once)
        if once is not None and once.is_done(transaction.snapshot):
            return CommitResult(transaction.snapshot.version)
        try:
            with _telling_what_was_written(transaction):
                action(transaction)
                return transaction.commit()
        except StaleReadError:
            if not again or time.monotonic() > deadline:
                raise
            turn.lose(time.monotonic() - begun)
            time.sleep(random.uniform(0, 0.05))


@contextmanager
def _telling_what_was_written(transaction: Transaction) -> Iterator[None]:
    """In weak mode what failed, or was interrupted, halfway says how far it came."""
    try:
        yield
    except (LanceNamespaceError, KeyboardInterrupt) as error:
        changed = [work.object_id for work in transaction.works.values() if work.is_changed and not work.is_new]
        written = list(dict.fromkeys([*changed, *transaction.known]))
        if not transaction.weak or not written:
            raise
        raise type(error)(f"{error}; partitions written so far: {', '.join(written)}") from error
