"""Writers that take long, entered in the manifest so that collectors keep their files.

Only progress depends on it: no commit loses files without it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lancepart.format.names import AGE, ENTERED, of_writers, writer_id
from lancepart.format.records import KeyRecord, Signature, number_of
from lancepart.format.rows import now, read_rows
from lancepart.layout import create
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import Change, metadata_update
from lancepart.storage.snapshot import Snapshot

LONG_SECONDS = 600.0
RENEWED_SECONDS = 6 * 3600.0
PROTECTED = timedelta(days=1)

_MARGIN = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LongWriter:
    """A long write: the snapshot at which it began, that before its entry, and the time that lay between."""

    object_id: str
    since: int
    entered: int
    age: timedelta

    def entered_at(self, stored: Sequence[tuple[int, datetime]]) -> datetime:
        """When it was entered by the store's clock, which dates the commit that did it."""
        return next((taken for version, taken in stored if version > self.entered), stored[-1][1])

    def began_at(self, stored: Sequence[tuple[int, datetime]]) -> datetime:
        """A moment before its first file by the store's clock."""
        return self.entered_at(stored) - self.age - _MARGIN


def is_long(began: float) -> bool:
    """Whether a write that began at a wall-clock time counts as long."""
    return time.time() - began > LONG_SECONDS


def enter(manifest: Manifest, signature: Signature, since: int, began: float) -> None:
    """Enter a long write, or renew its entry, unless it or another of its tasks did so lately.

    A table that was dropped has no writers.
    """
    identifier = writer_id(signature.transaction)

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        create.load(snapshot)
        age, known = time.time() - began, snapshot.row(identifier)
        if known is not None and age - number_of(known, AGE) < RENEWED_SECONDS:
            return Change(), None
        said = {AGE: age, ENTERED: snapshot.version}
        if known is not None:
            return Change(updates=(metadata_update(identifier, {**(known.metadata or {}), **said}),)), None
        record = KeyRecord(
            object_id=identifier,
            key=signature.transaction,
            sequence=since,
            signature=Signature(transaction=signature.transaction, operation="begin", by=signature.by),
            others=said,
            created_at=now(),
        )
        return Change(inserts=(record.to_row(),)), None

    manifest.transact(plan)


def leave(manifest: Manifest, transaction: str) -> None:
    """Take the entry of a write away that will not commit."""
    manifest.transact(lambda snapshot, retry: (leaving(snapshot, transaction), None))


def leaving(snapshot: Snapshot, transaction: str) -> Change:
    """The change that takes a write's entry away when it commits."""
    identifier = writer_id(transaction)
    return Change() if snapshot.row(identifier) is None else Change(deletes=(identifier,))


def entered(snapshot: Snapshot) -> list[LongWriter]:
    """All long writes that are entered."""
    found = snapshot.scan(of_writers())
    rows = read_rows(found)
    return [
        LongWriter(
            object_id=row.object_id,
            since=KeyRecord.from_row(row).sequence,
            entered=int(number_of(row, ENTERED)),
            age=timedelta(seconds=number_of(row, AGE)),
        )
        for row in rows
    ]
