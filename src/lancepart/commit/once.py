"""Keys by which a job that is run again is recognised, however long ago it was."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lancepart.errors import InvalidInputError
from lancepart.storage.rows import TABLE_VERSION, Change, Row, Update, dump_metadata, now
from lancepart.storage.snapshot import Snapshot

_OWNER = "lancepart.once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """A key that commits at most once or, with a sequence number, once for each number, in rising order.

    It is a row of the manifest, written in the same merge as the data: a ``table_version`` of no table, which other
    clients pass over and which no upkeep removes.
    """

    key: str
    sequence: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not self.key:
            raise InvalidInputError(f"the idempotency key is {self.key!r}: give a text that names the job's run")

    @property
    def object_id(self) -> str:
        """The id of the key's row."""
        return f"{_OWNER}${hashlib.sha256(self.key.encode()).hexdigest()[:32]}$1"

    def is_done(self, snapshot: Snapshot) -> bool:
        """Whether a commit has the key already."""
        row = snapshot.row(self.object_id)
        return row is not None and int((row.metadata or {}).get("sequence", 0)) >= self.sequence

    def written(self, snapshot: Snapshot, details: Mapping[str, Any]) -> Change:
        """The change that records it."""
        metadata = {"key": self.key, "sequence": self.sequence, **details}
        if snapshot.row(self.object_id) is not None:
            return Change(updates=(Update(object_id=self.object_id, values={"metadata": dump_metadata(metadata)}),))
        row = Row(object_id=self.object_id, object_type=TABLE_VERSION, metadata=metadata, created_at=now())
        return Change(inserts=(row,))


def is_key(object_id: str) -> bool:
    """Whether a row of the manifest is that of a key."""
    return object_id.startswith(f"{_OWNER}$")


class AlreadyDoneError(Exception):
    """A commit under the same key was made before; nothing is left to do."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version
