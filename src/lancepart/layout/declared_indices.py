"""The indices that a table's owner declared, as the manifest's properties keep them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from lancepart.errors import InvalidInputError
from lancepart.format.names import INDICES
from lancepart.model.aliases import JsonMapping, JsonObject
from lancepart.storage.snapshot import Snapshot

TEXT_KIND = "INVERTED"
LEAF, TABLE, BOTH, AUTO = "leaf", "table", "both", "auto"
"""Where an index is: in every leaf, over the whole table, or both; or wherever it serves."""

_ALIASES = {"FTS": TEXT_KIND}


def kind_of(name: object) -> str:
    """A kind of index by the name that Lance builds it under."""
    if not isinstance(name, str):
        raise InvalidInputError(f"the kind of an index is {name!r}: give its name, such as 'BTREE'")
    return _ALIASES.get(name.upper(), name.upper())


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index on one column, named by its field id, in leaves, over the table, or both.

    ``where`` says which partitions get one, all if it is None; ``segments`` are the parts of a table-wide one, each a
    directory beneath the root, the oldest first.
    """

    name: str
    column: int
    kind: str
    params: JsonMapping = field(default_factory=dict)
    scope: str = LEAF
    where: str | None = None
    segments: tuple[str, ...] = ()

    @property
    def in_leaves(self) -> bool:
        """Whether leaves are to have it."""
        return self.scope in (LEAF, BOTH)

    @property
    def is_vector(self) -> bool:
        """Whether it finds nearest vectors."""
        return self.kind.startswith("IVF_")

    def to_json(self) -> JsonObject:
        """What is written down; what earlier versions did not know is left out where it is as usual."""
        spelled: JsonObject = {"name": self.name, "column": self.column, "kind": self.kind, "params": dict(self.params)}
        spelled |= {"scope": self.scope} if self.scope != LEAF else {}
        spelled |= {"where": self.where} if self.where is not None else {}
        return spelled | ({"segments": list(self.segments)} if self.segments else {})


def declared(snapshot: Snapshot) -> tuple[Index, ...]:
    """The indices that a table is to have."""
    return snapshot.derived("indices", lambda: _read(snapshot))


def _read(snapshot: Snapshot) -> tuple[Index, ...]:
    written = json.loads(snapshot.properties.get(INDICES, "[]"))
    return tuple(
        Index(**{**each, "kind": kind_of(each["kind"]), "segments": tuple(each.get("segments", ()))})
        for each in written
    )
