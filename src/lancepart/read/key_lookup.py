"""Finding the leaves that can hold a key by a table-wide index: for filters on columns that are not the partition's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lancepart.layout.declared_indices import Index, declared
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.predicate import And, Comparison, In, Or, Predicate
from lancepart.read.lance_pushdown import lance_filter
from lancepart.storage import table_index
from lancepart.storage.cache import cache
from lancepart.storage.dataset import Dataset
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.table_index import KEY
from lancepart.storage.translate import storage_errors

FEW = 2
"""So few leaves are read without a look at their keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """An open part of a look-up; ``leaves`` are the numbers of the leaves' versions whose keys it holds."""

    handle: Dataset
    leaves: dict[tuple[str, int], int]


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
                leaves = _narrowed(root, metadata, leaves, index, test)
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
    root: Root, metadata: TableMetadata, leaves: Sequence[Leaf], index: Index, test: Predicate
) -> Sequence[Leaf]:
    field = metadata.columns[index.column]
    pushed, _ = lance_filter(test, {field.name: field.type})
    if pushed is None:
        return leaves
    where = pushed.to_sql({field.name: KEY})
    known: set[tuple[str, int]] = set()
    holding: set[tuple[str, int]] = set()
    for name in index.segments:
        part = cache.get(("lookup", *root.identity, name), lambda name=name: _opened(root, name), _size)  # type: ignore[misc]
        if part is None or part.handle.schema.field(KEY).type != field.type:
            continue
        with storage_errors("look up keys", root):
            numbers = set(table_index.leaves_with(part.handle, where).tolist())
        known |= part.leaves.keys()
        holding |= {version for version, number in part.leaves.items() if number in numbers}
    return [
        leaf
        for leaf in leaves
        if (leaf.location, leaf.read_version) not in known or (leaf.location, leaf.read_version) in holding
    ]


def _opened(root: Root, name: str) -> _Part | None:
    found = table_index.usable(root, name)
    if found is None or found.facts:
        return None
    handle = table_index.open_lookup(root, name, session=cache.session)
    return _Part(handle=handle, leaves={version: number for number, version in enumerate(found.leaves)})


def _size(part: _Part | None) -> int:
    return 256 if part is None else 512 * (1 + len(part.leaves))
