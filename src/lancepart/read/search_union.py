"""Leaves of a search as one dataset in memory, kept between searches, with the table-wide indices that cover them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.errors import UnsupportedOperationError
from lancepart.layout.columns import to_table_columns
from lancepart.layout.declared_indices import TEXT_KIND, Index, text_params
from lancepart.layout.leaves import Leaf
from lancepart.layout.matching import Matching
from lancepart.layout.metadata import TableMetadata
from lancepart.model.aliases import JsonMapping
from lancepart.model.predicate import Predicate
from lancepart.model.schema import field_id
from lancepart.read import index_parts, union
from lancepart.read.lance_pushdown import lance_filter, shallow
from lancepart.read.leaf import LeafTask
from lancepart.read.search_plan import PlannedLeaves, table_wide
from lancepart.read.union_builder import has_blobs
from lancepart.storage import leaf_handle, table_index
from lancepart.storage import union as storage
from lancepart.storage.cache import cache
from lancepart.storage.dataset import Dataset
from lancepart.storage.leaf_handle import Addresses, LeafHandle
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.table_index import Segment

_FRAGMENT_BYTES = 2 << 10
_OFFSETS = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextIndex:
    """A full-text index over exactly the rows of a union but for those of ``uncovered`` fragments."""

    name: str
    params: JsonMapping
    uncovered: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchUnion:
    """One dataset over leaves; its fragments by number, and whose they are: the leaf's place and its own number.

    ``order`` is that of the fragments by leaf, ``ordered`` the place and the number of each as one number, in it.
    ``texts`` are the full-text indices that give exact scores, by the ids of their columns, ``requests`` how often rows
    of some columns were needed.
    """

    handle: Dataset
    matching: Matching
    numbers: Addresses
    leaf_positions: npt.NDArray[np.int64]
    own: Addresses
    order: npt.NDArray[np.int64]
    ordered: Addresses
    texts: Mapping[int, TextIndex] = field(default_factory=dict)
    requests: dict[bytes, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, made: union.Union, metadata: TableMetadata, leaves: Sequence[Leaf], texts: Mapping[int, TextIndex]
    ) -> SearchUnion:
        """Prepare a union for looking up whose its rows are."""
        place_of = {leaf.object_id: at for at, leaf in enumerate(leaves)}
        numbers = sorted(made.fragments)
        whose = [made.fragments[number] for number in numbers]
        names = [field.name for field in made.dataset.schema]
        ids = [field_id(field) or 0 for field in metadata.schema]
        types = {number: field.type for number, field in zip(ids, metadata.schema, strict=True)}
        positions = np.array([place_of[item] for item, _ in whose], dtype=np.int64)
        own = np.array([number for _, number in whose], dtype=np.uint64)
        order = np.lexsort((own, positions))
        return cls(
            handle=made.dataset,
            matching=Matching(names=dict(zip(ids, names, strict=True)), types=types),
            numbers=np.array(numbers, dtype=np.uint64),
            leaf_positions=positions,
            own=own,
            order=order,
            ordered=_combined(positions[order], own[order]),
            texts=texts,
        )

    def split(self, addresses: Addresses) -> tuple[npt.NDArray[np.int64], Addresses]:
        """The positions of the leaves, and the addresses there, of rows of the union."""
        at = np.searchsorted(self.numbers, addresses >> _SHIFT)
        return self.leaf_positions[at], (self.own[at] << _SHIFT) | (addresses & _OFFSETS)

    def joined(self, leaf_positions: npt.NDArray[np.int64], addresses: Addresses) -> Addresses:
        """The addresses in the union of rows of leaves."""
        wanted = _combined(np.asarray(leaf_positions), addresses >> _SHIFT)
        at = self.order[np.searchsorted(self.ordered, wanted)]
        return (self.numbers[at] << _SHIFT) | (addresses & _OFFSETS)

    def pushed(self, predicate: Predicate, metadata: TableMetadata) -> str | None:
        """The filter to push to the union; None if it can't be pushed exactly."""
        fields = [field for field in metadata.schema if field.name in predicate.columns()]
        names = {field.name: self.matching.names[field_id(field) or 0] for field in fields}
        pushed, exact = shallow(*lance_filter(predicate, {field.name: field.type for field in fields}))
        return pushed.to_sql(names) if pushed is not None and exact else None

    def names_of(self, fields: Sequence[pa.Field]) -> list[str]:
        """What the dataset calls some of the table's columns."""
        return [self.matching.names[field_id(field) or 0] for field in fields]

    def shown(self, batch: pa.RecordBatch, fields: Sequence[pa.Field]) -> pa.RecordBatch:
        """Rows of the union in the table's columns."""
        return to_table_columns(batch, fields, self.matching)


def _combined(leaf_positions: npt.NDArray[np.int64], numbers: Addresses) -> Addresses:
    """A leaf's place and a fragment's number as one sortable number; Lance's are of 32 bits."""
    return (leaf_positions.astype(np.uint64) << _SHIFT) | numbers.astype(np.uint64)


def union_of(
    plan: PlannedLeaves, opener: Callable[[LeafTask], LeafHandle], snapshot: Snapshot | None = None
) -> SearchUnion | None:
    """Leaves at their versions as one dataset with table-wide indices.

    None where one can't be: then each leaf is searched on its own.
    """
    if not plan.are_fixed:
        return None

    def make() -> SearchUnion | None:
        try:
            return _made(plan, opener, snapshot)
        except UnsupportedOperationError:
            return None

    return cache.get(
        plan.union_key, make, lambda made: 0 if made is None else _FRAGMENT_BYTES * (1 + len(made.numbers))
    )


def _made(plan: PlannedLeaves, opener: Callable[[LeafTask], LeafHandle], snapshot: Snapshot | None) -> SearchUnion:
    root, metadata, leaves = plan.root, plan.metadata, plan.leaves
    parts = [(index, part) for index in table_wide(plan.indices) for part in index_parts.segments(root, index)]
    known = _numbering(parts)
    segment_uris = [root.uri_of(table_index.place_of(part.name)) for _, part in parts]
    uri = storage.MEMORY if has_blobs(metadata) else storage.shared_memory()
    rows = union.UnionRows(root=root, metadata=metadata, leaves=leaves, snapshot=snapshot, opener=opener)
    made = union.of_leaves(rows, union.UnionOptions(uri=uri, known=known, directories=segment_uris))
    ids = {
        field_id(field): shape[1]
        for field, shape in zip(metadata.schema, leaf_handle.shape_of(made.dataset).ids, strict=True)
    }
    used = [
        (index, part, made.bases[segment_uri])
        for (index, part), segment_uri in zip(parts, segment_uris, strict=True)
        if index.column in ids and part.fragments.items() <= known.items()
    ]
    texts = _texts(made, [(index, part) for index, part, _ in used], text_params(plan.indices))
    names = {text.name for text in texts.values()}
    entries = [
        (index.name, ids[index.column], part, base)
        for index, part, base in used
        if index.kind != TEXT_KIND or index.name in names
    ]
    if entries:
        made = replace(made, dataset=table_index.attached(root, made.dataset, entries))
    return SearchUnion.of(made, metadata, leaves, texts)


def _texts(
    made: union.Union, parts: Sequence[tuple[Index, Segment]], words: Mapping[int, JsonMapping]
) -> dict[int, TextIndex]:
    """The full-text indices that count no row but those of a union: none of theirs was deleted or rewritten since.

    Of each column it is one that makes texts into words as they are searched, for which Lance is to know no other.
    """
    found: dict[int, TextIndex] = {}
    known = {index.name: index for index, _ in parts if index.kind == TEXT_KIND}
    for index in (each for each in known.values() if each.params == words[each.column]):
        held = {
            key: number for each, part in parts if each.name == index.name for key, number in part.fragments.items()
        }
        if all(number in made.states and made.states[number][1] == key for key, number in held.items()):
            uncovered = tuple(sorted(made.states.keys() - set(held.values())))
            found[index.column] = TextIndex(name=index.name, params=index.params, uncovered=uncovered)
    return found


def numbering(root: Root, indices: Sequence[Index]) -> dict[str, int]:
    """The numbers that table-wide indices know fragments by."""
    return _numbering([(index, part) for index in table_wide(indices) for part in index_parts.segments(root, index)])


def _numbering(parts: Sequence[tuple[Index, Segment]]) -> dict[str, int]:
    """One number a fragment and one fragment a number: of parts that were built at the same time the first counts."""
    known: dict[str, int] = {}
    files: dict[int, str] = {}
    for _, part in parts:
        own = {number: union.files_of(key) for key, number in part.fragments.items()}
        agree = all(known.get(key, number) == number for key, number in part.fragments.items())
        if agree and all(files.get(number, each) == each for number, each in own.items()):
            known |= part.fragments
            files |= own
    return known
