"""Leaves of a search as one dataset in memory, kept between searches, with the table-wide indices that cover them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.errors import UnsupportedOperationError
from lancepart.layout.columns import to_table_columns
from lancepart.layout.declared_indices import Index
from lancepart.layout.leaves import Leaf
from lancepart.layout.matching import Matching
from lancepart.layout.metadata import TableMetadata
from lancepart.model.predicate import Predicate
from lancepart.model.schema import field_id
from lancepart.read import union
from lancepart.read.lance_pushdown import lance_filter, shallow
from lancepart.read.leaf import LeafTask
from lancepart.storage import leaf_data, table_index
from lancepart.storage.cache import cache
from lancepart.storage.dataset import Dataset
from lancepart.storage.leaf_data import Addresses
from lancepart.storage.root import Root
from lancepart.storage.table_index import Segment

_FRAGMENT_BYTES, _KEY_BYTES = 2 << 10, 512
_OFFSETS = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchUnion:
    """One dataset over leaves; its fragments by number, and whose they are: the leaf's place and its own number."""

    handle: Dataset
    matching: Matching
    numbers: Addresses
    places: npt.NDArray[np.int64]
    own: Addresses

    @classmethod
    def of(cls, made: union.Union, metadata: TableMetadata, leaves: Sequence[Leaf]) -> SearchUnion:
        """Prepare a union for looking up whose its rows are."""
        place_of = {leaf.object_id: at for at, leaf in enumerate(leaves)}
        numbers = sorted(made.fragments)
        whose = [made.fragments[number] for number in numbers]
        names = [field.name for field in made.dataset.schema]
        ids = [field_id(field) or 0 for field in metadata.schema]
        types = {number: field.type for number, field in zip(ids, metadata.schema, strict=True)}
        return cls(
            handle=made.dataset,
            matching=Matching(names=dict(zip(ids, names, strict=True)), types=types),
            numbers=np.array(numbers, dtype=np.uint64),
            places=np.array([place_of[item] for item, _ in whose], dtype=np.int64),
            own=np.array([number for _, number in whose], dtype=np.uint64),
        )

    def split(self, addresses: Addresses) -> tuple[npt.NDArray[np.int64], Addresses]:
        """The places of the leaves, and the addresses there, of rows of the union."""
        at = np.searchsorted(self.numbers, addresses >> _SHIFT)
        return self.places[at], (self.own[at] << _SHIFT) | (addresses & _OFFSETS)

    def joined(self, places: npt.NDArray[np.int64], addresses: Addresses) -> Addresses:
        """The addresses in the union of rows of leaves."""
        order = np.lexsort((self.own, self.places))
        known = _combined(self.places[order], self.own[order])
        at = order[np.searchsorted(known, _combined(np.asarray(places), addresses >> _SHIFT))]
        return (self.numbers[at] << _SHIFT) | (addresses & _OFFSETS)

    def pushed(self, predicate: Predicate, metadata: TableMetadata) -> str | None:
        """The filter to push to the union; None if it can't be pushed exactly."""
        fields = [field for field in metadata.schema if field.name in predicate.columns()]
        names = {field.name: self.matching.names[field_id(field) or 0] for field in fields}
        pushed, exact = shallow(*lance_filter(predicate, {field.name: field.type for field in fields}))
        return pushed.to_sql(names) if pushed is not None and exact else None

    def shown(self, batch: pa.RecordBatch, fields: Sequence[pa.Field]) -> pa.RecordBatch:
        """Rows of the union in the table's columns."""
        return to_table_columns(batch, fields, self.matching)


def _combined(places: npt.NDArray[np.int64], numbers: Addresses) -> Addresses:
    """A leaf's place and a fragment's number as one sortable number; Lance's are of 32 bits."""
    return (places.astype(np.uint64) << _SHIFT) | numbers.astype(np.uint64)


def union_of(
    root: Root,
    metadata: TableMetadata,
    leaves: Sequence[Leaf],
    opener: Callable[[LeafTask], Dataset],
    indices: Sequence[Index] = (),
) -> SearchUnion | None:
    """Leaves at their versions as one dataset with table-wide indices.

    None where one can't be: then each leaf is searched on its own.
    """
    if any(leaf.read_version is None for leaf in leaves):
        return None
    versions = tuple((leaf.location, leaf.read_version) for leaf in leaves)
    parts = tuple((index.name, index.column, index.segments) for index in _table_wide(indices))
    key = ("union", root.uri, tuple(sorted(root.storage_options.items())), str(metadata.schema), versions, parts)

    def make() -> SearchUnion | None:
        try:
            return _made(root, metadata, leaves, opener, indices)
        except UnsupportedOperationError:
            return None

    return cache.get(key, make, lambda made: 0 if made is None else _FRAGMENT_BYTES * (1 + len(made.numbers)))


def _made(
    root: Root,
    metadata: TableMetadata,
    leaves: Sequence[Leaf],
    opener: Callable[[LeafTask], Dataset],
    indices: Sequence[Index],
) -> SearchUnion:
    parts = [(index, part) for index in _table_wide(indices) for part in _parts(root, index)]
    known = _numbering(parts)
    places = [root.uri_of(table_index.place_of(part.name)) for _, part in parts]
    made = union.of_leaves(root, metadata, leaves, opener=opener, known=known, others=places)
    ids = {
        field_id(field): shape[1]
        for field, shape in zip(metadata.schema, leaf_data.shape_of(made.dataset).ids, strict=True)
    }
    found = [
        (index.name, ids[index.column], part, made.bases[place])
        for (index, part), place in zip(parts, places, strict=True)
        if index.column in ids and part.fragments.items() <= known.items()
    ]
    if found:
        made = replace(made, dataset=table_index.attached(root, made.dataset, found))
    return SearchUnion.of(made, metadata, leaves)


def _table_wide(indices: Sequence[Index]) -> list[Index]:
    return [index for index in indices if index.segments and index.is_vector]


def _parts(root: Root, index: Index) -> list[Segment]:
    found = [
        cache.get(("segment", root.uri, name), lambda name=name: table_index.read(root, name), _part_size)  # type: ignore[misc]
        for name in index.segments
    ]
    return [part for part in found if part is not None]


def _part_size(part: Segment | None) -> int:
    return 256 if part is None else _KEY_BYTES * (1 + len(part.fragments))


def numbering(root: Root, indices: Sequence[Index]) -> dict[str, int]:
    """The numbers that table-wide indices know fragments by."""
    return _numbering([(index, part) for index in _table_wide(indices) for part in _parts(root, index)])


def _numbering(parts: Sequence[tuple[Index, Segment]]) -> dict[str, int]:
    """One number a fragment and one fragment a number: of parts that were built at the same time the first counts."""
    known: dict[str, int] = {}
    for _, part in parts:
        taken = set(known.values())
        if all(known.get(key, number) == number for key, number in part.fragments.items()) and not any(
            number in taken for key, number in part.fragments.items() if key not in known
        ):
            known |= part.fragments
    return known
