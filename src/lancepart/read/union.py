"""Leaves of one snapshot as one Lance dataset, without copying their rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, TypeVar

from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.predicate import Is, Not, Predicate
from lancepart.plan import planner
from lancepart.read import leaf as reading
from lancepart.read.leaf import LeafTask
from lancepart.read.prefetch import THREADS
from lancepart.read.union_builder import Builder, Source, has_blobs, live_fragments, schema_of
from lancepart.read.union_parts import LeafParts, Part, UnionParts, parts_of
from lancepart.storage import lance_tables, leaf_data, union
from lancepart.storage.dataset import Dataset
from lancepart.storage.leaf_data import Fragment
from lancepart.storage.root import Root
from lancepart.storage.union import EmptyUnion

if TYPE_CHECKING:
    from lancepart.read.scan import Scan

Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """One Lance dataset over leaves of a snapshot; ``fragments`` tells of each of its fragments whose it is.

    That is the leaf's object id, and the fragment's number in the leaf. ``keys`` are the numbers of fragments by their
    ``fragment_keys``, ``bases`` those of other directories.
    """

    dataset: Dataset
    fragments: Mapping[int, tuple[str, int]]
    keys: Mapping[str, int] = dataclass_field(default_factory=dict)
    bases: Mapping[str, int] = dataclass_field(default_factory=dict)


def of_scan(scan: Scan, uri: str = union.MEMORY) -> Union:
    """Exactly the rows of a scan: leaves that hold others have these hidden by deletion files of the union's own."""
    partly = matching_partly(scan)
    return of_leaves(scan.root, scan.metadata, scan.plan().leaves, predicate=scan.predicate, partly=partly, uri=uri)


def table_provider(scan: Scan, session: object) -> object:
    """The rows of a scan as what DataFusion's ``register_table`` takes."""
    return lance_tables.table_capsule(of_scan(scan).dataset, session)


def matching_partly(scan: Scan) -> frozenset[str]:
    """The leaves that may hold a row that the filter does not match."""
    if scan.predicate is None:
        return frozenset()
    other = Not(operand=Is(operand=scan.predicate, outcome=True))
    return frozenset(item.object_id for item in planner.plan(scan.snapshot, scan.metadata, other).leaves)


def of_leaves(
    root: Root,
    metadata: TableMetadata,
    leaves: Sequence[Leaf],
    *,
    predicate: Predicate | None = None,
    partly: frozenset[str] | None = None,
    uri: str = union.MEMORY,
    opener: Callable[[LeafTask], Dataset] = reading.open_leaf,
    known: Mapping[str, int] | None = None,
    others: Sequence[str] = (),
    copying: bool = True,
) -> Union:
    """All rows of some leaves, or those that a filter matches, as one dataset in memory or at ``uri``.

    ``partly`` are the leaves of which some rows may not match; by default the filter is asked of all. ``known`` are
    the numbers of fragments that an index covers, by their ``fragment_keys``; the others get higher ones. ``others``
    are directories of datasets whose files are named later. Without ``copying``, leaves of which columns would have to
    be written anew are refused, and rows come in the order of the leaves as they are given.
    """
    kept = parts_of(root, metadata) if metadata.salt and not has_blobs(metadata) else UnionParts(key=None)
    ordered = sorted(leaves, key=lambda item: item.object_id) if copying else leaves
    whole = frozenset(item.object_id for item in ordered if predicate is None or _is_whole(item, partly))
    there = {item.object_id: kept.known(item) for item in ordered if item.object_id in whole}

    def opened(item: Leaf) -> Source | None:
        asked = None if item.object_id in whole else predicate
        return open_source(LeafTask(root=root, metadata=metadata, leaf=item, columns=(), predicate=asked), opener)

    again = [item for item in ordered if there.get(item.object_id) is None]
    sources = [source for source in over(again, opened) if source is not None]
    places = [kept.place(root, source.leaf.location, source.handle) for source in sources]
    named = {other: kept.number(other) for other in others}
    used = {*named.values(), *(number for place in places for number in place.values())}
    used.update(number for each in there.values() if each is not None for number in each.bases)
    empty = union.create(root, uri, schema_of(metadata, sources), kept.bases.registered(used))
    builder = Builder(metadata, empty, copying=copying)
    built = over(list(zip(sources, places, strict=True)), lambda item: _leaf_parts(builder, *item))
    for source, made in zip(sources, built, strict=True):
        there[source.leaf.object_id] = made
        if source.leaf.object_id in whole and made.is_lasting:
            kept.keep(source.leaf, made)
    kept.account()
    return _numbered(empty, ordered, there, Numbers(known or {}), named)


def _is_whole(leaf: Leaf, partly: frozenset[str] | None) -> bool:
    """Whether all rows of a leaf match."""
    return partly is not None and leaf.object_id not in partly


def _leaf_parts(builder: Builder, source: Source, place: Mapping[int | None, int]) -> LeafParts:
    """The fragments of a leaf that the union shows, not numbered yet."""
    found = [item for item in live_fragments(source) if source.shown is None or item.id in source.shown]
    made = builder.fragments(source, place, [(0, item) for item in found])
    return LeafParts(
        parts=tuple(
            Part(keys=fragment_keys(source.leaf.location, item), fragment=int(item.id), shown=part, hidden=hidden)
            for item, (part, hidden) in zip(found, made, strict=True)
        ),
        bases=frozenset(place.values()),
    )


def _numbered(
    empty: EmptyUnion,
    leaves: Sequence[Leaf],
    there: Mapping[str, LeafParts | None],
    numbers: Numbers,
    bases: Mapping[str, int],
) -> Union:
    """The union of the parts of leaves, in the order of leaves but for numbers that are known."""
    made, hidden, whose = [], {}, {}
    for leaf in leaves:
        found = there.get(leaf.object_id)
        for part in () if found is None else found.parts:
            number = numbers.of(part.keys)
            made.append(replace(part.shown, id=number))
            whose[number] = (leaf.object_id, part.fragment)
            if len(part.hidden):
                hidden[number] = part.hidden
    return Union(dataset=empty.filled(made, hidden), fragments=whose, keys=numbers.given, bases=bases)


def fragment_keys(location: str, item: Fragment) -> tuple[str, str]:
    """What tells a fragment of a leaf from all others: the files of its rows, and these with its deleted rows.

    An index that was built while rows were deleted lacks them for good, also where a rollback brings them back.
    """
    rows = " ".join([location, *(file.path for file in item.files)])
    gone = item.deletion_file
    return rows, rows if gone is None else f"{rows} without {gone.read_version}-{gone.id}"


class Numbers:
    """The numbers of a union's fragments: those that are known, and for the others the next ones."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self._known, self._next = known, max(known.values(), default=0)
        self.given: dict[str, int] = {}

    def of(self, keys: tuple[str, str]) -> int:
        """The number of a fragment: that which was known with all its rows, or with the same ones deleted."""
        key = covered_key(keys, self._known)
        if key is None:
            self._next += 1
            self.given[keys[1]] = self._next
            return self._next
        self.given[key] = self._known[key]
        return self._known[key]


def covered_key(keys: tuple[str, str], covered: Collection[str]) -> str | None:
    """The key under which an index covers all rows of a fragment, None if it does not."""
    return next((key for key in keys if key in covered), None)


def over(items: Sequence[Item], action: Callable[[Item], Made]) -> list[Made]:
    """Do something for each item, on threads."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(action, items))


def open_source(task: LeafTask, opener: Callable[[LeafTask], Dataset] = reading.open_leaf) -> Source | None:
    """Open a leaf, and find the rows that its filter matches; None if it has none."""
    opened = reading.opened(task, opener)
    if opened is None:
        return None
    shape = leaf_data.shape_of(opened.handle)
    source = Source(leaf=task.leaf, handle=opened.handle, shape=shape, matching=opened.matching)
    if opened.task.predicate is None:
        return source
    found = reading.matching_addresses(opened.task)
    return replace(source, shown=leaf_data.split_addresses(found)) if len(found) else None
