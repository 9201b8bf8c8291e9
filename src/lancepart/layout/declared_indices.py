"""The indices that a table's owner declared, as the manifest's properties keep them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lancepart.errors import InvalidInputError, InvalidTableStateError
from lancepart.format.names import INDICES, METADATA, OBJECT_ID, fence_id
from lancepart.format.rows import parse_metadata
from lancepart.layout.layouts import layout_of
from lancepart.model.aliases import JsonMapping, JsonObject, Value
from lancepart.storage.root import check_location
from lancepart.storage.snapshot import Snapshot

TEXT_KIND = "INVERTED"
LEAF, TABLE, BOTH, AUTO = "leaf", "table", "both", "auto"
"""Where an index is: in every leaf, over the whole table, or both; or wherever it serves."""

_ALIASES = {"FTS": TEXT_KIND}
_OUTSIDE = frozenset(
    {
        "accelerator",
        "column",
        "fragment_ids",
        "index_type",
        "index_uuid",
        "name",
        "rabitq_model",
        "replace",
        "storage_options",
        "train",
    }
)


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
        """Whether leaves have this index."""
        return self.scope in (LEAF, BOTH)

    @property
    def is_vector(self) -> bool:
        """Whether it finds nearest vectors."""
        return self.kind.startswith("IVF_")

    @property
    def is_over_rows(self) -> bool:
        """Whether its parts over the table are indices of all leaves as one dataset, and not look-ups of keys."""
        return self.is_vector or self.kind == TEXT_KIND

    def to_json(self) -> JsonObject:
        """The index as JSON; fields that earlier releases did not know are left out where they have their default."""
        spelled: JsonObject = {"name": self.name, "column": self.column, "kind": self.kind, "params": dict(self.params)}
        spelled |= {"scope": self.scope} if self.scope != LEAF else {}
        spelled |= {"where": self.where} if self.where is not None else {}
        return spelled | ({"segments": list(self.segments)} if self.segments else {})


def declared(snapshot: Snapshot) -> tuple[Index, ...]:
    """The indices that a table declares."""
    return snapshot.derived("indices", lambda: _read(snapshot), follow=_after_commit)


def text_params(indices: Sequence[Index]) -> dict[int, JsonMapping]:
    """How the texts of columns are made into words, by the ids of the columns: as the index declared last does."""
    return {index.column: index.params for index in indices if index.kind == TEXT_KIND}


def spelled(indices: Sequence[Index]) -> JsonObject:
    """What the row says of the indices of a table in which the commits meet that declare any."""
    return {INDICES: [each.to_json() for each in indices]}


def _read(snapshot: Snapshot) -> tuple[Index, ...]:
    """The declared indices of a table, each part checked: any client may have written them.

    They are in a row, which the commit writes that builds them. Earlier releases kept them as a property.
    """
    layout = layout_of(snapshot)
    metadata = layout.load(snapshot)
    if layout.capabilities(metadata).declared_indices:
        row = snapshot.row(fence_id(metadata.specs[0].id))
        found = None if row is None else (row.metadata or {}).get(INDICES)
        if found is not None:
            return _entries(found)
    try:
        return _entries(json.loads(snapshot.properties.get(INDICES, "[]")))
    except (ValueError, RecursionError) as error:
        raise InvalidTableStateError(f"property {INDICES!r} is not understood: {error}") from None


def _after_commit(known: tuple[Index, ...], changed: pa.Array, written: pa.Table) -> tuple[Index, ...]:
    """The declared indices after a commit, whose rows may declare others."""
    rows = zip(written.column(OBJECT_ID).to_pylist(), written.column(METADATA).to_pylist(), strict=True)
    for name, text in rows:
        if "$" not in name and text is not None and INDICES in text:
            found = (parse_metadata(name, text) or {}).get(INDICES)
            return known if found is None else _entries(found)
    return known


def _entries(found: Value) -> tuple[Index, ...]:
    try:
        return tuple(_entry(**each) for each in found)
    except (ValueError, TypeError, AttributeError, RecursionError, InvalidInputError) as error:
        raise InvalidTableStateError(f"{INDICES!r} is not understood: {error}") from None


def _entry(
    *,
    name: str,
    column: int,
    kind: str,
    params: JsonMapping | None = None,
    scope: str = LEAF,
    where: str | None = None,
    segments: Sequence[str] = (),
) -> Index:
    given = params or {}
    texts = [name, scope, *([] if where is None else [where])]
    plain = all(isinstance(text, str) for text in texts) and type(column) is int and isinstance(given, dict)
    if not plain or not isinstance(segments, list | tuple):
        raise InvalidInputError(f"index {name!r} has a name, the id of a column, a kind and parameters")
    check_params(given)
    found = tuple(check_location(each) for each in segments)
    return Index(name=name, column=column, kind=kind_of(kind), params=given, scope=scope, where=where, segments=found)


def check_params(params: JsonMapping) -> None:
    """Refuse parameters that lead out of the table, or decide where an index is written: they are kept in the table.

    >>> check_params({"num_partitions": 4, "metric": "cosine"})
    """
    found = [name for name in params if name in _OUTSIDE or name.endswith(("_file", "_path", "_dataset", "_buffers"))]
    if found:
        raise InvalidInputError(f"parameter {found[0]!r} of an index leads out of the table: leave it out")
