"""Parts of table-wide indices: Lance's index files in directories of their own, and which fragments they cover."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import Session
from lance.dataset import Index

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import JsonMapping
from lancepart.storage import index_facts, leaf_handle
from lancepart.storage.files import Files
from lancepart.storage.index_facts import checked_value
from lancepart.storage.root import Root
from lancepart.storage.translate import DamagedError, storage_errors

DIRECTORY = "table_indices"
FACTS = "_refs/segment.json"
"""What says what a part is; without it nobody uses the part."""

_LAST_FRAGMENT = (1 << 32) - 1
_TEXT_KIND = "INVERTED"
KEY, LEAF = "key", "leaf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of an index over a union of leaves; ``fragments`` are the union's numbers of those that it covers.

    A look-up of keys has no index of Lance's own over leaves: ``leaves`` are the versions whose keys it holds, ``held``
    what the fragments of each were, as far as that was written down.
    """

    name: str
    facts: Mapping[str, Any]
    fragments: Mapping[str, int]
    leaves: tuple[tuple[str, int], ...] = ()
    held: tuple[frozenset[str], ...] = ()


def place_of(name: str) -> str:
    """Where the files of a part are, from the root on."""
    return f"{DIRECTORY}/{name}"


def build(handle: lance.LanceDataset, column: str, kind: str, numbers: Sequence[int], params: JsonMapping) -> Index:
    """Build an index over some fragments of a union on disk, without making it part of the union.

    One of texts answers queries for phrases too, as those in memory do.
    """
    params = {**params, "with_position": True} if kind == _TEXT_KIND else params
    built = handle.create_index_uncommitted(
        column, kind, name="table_index", replace=True, fragment_ids=list(numbers), **params
    )
    return handle.merge_existing_index_segments([built]) if kind == _TEXT_KIND else built


def write(root: Root, name: str, built: Index, fragments: Mapping[str, int]) -> None:
    """Write down what a part is, so that any reader can use it."""
    recorded = {"facts": index_facts.of(built), "fragments": dict(fragments)}
    Files(root).put(f"{place_of(name)}/{FACTS}", json.dumps(recorded).encode())


def read(root: Root, name: str) -> Segment | None:
    """A part of an index; None if it is gone. What says what it is may be damaged, or written by another client."""
    path = f"{place_of(name)}/{FACTS}"
    try:
        recorded = json.loads(Files(root).read(path))
        known = {key: recorded[key] for key in ("facts", "fragments", "leaves", "held") if key in recorded}
        if not known:
            raise ValueError("it says nothing of a part")
        return _segment(name, **known)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidInputError) as error:
        raise DamagedError(
            f"{path} is damaged ({error!r}): maintenance.optimize_indices() builds this part of an index again"
        ) from None


def usable(root: Root, name: str) -> Segment | None:
    """A part of an index; None if it is gone or damaged: then rows are found without it, and upkeep builds it again."""
    try:
        return read(root, name)
    except DamagedError:
        return None


def _segment(
    name: str,
    *,
    facts: Mapping[str, Any] | None = None,
    fragments: Mapping[str, Any] | None = None,
    leaves: Sequence[Any] = (),
    held: Sequence[Any] = (),
) -> Segment:
    """A part as it is recorded, every value checked."""
    versions = tuple((checked_value(location, str), checked_value(version, int)) for location, version in leaves)
    numbers = {checked_value(key, str): checked_value(number, int) for key, number in (fragments or {}).items()}
    if any(not 0 <= number <= _LAST_FRAGMENT for number in numbers.values()):
        raise ValueError("the number of a fragment has more than 32 bits")
    known = index_facts.checked(facts) if facts else {}
    keys = tuple(frozenset(checked_value(key, str) for key in checked_value(each, list)) for each in held)
    return Segment(name=name, facts=known, fragments=numbers, leaves=versions, held=keys)


def missing_files(root: Root, segment: Segment) -> list[str]:
    """The files of a part that are gone, as paths beneath the root; a look-up that can't be opened is an error."""
    place, store = place_of(segment.name), Files(root)
    if not segment.facts:
        return leaf_handle.missing_files(root, place, open_lookup(root, segment.name))
    directory = f"{place}/_indices/{segment.facts['uuid']}"
    return [path for file, _ in segment.facts["files"] if not store.exists(path := f"{directory}/{file}")]


def attached(
    root: Root, handle: lance.LanceDataset, found: Sequence[tuple[str, int, Segment, int]]
) -> lance.LanceDataset:
    """A union with parts of indices: each with its index's name, the column's id, and the number of its directory."""
    entries = [
        index_facts.entry(handle, name, column, part.facts, part.fragments.values(), base)
        for name, column, part, base in found
    ]
    return index_facts.with_entries(root, handle, entries, ())


def write_lookup(
    root: Root, name: str, keys: pa.Table, leaves: Sequence[tuple[str, int]], held: Sequence[Sequence[str]]
) -> None:
    """Write a look-up of keys: a small table of keys and of the leaves that hold them, sorted and indexed."""
    with storage_errors("write a look-up of keys", root):
        ordered = keys.sort_by([(KEY, "ascending")])
        options = root.lance_options
        made = lance.write_dataset(ordered, root.uri_of(place_of(name)), mode="create", storage_options=options)
        made.create_scalar_index(KEY, "BTREE")
    recorded = {"leaves": [list(each) for each in leaves], "held": [list(each) for each in held]}
    Files(root).put(f"{place_of(name)}/{FACTS}", json.dumps(recorded).encode())


def open_lookup(root: Root, name: str, *, session: Session | None = None) -> lance.LanceDataset:
    """Open a look-up of keys."""
    with storage_errors("open a look-up of keys", root):
        options = root.lance_options
        return lance.dataset(root.uri_of(place_of(name)), storage_options=options, session=session)


def leaves_with(handle: lance.LanceDataset, where: str) -> npt.NDArray[np.int32]:
    """The numbers of the leaves that hold a key that a filter matches."""
    found: npt.NDArray[np.int32] = handle.scanner(columns=[LEAF], filter=where).to_table().column(LEAF).to_numpy()
    return np.unique(found)
