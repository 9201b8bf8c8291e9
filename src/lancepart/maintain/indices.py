"""The indices that a table's owner asked for, remembered so that upkeep can build them again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lancepart.errors import ConcurrentModificationError, InvalidInputError
from lancepart.storage.manifest import Manifest
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import ConflictError

PROPERTY = "lancepart.indices"
_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index on one column, named by its field id, in every leaf."""

    name: str
    column: int
    kind: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse what can't be written down."""
        try:
            json.dumps(dict(self.params))
        except TypeError:
            raise InvalidInputError(f"the parameters of index {self.name!r} must be numbers, texts or lists") from None


def defined(snapshot: Snapshot) -> tuple[Index, ...]:
    """The indices that a table is to have."""
    return tuple(Index(**each) for each in json.loads(snapshot.properties.get(PROPERTY, "[]")))


def remember(manifest: Manifest, index: Index) -> None:
    """Write an index down, in place of one of the same name."""
    for _ in range(_TRIES):
        snapshot = manifest.snapshot()
        others = [each for each in defined(snapshot) if each.name != index.name]
        wanted = json.dumps([asdict(each) for each in [*others, index]])
        if snapshot.properties.get(PROPERTY) == wanted:
            return
        try:
            manifest.swap_properties(snapshot, {PROPERTY: wanted})
            return
        except ConflictError:
            continue
    raise ConcurrentModificationError("other writers kept changing the table's indices; try again")
