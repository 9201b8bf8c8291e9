"""The indices that a table's owner declared, as the manifest's properties keep them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from lancepart.errors import InvalidInputError
from lancepart.format.names import INDICES
from lancepart.model.aliases import JsonMapping
from lancepart.storage.snapshot import Snapshot

TEXT_KIND = "INVERTED"
_ALIASES = {"FTS": TEXT_KIND}


def kind_of(name: object) -> str:
    """A kind of index by the name that Lance builds it under."""
    if not isinstance(name, str):
        raise InvalidInputError(f"the kind of an index is {name!r}: give its name, such as 'BTREE'")
    return _ALIASES.get(name.upper(), name.upper())


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index on one column, named by its field id, in every leaf."""

    name: str
    column: int
    kind: str
    params: JsonMapping = field(default_factory=dict)


def declared(snapshot: Snapshot) -> tuple[Index, ...]:
    """The indices that a table is to have."""
    written = json.loads(snapshot.properties.get(INDICES, "[]"))
    return tuple(Index(**{**each, "kind": kind_of(each["kind"])}) for each in written)
