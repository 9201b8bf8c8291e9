"""Parts of a table's indices that a union uses where they are: those over the whole table, and those of leaves.

A part knows rows by the numbers of their fragments. It serves in a union whose fragments have the same numbers, which
are those that are unique over the table: under such a number no row ever comes back that was deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lancepart.format.numbers import FIRST
from lancepart.layout.declared_indices import Index
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.schema import field_id
from lancepart.read.union_builder import Builder, Source
from lancepart.storage import leaf_handle, leaf_index, table_index
from lancepart.storage.cache import cache
from lancepart.storage.dataset import Dataset
from lancepart.storage.root import Root
from lancepart.storage.table_index import Segment

_KEY_BYTES = 512
MOST_LEAVES = 1_000
"""Of how many leaves a union uses the own indices, by measurement: finding a row by so many took as long as reading."""

FileNames = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPart:
    """A part of an index on a column of the table, in the directory of a dataset.

    ``numbers`` are the fragments that it covers, ``files`` the data files of those that were there when it was found.
    """

    name: str
    column: int
    uri: str
    facts: Mapping[str, Any]
    numbers: frozenset[int]
    files: Mapping[int, FileNames]

    def fits(self, shown: Mapping[int, FileNames]) -> bool:
        """Whether each number that it has in common with a union's fragments, if any, is the same fragment there."""
        common = self.numbers & shown.keys()
        return bool(common) and all(
            number >= FIRST and bool(shown[number]) and shown[number] <= self.files.get(number, frozenset())
            for number in common
        )


def segments(root: Root, index: Index) -> list[Segment]:
    """The parts of a table-wide index over rows that can be used."""
    found = [
        cache.get(("segment", *root.identity, name), lambda name=name: table_index.usable(root, name), _part_size)  # type: ignore[misc]
        for name in index.segments
    ]
    return [part for part in found if part is not None and part.facts]


def _part_size(part: Segment | None) -> int:
    return 256 if part is None else _KEY_BYTES * (1 + len(part.fragments))


def of_table(root: Root, indices: Sequence[Index]) -> list[IndexPart]:
    """The parts of indices over the whole table."""
    return [
        IndexPart(
            name=index.name,
            column=index.column,
            uri=root.uri_of(table_index.place_of(part.name)),
            facts=part.facts,
            numbers=frozenset(part.fragments.values()),
            files={number: _files(key) for key, number in part.fragments.items()},
        )
        for index in indices
        if index.segments and index.is_over_rows
        for part in segments(root, index)
    ]


def _files(key: str) -> FileNames:
    """The data files in the key of a fragment, which begins with the place of its leaf."""
    return frozenset(key.split(" ")[1:])


def in_leaves(indices: Sequence[Index], wide: Collection[IndexPart]) -> tuple[Index, ...]:
    """The indices of which the leaves' own parts are used: where there are parts over the table, these serve alone."""
    known = {part.name for part in wide}
    return tuple(index for index in indices if index.in_leaves and index.name not in known)


def largest(leaves: Sequence[Leaf]) -> list[Leaf]:
    """The leaves whose own indices are used: the largest ones."""
    if len(leaves) <= MOST_LEAVES:
        return list(leaves)
    return sorted(leaves, key=lambda leaf: 0 if leaf.stats is None else -leaf.stats.rows)[:MOST_LEAVES]


def of_leaf(root: Root, leaf: Leaf, source: Source, builder: Builder, indices: Sequence[Index]) -> list[IndexPart]:
    """The parts of a leaf's own indices in which its fragments have their numbers in the table.

    The column must be read from the leaf's files as it is: where it was widened, the index holds other values.
    """
    numbers, columns = leaf.numbers, builder.columns_of(source).ids
    if numbers is None:
        return []
    wanted = {index.name: index for index in indices}
    ids = column_ids(builder.metadata, builder.empty.handle)
    files = {int(item.id): frozenset(map(leaf_handle.data_path, item.files)) for item in source.fragments}
    return [
        IndexPart(
            name=part.name,
            column=wanted[part.name].column,
            uri=root.uri_of(leaf.location),
            facts=part.facts,
            numbers=part.numbers,
            files=files,
        )
        for part in leaf_index.recorded(root, leaf.location, source.open(), wanted.keys())
        if part.is_as_declared(wanted[part.name].kind, wanted[part.name].params)
        and columns.get(part.column) == ids.get(wanted[part.name].column, -1)
        and all(numbers.of(number) == number for number in part.numbers)
    ]


def column_ids(metadata: TableMetadata, handle: Dataset) -> dict[int, int]:
    """The ids that a union gives to the columns of the table, by those of the table."""
    shapes = leaf_handle.shape_of(handle).ids
    return {field_id(field) or 0: shape[1] for field, shape in zip(metadata.schema, shapes, strict=True)}
