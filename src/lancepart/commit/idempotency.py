"""Idempotency keys, by which a job that is run again is recognised."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from lancepart.errors import CommitConflictError, InvalidInputError
from lancepart.format.names import key_id
from lancepart.format.records import KeyRecord, Signature
from lancepart.format.rows import now
from lancepart.storage.manifest_rows import Change, metadata_update
from lancepart.storage.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """A key that commits at most once or, with a sequence number, once for each number, in rising order.

    It is a row of the manifest, written in the same merge as the data: a ``table_version`` of no table, which other
    clients pass over and which no upkeep removes. ``additional_keys`` are further keys of the same commit: all of them
    or none.
    """

    key: str
    sequence: int = 0
    additional_keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not self.key:
            raise InvalidInputError(
                f"the idempotency key is {self.key!r}: give a string that identifies the run of the job"
            )

    @property
    def object_id(self) -> str:
        """The id of the key's row."""
        return key_id(hashlib.sha256(self.key.encode()).hexdigest()[:32])

    @property
    def _all(self) -> tuple[IdempotencyKey, ...]:
        return (
            replace(self, additional_keys=()),
            *(replace(self, key=key, additional_keys=()) for key in self.additional_keys),
        )

    def recorded(self, snapshot: Snapshot) -> int | None:
        """The last sequence number that was committed under the key."""
        row = snapshot.row(self.object_id)
        return None if row is None else KeyRecord.from_row(row).sequence

    def is_done(self, snapshot: Snapshot) -> bool:
        """Whether a commit has the key already."""
        snapshot.rows(each.object_id for each in self._all)
        found = [each.recorded(snapshot) for each in self._all]
        done = [number is not None and number >= self.sequence for number in found]
        if any(done) and not all(done):
            raise CommitConflictError(
                f"another writer has committed some of the idempotency keys that belong to {self.key!r}, but not all"
            )
        return done[0]

    def written(self, snapshot: Snapshot, signature: Signature) -> Change:
        """The change that records it."""
        change = Change()
        for each in self._all:
            before = snapshot.row(each.object_id)
            record = KeyRecord(
                object_id=each.object_id,
                key=each.key,
                sequence=each.sequence,
                signature=signature,
                others={} if before is None else KeyRecord.from_row(before).others,
                created_at=now(),
            )
            row = record.to_row()
            if before is not None:
                change += Change(updates=(metadata_update(each.object_id, row.metadata or {}),))
            else:
                change += Change(inserts=(row,))
        return change


class AlreadyDoneError(Exception):
    """A commit under the same key was made before; nothing is left to do."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version
