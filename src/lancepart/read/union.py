"""Leaves of one snapshot as one Lance dataset, without copying their rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING

from lancepart.format.numbers import FIRST
from lancepart.layout.declared_indices import Index, declared
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import STRONG, TableMetadata
from lancepart.model.predicate import Is, Not, Predicate
from lancepart.plan import planner
from lancepart.read import index_parts
from lancepart.read import leaf as reading
from lancepart.read.index_parts import IndexPart
from lancepart.read.leaf import LeafTask
from lancepart.read.union_builder import Builder, Source, has_blobs, live_fragments, schema_of
from lancepart.read.union_parts import LeafParts, Part, UnionParts, parts_of
from lancepart.read.union_sources import open_source, over, sources_of
from lancepart.storage import index_facts, lance_tables, union
from lancepart.storage.dataset import Dataset
from lancepart.storage.leaf_handle import Fragment, LeafHandle, data_path
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.union import EmptyUnion

if TYPE_CHECKING:
    from lancepart.read.scan import Scan

_WITHOUT = " without "
_SUFFIX = re.compile(rf"{_WITHOUT}\d+-\d+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """One Lance dataset over leaves of a snapshot; ``fragments`` maps each of its fragments to its owner.

    That is the leaf's object id, and the fragment's number in the leaf. ``keys`` are the numbers of fragments by their
    ``fragment_keys``, ``states`` both of these keys by number, ``bases`` the numbers of other directories.
    """

    dataset: Dataset
    fragments: Mapping[int, tuple[str, int]]
    keys: Mapping[str, int] = dataclass_field(default_factory=dict)
    states: Mapping[int, tuple[str, str]] = dataclass_field(default_factory=dict)
    bases: Mapping[str, int] = dataclass_field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionRows:
    """All rows of some leaves, or those that a filter matches.

    ``partly`` are the leaves of which some rows may not match; by default the filter is applied to all. With the
    ``snapshot`` that the leaves are of, those whose fragments it records are not opened.
    """

    root: Root
    metadata: TableMetadata
    leaves: Sequence[Leaf]
    snapshot: Snapshot | None = None
    predicate: Predicate | None = None
    partly: frozenset[str] | None = None
    opener: Callable[[LeafTask], LeafHandle] = reading.open_leaf

    def are_all_of(self, leaf: Leaf) -> bool:
        """Whether all rows of a leaf match."""
        return self.predicate is None or (self.partly is not None and leaf.object_id not in self.partly)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionOptions:
    """Where a union is, and how its fragments are numbered.

    ``known`` are the numbers of fragments that an index covers, by their ``fragment_keys``; the others get higher ones.
    ``directories`` are those of datasets whose files are named later. Without ``copying``, leaves of which columns
    would have to be rewritten are refused, and rows come in the order of the leaves as they are given. If
    ``by_table``, fragments have the numbers that are theirs in the table, where the manifest gives them any.
    ``indices`` are those that the union is to use where they are.
    """

    uri: str = union.MEMORY
    known: Mapping[str, int] = dataclass_field(default_factory=dict)
    directories: Sequence[str] = ()
    copying: bool = True
    by_table: bool = False
    indices: tuple[Index, ...] = ()


_IN_MEMORY = UnionOptions()


def of_scan(scan: Scan, uri: str = union.MEMORY, *, indexed: bool = False) -> Union:
    """Exactly the rows of a scan: leaves that hold others have these hidden by deletion files of the union's own."""
    rows = UnionRows(
        root=scan.root,
        metadata=scan.metadata,
        leaves=scan.plan().leaves,
        snapshot=scan.snapshot,
        predicate=scan.predicate,
        partly=matching_partly(scan),
    )
    indices = declared(scan.snapshot) if indexed and scan.metadata.transactions == STRONG else ()
    return of_leaves(rows, UnionOptions(uri=uri, by_table=True, indices=indices))


def table_provider(scan: Scan, session: object) -> object:
    """The rows of a scan as what DataFusion's ``register_table`` takes."""
    return lance_tables.table_capsule(of_scan(scan).dataset, session)


def matching_partly(scan: Scan) -> frozenset[str]:
    """The leaves that may hold a row that the filter does not match."""
    if scan.predicate is None:
        return frozenset()
    other = Not(operand=Is(operand=scan.predicate, outcome=True))
    return frozenset(item.object_id for item in planner.plan(scan.snapshot, scan.metadata, other).leaves)


def of_leaves(rows: UnionRows, options: UnionOptions = _IN_MEMORY) -> Union:
    """Some rows as one dataset in memory, or where the options say."""
    root, metadata = rows.root, rows.metadata
    kept = parts_of(root, metadata) if metadata.salt and not has_blobs(metadata) else UnionParts(key=None)
    ordered = sorted(rows.leaves, key=lambda item: item.object_id) if options.copying else rows.leaves
    whole = frozenset(item.object_id for item in ordered if rows.are_all_of(item))
    there = {item.object_id: kept.known(item) for item in ordered if item.object_id in whole}

    def task(item: Leaf) -> LeafTask:
        applied = None if item.object_id in whole else rows.predicate
        return LeafTask(root=root, metadata=metadata, leaf=item, columns=(), predicate=applied)

    again = [task(item) for item in ordered if there.get(item.object_id) is None]
    sources = sources_of(again, kept.shapes, snapshot=rows.snapshot, opener=rows.opener)
    leaf_bases = [kept.place(root, source.leaf.location, source.bases) for source in sources]
    wide = index_parts.of_table(root, options.indices)
    named = {other: kept.number(other) for other in (*options.directories, *(part.uri for part in wide))}
    used = {*named.values(), *(number for place in leaf_bases for number in place.values())}
    used.update(number for each in there.values() if each is not None for number in each.bases)
    empty = union.create(root, options.uri, schema_of(metadata, sources), kept.bases.registered(used))
    builder = Builder(metadata, empty, copying=options.copying)
    built = over(list(zip(sources, leaf_bases, strict=True)), lambda item: _leaf_parts(builder, *item))
    for source, made in zip(sources, built, strict=True):
        there[source.leaf.object_id] = made
        if source.leaf.object_id in whole and made.is_lasting:
            kept.keep(source.leaf, made)
    kept.account()
    numbers = Numbers(options.known, avoided={number for part in wide for number in part.numbers})
    whole_union = _numbered(empty, ordered, there, numbers, named, by_table=options.by_table)
    if not options.indices:
        return whole_union
    shown = index_parts.largest([item for item in ordered if there.get(item.object_id) is not None])
    leafwise = index_parts.in_leaves(options.indices, wide)
    own = _leaf_indices([task(item) for item in shown], kept, builder, leafwise)
    return _with_indices(whole_union, builder, kept, [*wide, *own])


def _leaf_indices(
    tasks: Sequence[LeafTask], kept: UnionParts, builder: Builder, indices: tuple[Index, ...]
) -> list[IndexPart]:
    """The parts of the leaves' own indices; of a leaf at a version they are looked up once."""

    def found(task: LeafTask) -> list[IndexPart]:
        source = open_source(replace(task, predicate=None))
        return [] if source is None else index_parts.of_leaf(task.root, task.leaf, source, builder, indices)

    again = [task for task in tasks if indices and kept.indexed(task.leaf, indices) is None]
    for task, parts in zip(again, over(again, found), strict=True):
        kept.keep_indexed(task.leaf, indices, parts)
    return [part for task in tasks if indices for part in kept.indexed(task.leaf, indices) or ()]


def _with_indices(made: Union, builder: Builder, kept: UnionParts, parts: Sequence[IndexPart]) -> Union:
    """A union with those parts of indices that know its fragments by their numbers in it."""
    files = {number: frozenset(keys[0].split(" ")[1:]) for number, keys in made.states.items()}
    root, ids = builder.empty.root, index_parts.column_ids(builder.metadata, made.dataset)
    entries = [
        index_facts.entry(made.dataset, part.name, ids[part.column], part.facts, part.numbers, kept.number(part.uri))
        for part in parts
        if part.column in ids and part.fits(files)
    ]
    return replace(made, dataset=index_facts.with_entries(root, made.dataset, entries, ())) if entries else made


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
    *,
    by_table: bool,
) -> Union:
    """The union of the parts of leaves, in the order of leaves but for numbers that are known or the table's."""
    made, hidden, whose, states = [], {}, {}, {}
    for leaf in leaves:
        found = there.get(leaf.object_id)
        for part in () if found is None else found.parts:
            own = leaf.numbers.of(part.fragment) if by_table and leaf.numbers is not None else None
            number = numbers.of(part.keys, own)
            made.append(replace(part.shown, id=number))
            whose[number], states[number] = (leaf.object_id, part.fragment), part.keys
            if len(part.hidden):
                hidden[number] = part.hidden
    dataset = empty.filled(sorted(made, key=lambda part: part.id), hidden)
    return Union(dataset=dataset, fragments=whose, keys=numbers.given, states=states, bases=bases)


def fragment_keys(location: str, item: Fragment) -> tuple[str, str]:
    """The identity of a fragment of a leaf: its data files, and these with its deletions.

    An index that was built while rows were deleted lacks them for good, also where a rollback brings them back.
    """
    rows = " ".join([location, *map(data_path, item.files)])
    gone = item.deletion_file
    return rows, rows if gone is None else f"{rows}{_WITHOUT}{gone.read_version}-{gone.id}"


def files_of(key: str) -> str:
    """The part of a key that names the files.

    >>> files_of("leaf data.lance without 3-7")
    'leaf data.lance'
    """
    return _SUFFIX.sub("", key)


class Numbers:
    """The numbers of a union's fragments: those that are known, and for the others the next ones.

    Those that are given are below all that are unique over the table, and none of the ``avoided``.
    """

    def __init__(self, known: Mapping[str, int], *, avoided: Collection[int] = ()) -> None:
        self._known, self._next = known, max((each for each in known.values() if each < FIRST), default=0)
        self._keys: dict[int, set[str]] = {}
        for key, number in known.items():
            self._keys.setdefault(number, set()).add(key)
        self._used = {*known.values(), *(number for number in avoided if number < FIRST)}
        self.given: dict[str, int] = {}

    def _free(self) -> int:
        """The next number that is not in use."""
        self._next += 1
        while self._next in self._used:
            self._next += 1
        return self._next

    def of(self, keys: tuple[str, str], own: int | None = None) -> int:
        """The number of a fragment: that which was known with all its rows, or with the same ones deleted.

        Where one index knows it so, and another knows it with other rows deleted, neither covers it.
        """
        key = covered_key(keys, self._known)
        if key is None or not self._keys[self._known[key]] <= set(keys):
            number = self._free() if own is None or own in self._used else own
            self._used.add(number)
            self.given[keys[1]] = number
            return number
        self.given[key] = self._known[key]
        return self._known[key]


def covered_key(keys: tuple[str, str], covered: Collection[str]) -> str | None:
    """The key under which an index covers all rows of a fragment, None if it does not."""
    return next((key for key in keys if key in covered), None)
