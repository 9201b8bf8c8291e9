"""Indices of leaf tables: building, dropping, and what they cover."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lance
from lance.bitmap import Bitmap
from lance.dataset import Index

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import JsonMapping, Value
from lancepart.storage import index_facts, leaf_data
from lancepart.storage.files import Files
from lancepart.storage.leaf_handle import LeafHandle, leaf_uri, open_leaf
from lancepart.storage.root import Root
from lancepart.storage.translate import storage_errors

if TYPE_CHECKING:
    from lancepart.storage.dataset import IndexDescription


def build_index(
    root: Root,
    location: str,
    column: str,
    kind: str,
    name: str,
    *,
    base: int,
    fragments: Collection[int] | None = None,
    declared: JsonMapping | None = None,
    **params: Value,
) -> int:
    """Make a version with an index over all rows, or over those of some fragments beside what others are indexed by.

    An index that can't be opened is an error. The parameters that the table declares for it are recorded beside it.
    """
    with storage_errors(f"index the leaf at {location!r}", root):
        handle = lance.dataset(leaf_uri(root, location), version=base, storage_options=root.lance_options)
        ids = [item.fragment_id for item in handle.get_fragments()] if fragments is None else sorted(fragments)
        old = [] if fragments is not None else _named(handle, name)
        built = handle.create_index_uncommitted(column, kind, name=name, replace=True, fragment_ids=ids, **params)
        if kind == "INVERTED":
            built = handle.merge_existing_index_segments([built])
    known = {"facts": index_facts.of(built), "kind": kind, "params": dict(params if declared is None else declared)}
    Files(root).put(_facts_path(location, str(built.uuid)), json.dumps(known).encode())
    newer = leaf_data.commit_version(root, location, lance.LanceOperation.CreateIndex([built], old), base)
    with storage_errors(f"use the new index of the leaf at {location!r}", root):
        lance.dataset(leaf_uri(root, location), version=newer, storage_options=root.lance_options).stats.index_stats(
            name
        )
    return newer


def with_parts(root: Root, location: str, parts: Sequence[RecordedPart], *, base: int) -> int:
    """Make a version with parts of an index that an older one had, in place of what it has under their name."""
    handle = open_leaf(root, location, base)
    old = [item for name in {part.name for part in parts} for item in _named(handle, name)]
    entries = [index_facts.entry(handle, part.name, part.column, part.facts, part.numbers, None) for part in parts]
    return leaf_data.commit_version(root, location, lance.LanceOperation.CreateIndex(entries, old), base)


def drop_index(root: Root, location: str, name: str, *, base: int) -> int | None:
    """Make a version without an index; None if there is none of that name."""
    old = _named(open_leaf(root, location, base), name)
    return leaf_data.commit_version(root, location, lance.LanceOperation.CreateIndex([], old), base) if old else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many parts an index of a leaf has, and the fragments with their rows that it does not cover."""

    segments: int
    uncovered: Mapping[int, int]


def coverage(root: Root, location: str, name: str, *, base: int) -> Coverage:
    """What an index of a leaf covers; one that is not there covers nothing."""
    handle = open_leaf(root, location, base)
    parts = _named(handle, name)
    covered = {number for part in parts for number in part.fragment_ids}
    rows = {item.fragment_id: item.count_rows() for item in handle.get_fragments()}
    return Coverage(
        segments=len(parts), uncovered={number: count for number, count in rows.items() if number not in covered}
    )


def _named(handle: LeafHandle, name: str) -> list[Index]:
    return [item for index in handle.describe_indices() if index.name == name for item in segments_of(index)]


def segments_of(index: IndexDescription) -> list[Index]:
    """The segments of an index, in the form that a commit needs to remove them."""
    return [
        Index(
            uuid=str(part.uuid),
            name=index.name,
            fields=list(index.fields),
            dataset_version=int(part.dataset_version_at_last_update),
            fragment_ids=Bitmap(part.fragment_ids),
            index_version=int(part.index_version),
        )
        for part in index.segments
    ]


def _facts_path(location: str, number: str) -> str:
    return f"{location}/_indices/{number}/segment.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPart:
    """A part of a leaf's index with what was recorded when it was built; ``column`` is the leaf's own id of it."""

    name: str
    column: int
    numbers: frozenset[int]
    facts: Mapping[str, Any]
    kind: str
    params: JsonMapping

    def is_as_declared(self, kind: str, params: JsonMapping) -> bool:
        """Whether it was built for an index of this kind with these parameters."""
        return self.kind == kind and dict(self.params) == dict(params)


def recorded(root: Root, location: str, handle: LeafHandle, names: Collection[str]) -> list[RecordedPart]:
    """The parts of some indices of an open leaf; those of which nothing is recorded, or not rightly, are left out."""
    found = []
    for index in handle.describe_indices():
        for part in index.segments if index.name in names and len(index.fields) == 1 else ():
            known = _known(root, location, str(part.uuid)) if part.base_id is None else None
            if known is not None:
                numbers = frozenset(map(int, part.fragment_ids))
                found.append(RecordedPart(name=index.name, column=int(index.fields[0]), numbers=numbers, **known))
    return found


def _known(root: Root, location: str, number: str) -> dict[str, Any] | None:
    try:
        known = json.loads(Files(root).read(_facts_path(location, number)))
        facts = index_facts.checked(known["facts"])
        if facts["uuid"] != number:
            return None
        return {"facts": facts, "kind": str(known["kind"]), "params": dict(known["params"])}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidInputError):
        return None
