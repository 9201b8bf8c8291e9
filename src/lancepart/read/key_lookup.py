"""Finding the leaves that can hold a key by a table-wide index: for filters on columns that are not the partition's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lancepart.layout.declared_indices import Index, declared
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.layout.recorded_files import recorded_files
from lancepart.model.predicate import And, Comparison, In, Or, Predicate
from lancepart.read.lance_pushdown import lance_filter
from lancepart.read.union import covered_key, fragment_keys
from lancepart.storage import leaf_record, table_index
from lancepart.storage.cache import cache
from lancepart.storage.dataset import Dataset
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.table_index import KEY, Segment
from lancepart.storage.translate import storage_errors

FEW = 2
"""So few leaves are read without a look at their keys."""


FragmentKeys = tuple[str, str]
_MOST_FRAGMENTS = 32


class HeldLeaves:
    """The leaves whose keys a part of a look-up holds: at the versions that it was built of, and at later ones.

    A version with another index, or with fewer rows, has no key that the part lacks: its fragments are the same. If
    ``exactly``, one with fewer rows does not count, of which the part may hold keys that are gone.
    """

    def __init__(self, part: Segment, *, exactly: bool = False) -> None:
        self._exactly = exactly
        self._versions = {version: number for number, version in enumerate(part.leaves)}
        held = zip(part.leaves, part.held, strict=False)
        self._fragments = {leaf[0]: (number, keys) for number, (leaf, keys) in enumerate(held) if keys}
        self._compared: dict[str, tuple[int, int | None]] = {}

    def number_of(self, leaf: Leaf) -> int | None:
        """The number of a leaf in the part; None if rows of it may have keys that the part lacks."""
        known = self._versions.get((leaf.location, leaf.read_version or 0))
        if known is not None:
            return known
        version, number = self._compared.get(leaf.location, (0, None))
        return number if version == leaf.read_version else None

    def is_unsure(self, leaf: Leaf) -> bool:
        """Whether the fragments of a leaf must be known to tell."""
        known = (leaf.location, leaf.read_version or 0) in self._versions
        compared = self._compared.get(leaf.location, (0, None))[0] == leaf.read_version
        return leaf.location in self._fragments and leaf.read_version is not None and not known and not compared

    def compare(self, leaf: Leaf, fragments: Sequence[FragmentKeys] | None) -> None:
        """Find out whether the part holds all keys of a leaf with these fragments; None if they are not known."""
        number, keys = self._fragments[leaf.location]
        own = {leaf.location + key for key in keys}
        held = fragments is not None and self._holds(own, fragments)
        self._compared[leaf.location] = (leaf.read_version or 0, number if held else None)

    def _holds(self, own: set[str], fragments: Sequence[FragmentKeys]) -> bool:
        if self._exactly:
            return own == {each[1] for each in fragments}
        return all(covered_key(each, own) is not None for each in fragments)


def spelled(leaf: Leaf, fragments: Sequence[FragmentKeys]) -> list[str]:
    """What a look-up writes down of the fragments of a leaf; nothing of very many."""
    if len(fragments) > _MOST_FRAGMENTS:
        return []
    return [with_deletions.removeprefix(leaf.location) for _, with_deletions in fragments]


def recorded_keys(snapshot: Snapshot, leaves: Sequence[Leaf]) -> Mapping[str, list[FragmentKeys]]:
    """The keys of the fragments of leaves, by their locations, as far as the manifest records these."""
    found = recorded_files(snapshot, leaves)
    return {
        leaf.location: [fragment_keys(leaf.location, leaf_record.fragment(item)) for item in files.fragments]
        for leaf in leaves
        if (files := found.get(leaf.object_id)) is not None
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """An open part of a look-up, and the leaves whose keys it holds."""

    handle: Dataset
    held: HeldLeaves
    size: int


def narrowed(
    root: Root, snapshot: Snapshot, metadata: TableMetadata, leaves: Sequence[Leaf], predicate: Predicate | None
) -> Sequence[Leaf]:
    """The leaves that may hold a row that a filter matches: those with the key, and those that changed since."""
    if predicate is None or len(leaves) <= FEW:
        return leaves
    for index in declared(snapshot):
        if index.segments and not index.is_over_rows and index.column in metadata.columns:
            test = _test_on(predicate, metadata.columns[index.column].name)
            if test is not None:
                leaves = _narrowed(root, snapshot, metadata, leaves, index, test)
    return leaves


def _test_on(predicate: Predicate, column: str) -> Predicate | None:
    """What a filter demands of one column: that it has one of some values."""
    match predicate:
        case Comparison(column=name, operator="=") if name == column:
            return predicate
        case In(column=name, negated=False) if name == column:
            return predicate
        case And(operands=operands):
            return next((found for each in operands if (found := _test_on(each, column)) is not None), None)
        case Or(operands=operands):
            tests = [_test_on(each, column) for each in operands]
            return Or(operands=tuple(test for test in tests if test is not None)) if None not in tests else None
    return None


def _narrowed(
    root: Root, snapshot: Snapshot, metadata: TableMetadata, leaves: Sequence[Leaf], index: Index, test: Predicate
) -> Sequence[Leaf]:
    field = metadata.columns[index.column]
    pushed, _ = lance_filter(test, {field.name: field.type})
    if pushed is None:
        return leaves
    where = pushed.to_sql({field.name: KEY})
    opened = (
        cache.get(("lookup", *root.identity, name), lambda name=name: _opened(root, name), _size)  # type: ignore[misc]
        for name in index.segments
    )
    parts = [part for part in opened if part is not None and part.handle.schema.field(KEY).type == field.type]
    compare(snapshot, leaves, [part.held for part in parts])
    left, holding = leaves, set[str]()
    for part in reversed(parts):
        with storage_errors("look up keys", root):
            found = set(table_index.leaves_with(part.handle, where).tolist())
        numbers = {leaf.object_id: number for leaf in left if (number := part.held.number_of(leaf)) is not None}
        left = [leaf for leaf in left if leaf.object_id not in numbers]
        holding |= {name for name, number in numbers.items() if number in found}
    wanted = holding | {leaf.object_id for leaf in left}
    return [leaf for leaf in leaves if leaf.object_id in wanted]


def compare(snapshot: Snapshot, leaves: Sequence[Leaf], parts: Sequence[HeldLeaves]) -> None:
    """Compare the fragments of leaves at other versions than parts were built of, once for each version."""
    unsure = [leaf for leaf in leaves if any(part.is_unsure(leaf) for part in parts)]
    now = recorded_keys(snapshot, unsure) if unsure else {}
    for leaf in unsure:
        for part in parts:
            if part.is_unsure(leaf):
                part.compare(leaf, now.get(leaf.location))


def _opened(root: Root, name: str) -> _Part | None:
    found = table_index.usable(root, name)
    if found is None or found.facts:
        return None
    handle = table_index.open_lookup(root, name, session=cache.session)
    return _Part(handle=handle, held=HeldLeaves(found), size=512 * (1 + len(found.leaves)))


def _size(part: _Part | None) -> int:
    return 256 if part is None else part.size
