"""The indices that a table's owner asked for, remembered so that upkeep can build them again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from lancepart.errors import ConcurrentModificationError, InvalidInputError
from lancepart.format.names import INDICES
from lancepart.model.aliases import JsonMapping
from lancepart.model.values import logical_type
from lancepart.storage.manifest import Manifest
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import ConflictError

_ALIASES = {"FTS": "INVERTED"}
_TRIES = 20


def _is_single(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(logical_type(kind)) and not pa.types.is_dictionary(kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_vector(kind: pa.DataType) -> bool:
    stored = logical_type(kind)
    if not pa.types.is_fixed_size_list(stored):
        return False
    return bool(pa.types.is_floating(stored.value_type) or pa.types.is_integer(stored.value_type))


_KINDS: tuple[tuple[tuple[str, ...], str, Callable[[Any], bool]], ...] = (
    (("ZONEMAP",), "single values", lambda kind: not pa.types.is_nested(logical_type(kind))),
    (("BTREE", "BITMAP", "BLOOMFILTER"), "single values without an encoding", _is_single),
    (("INVERTED",), "text", lambda kind: _is_text(kind) or (_is_list(kind) and _is_text(kind.value_type))),
    (("NGRAM",), "text", _is_text),
    (
        ("LABEL_LIST",),
        "lists of single values",
        lambda kind: _is_list(kind) and not pa.types.is_nested(kind.value_type),
    ),
    (
        ("IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"),
        "vectors, which are lists of numbers of a fixed length",
        _is_vector,
    ),
)


def kind_of(name: Any) -> str:
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

    def check(self, data_type: pa.DataType) -> None:
        """Refuse a kind that no filter or search could use on a column of a type, and what can't be written down."""
        wanted = {kind: what for kinds, what, _ in _KINDS for kind in kinds}
        if self.kind not in wanted:
            raise InvalidInputError(f"index kind {self.kind!r} is unknown: use {', '.join([*wanted, *_ALIASES])}")
        fitting = next(test for kinds, _, test in _KINDS if self.kind in kinds)
        if not fitting(data_type):
            raise InvalidInputError(f"{self.kind} is an index on {wanted[self.kind]}, and not on {data_type}")
        try:
            json.dumps(dict(self.params))
        except TypeError:
            raise InvalidInputError(f"the parameters of index {self.name!r} must be numbers, texts or lists") from None


def defined(snapshot: Snapshot) -> tuple[Index, ...]:
    """The indices that a table is to have."""
    written = json.loads(snapshot.properties.get(INDICES, "[]"))
    return tuple(Index(**{**each, "kind": kind_of(each["kind"])}) for each in written)


def remember(manifest: Manifest, index: Index) -> None:
    """Write an index down, in place of one of the same name."""
    for _ in range(_TRIES):
        snapshot = manifest.snapshot()
        others = [each for each in defined(snapshot) if each.name != index.name]
        wanted = json.dumps([asdict(each) for each in [*others, index]])
        if snapshot.properties.get(INDICES) == wanted:
            return
        try:
            manifest.swap_properties(snapshot, {INDICES: wanted})
            return
        except ConflictError:
            continue
    raise ConcurrentModificationError("other writers kept changing the table's indices; try again")
