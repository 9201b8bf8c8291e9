"""A union on disk becomes that of a newer snapshot: only the fragments of leaves that changed are made again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pyarrow as pa

from lancepart.errors import UnsupportedOperationError
from lancepart.format.names import NEXT_FRAGMENT
from lancepart.format.numbers import FIRST
from lancepart.layout.declared_indices import Index
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.schema import field_id
from lancepart.read import index_parts
from lancepart.read.index_parts import IndexPart
from lancepart.read.leaf import LeafTask
from lancepart.read.union_builder import Builder, Source, has_blobs, live_fragments, schema_of
from lancepart.read.union_sources import Shapes, open_source, over, sources_of
from lancepart.storage import index_facts, leaf_handle, published, union
from lancepart.storage.dataset import Dataset
from lancepart.storage.leaf_handle import Fragment, Offsets, data_path
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.union import EmptyUnion

_OWN, _LAST = FIRST >> 1, FIRST - 1
"""The numbers of fragments that have none in the table; those below are given by indices over the whole table."""

Paths = frozenset[tuple[int, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """A leaf's fragments under their numbers in the union: those to make, and those that stay as they are."""

    source: Source
    place: Mapping[int | None, int]
    made: tuple[tuple[int, Fragment], ...]
    stay: tuple[Fragment, ...]


@dataclass(slots=True, kw_only=True)
class Publishing:
    """The union at a place, and the leaves of a snapshot that it is to show; ``known`` are those that it shows now.

    ``same_columns`` says whether its columns are still the table's, and not others that took their names. ``indices``
    are those of the table that it is to use where they are. If it is ``settled``, the parts that it uses of the leaves
    that it shows now are still theirs.
    """

    root: Root
    uri: str
    metadata: TableMetadata
    leaves: Sequence[Leaf]
    known: frozenset[str] = frozenset()
    snapshot: Snapshot | None = None
    same_columns: bool = True
    indices: tuple[Index, ...] = ()
    settled: bool = False
    made_again: int = 0
    _next: int = 1
    _before: Mapping[Paths, Fragment] = field(default_factory=dict)
    _handle: Dataset | None = None
    _used: set[int] = field(default_factory=set)
    _shapes: Shapes = field(default_factory=dict)

    def publish(self, handle: Dataset | None, marks: Mapping[str, str]) -> Dataset:
        """Update the dataset to show the leaves, in one commit; None creates it."""
        stay, again = self._divided(handle)
        sources = self._sources(again)
        schema = schema_of(self.metadata, sources)
        if stay and handle is not None and not self._is_same(handle, schema):
            sources = self._sources(self.leaves)
            stay, schema = {}, schema_of(self.metadata, sources)
        self.made_again = len(sources)
        if handle is None:
            handle, self.same_columns = published.create(self.root, self.uri, schema, marks), True
        self._handle, self._next = handle, _next_number(handle)
        bases = published.bases_of(handle)
        leaf_bases = [bases.of_leaf(self.root, each.leaf.location, each.bases) for each in sources]
        for part in index_parts.of_table(self.root, self.indices):
            bases.number(part.uri, is_dataset=True)
        handle = published.with_bases(self.root, handle, bases)
        still = [part for own in stay.values() for part in own]
        now = {int(part.fragment_id) for part in handle.get_fragments()}
        self._used = now | published.covered_by_others(handle)
        parts = still + self._made(handle, schema, sources, leaf_bases)
        counted = {**marks, NEXT_FRAGMENT: str(self._next)}
        same = self._is_same(handle, schema)
        done = published.replaced(self.root, handle, schema.with_metadata(counted), parts, same=same)
        return self.indexed(done, frozenset(stay) if self.settled else frozenset())

    def _is_same(self, handle: Dataset, schema: pa.Schema) -> bool:
        """Whether the dataset has exactly the columns that it is to have."""
        return self.same_columns and published.is_same(handle, schema)

    def indexed(self, handle: Dataset, unchanged: frozenset[str] = frozenset()) -> Dataset:
        """Let the dataset use the table's indices that know its fragments, and no others of the table.

        Until then it uses those of before, which know all rows of a fragment that still has its number.
        """
        there, taken = published.index_parts(handle), published.names_of_others(handle)
        wide = index_parts.of_table(self.root, self.indices)
        leafwise = index_parts.in_leaves(self.indices, wide)
        complete = {part.name for _, part in there.values()} >= {index.name for index in leafwise}
        unchanged = unchanged if complete else frozenset()
        bases = published.bases_of(handle)
        files = {
            int(part.fragment_id): frozenset(path for _, path in _paths(part.metadata))
            for part in handle.get_fragments()
        }
        ids = index_parts.column_ids(self.metadata, handle)
        wanted = [
            part
            for part in (*wide, *self._leaf_indices(handle, leafwise, unchanged))
            if part.column in ids and part.name not in taken and part.fits(files)
        ]
        kept = {bases.number(self.root.uri_of(leaf.location), is_dataset=True) for leaf in self._of(unchanged)}
        names = {index.name for index in leafwise} - taken
        stay = {key for key, (base, part) in there.items() if base in kept and part.name in names}
        stay |= {part.facts["uuid"] for part in wanted}
        removed = [part for key, (_, part) in there.items() if key not in stay]
        fresh = [part for part in wanted if part.facts["uuid"] not in there]
        if not fresh and not removed:
            return handle
        handle = published.with_bases(self.root, handle, bases)
        entries = [
            index_facts.entry(
                handle,
                part.name,
                ids[part.column],
                part.facts,
                part.numbers,
                bases.number(part.uri, is_dataset=True),
            )
            for part in fresh
        ]
        return index_facts.with_entries(self.root, handle, entries, removed)

    def _leaf_indices(
        self, handle: Dataset, indices: tuple[Index, ...], unchanged: frozenset[str]
    ) -> Iterable[IndexPart]:
        """The parts of the own indices of leaves that changed."""
        builder = Builder(self.metadata, EmptyUnion(root=self.root, handle=handle))

        def found(leaf: Leaf) -> list[IndexPart]:
            source = open_source(self._task(leaf))
            return [] if source is None else index_parts.of_leaf(self.root, leaf, source, builder, indices)

        largest = index_parts.largest(self.leaves) if indices else []
        again = [leaf for leaf in largest if leaf.object_id not in unchanged]
        return chain.from_iterable(over(again, found))

    def _of(self, names: frozenset[str]) -> list[Leaf]:
        return [leaf for leaf in self.leaves if leaf.object_id in names]

    def _task(self, leaf: Leaf) -> LeafTask:
        return LeafTask(root=self.root, metadata=self.metadata, leaf=leaf, columns=(), predicate=None)

    def _divided(self, handle: Dataset | None) -> tuple[dict[str, list[Fragment]], list[Leaf]]:
        """The fragments of leaves that are shown already, and the leaves that are looked at again.

        A fragment is that of the leaf in whose directory its first file is; a leaf without exactly as many as it has
        is looked at again, and so are all if a column's encoding depends on what the leaves have.
        """
        if handle is None or has_blobs(self.metadata):
            return {}, list(self.leaves)
        paths: dict[int | None, str] = {number: base.path for number, base in handle.base_paths().items()}
        owned: dict[str | None, list[Fragment]] = defaultdict(list)
        for part in handle.get_fragments():
            owned[paths.get(part.metadata.files[0].base_id)].append(part.metadata)
        stay: dict[str, list[Fragment]] = {}
        for leaf in self.leaves:
            own = owned[self.root.uri_of(leaf.location)]
            if leaf.numbers is not None and any(int(part.id) < FIRST for part in own):
                continue
            if leaf.object_id in self.known and leaf.stats is not None and len(own) == leaf.stats.fragments:
                stay[leaf.object_id] = own
        return stay, [leaf for leaf in self.leaves if leaf.object_id not in stay]

    def _sources(self, leaves: Sequence[Leaf]) -> list[Source]:
        return sources_of([self._task(leaf) for leaf in leaves], self._shapes, snapshot=self.snapshot)

    def _made(
        self,
        handle: Dataset,
        schema: pa.Schema,
        sources: Sequence[Source],
        leaf_bases: Sequence[Mapping[int | None, int]],
    ) -> list[Fragment]:
        """The fragments of leaves that are looked at again."""
        if not sources:
            return []
        same = self._is_same(handle, schema)
        self._before = {_paths(part.metadata): part.metadata for part in handle.get_fragments()}
        empty = published.scratch(self.root, handle, schema)
        builder = Builder(self.metadata, empty)
        planned = [self._plan(builder, *each, same=same) for each in zip(sources, leaf_bases, strict=True)]
        made = [
            part
            for parts in over(planned, lambda each: builder.fragments(each.source, each.place, each.made))
            for part in parts
        ]
        hidden = {part.id: offsets for part, offsets in made if len(offsets)}
        stay = [part for each in planned for part in each.stay]
        return stay + published.with_hidden(empty, [part for part, _ in made], hidden)

    def _plan(self, builder: Builder, source: Source, place: Mapping[int | None, int], *, same: bool) -> _Planned:
        """The fragments of a leaf that the union has already, and the numbers of new ones.

        A number that an index may cover is kept only if no row of the fragment was restored since.
        """
        made, stay, columns = [], [], builder.columns_of(source)
        derived = any(source.matching.names.get(field_id(field) or 0) is not None for _, field in columns.computed)
        for item in live_fragments(source):
            named = union.fragment(item, 0, fields=columns.ids, bases=place)
            old = self._before.get(_paths(named))
            shown = builder.shown(source, item)
            before = None if old is None else self._shown_before(old)
            number = self._number(source.leaf, item, old)
            alike = same and not derived and _equal(shown, before) and old is not None and _is_read_alike(named, old)
            if alike and old is not None and (int(old.id) == number or (number is None and int(old.id) < FIRST)):
                stay.append(old)
            elif number is not None:
                made.append((number, item))
            elif old is not None and int(old.id) < FIRST and _within(shown, before, int(item.physical_rows)):
                made.append((int(old.id), item))
            else:
                made.append((self._taken(), item))
        return _Planned(source=source, place=place, made=tuple(made), stay=tuple(stay))

    def _number(self, leaf: Leaf, item: Fragment, old: Fragment | None) -> int | None:
        """The number of a fragment in the table, by which the table's indices know it; None if it can't have it here.

        Rows never come back under such a number. But what another client wrote into the dataset may have had it.
        """
        own = None if leaf.numbers is None else leaf.numbers.of(int(item.id))
        if own is None or (own in self._used and (old is None or int(old.id) != own)):
            return None
        self._used.add(own)
        return own

    def _shown_before(self, part: Fragment) -> Offsets | None:
        return (
            None
            if part.deletion_file is None or self._handle is None
            else leaf_handle.live_offsets(self._handle, int(part.id))
        )

    def _taken(self) -> int:
        """A number that no fragment of this dataset ever had, and no part of an index."""
        if self._next > _LAST:
            raise UnsupportedOperationError(
                "the published dataset has used up its own numbers of fragments: unpublish it, and publish it again"
            )
        self._next += 1
        return self._next - 1


def _next_number(handle: Dataset) -> int:
    used = max((number for part in handle.get_fragments() if (number := part.fragment_id) < FIRST), default=0)
    return max(used + 1, int(published.marks_of(handle).get(NEXT_FRAGMENT, "1")), _OWN)


def _paths(part: Fragment) -> Paths:
    """The files of a union's fragment that are those of a leaf."""
    return frozenset((file.base_id, data_path(file)) for file in part.files if file.base_id is not None)


def _is_read_alike(part: Fragment, old: Fragment) -> bool:
    """Whether two fragments take the same columns from the same files of a leaf."""
    return _columns_by_file(part) == _columns_by_file(old)


def _columns_by_file(part: Fragment) -> list[tuple[int, str, list[int]]]:
    return [(file.base_id, data_path(file), list(file.fields)) for file in part.files if file.base_id is not None]


def _equal(shown: Offsets | None, before: Offsets | None) -> bool:
    if shown is None or before is None:
        return shown is None and before is None
    return bool(np.array_equal(shown, before))


def _within(shown: Offsets | None, before: Offsets | None, rows: int) -> bool:
    """Whether all rows that are shown were shown before; None means all of a fragment."""
    if before is None:
        return True
    return (shown is not None or len(before) == rows) and (shown is None or bool(np.isin(shown, before).all()))
