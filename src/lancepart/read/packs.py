"""Leaves read together as one dataset: to open and plan a scan of each takes longer than to read its rows.

What a union names of a leaf is kept in memory, so that leaves which did not change are not even opened again; the union
itself is kept too, and with it what Lance knows of its files.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lancepart.errors import UnsupportedOperationError
from lancepart.layout.declared_indices import declared
from lancepart.layout.matching import Matching
from lancepart.model.filtering import matching_rows
from lancepart.model.nested import path_of
from lancepart.model.predicate import And, Comparison, In, Predicate
from lancepart.model.schema import field_id
from lancepart.read import leaf, union
from lancepart.read.leaf import LeafTask
from lancepart.read.union_builder import has_blobs
from lancepart.storage import lance_tables, leaf_handle
from lancepart.storage.cache import cache
from lancepart.storage.leaf_handle import LeafHandle
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import UnreadableError
from lancepart.storage.union import shared_memory

LEAST_LEAVES = 8
MOST_LEAVES = 1_024
LARGE_LEAF = 32 << 20
"""A leaf of so many bytes stands alone: opening it costs little beside reading it."""
MOST_BYTES = 256 << 20
INDEXED_ROWS = 200_000
"""The rows of a leaf from which on its own index is faster than reading a column, which a union has to do."""

_AHEAD_BYTES = 64 << 20
_MOST_AHEAD = 16
_BATCH_ROWS = 32_768
_SAMPLED = 100_000
_FEW = 0.005
_UNION_BYTES, _FRAGMENT_BYTES = 16 << 10, 2 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """Leaves that follow each other in a scan of a snapshot, and are read in one go."""

    tasks: tuple[LeafTask, ...]
    snapshot: Snapshot | None = None


def packed(tasks: Sequence[LeafTask], snapshot: Snapshot | None = None) -> list[Pack]:
    """The tasks of a scan, those that follow each other put together unless their leaves are large or few."""
    if len(tasks) < LEAST_LEAVES or not tasks[0].metadata.salt or has_blobs(tasks[0].metadata):
        return [Pack(tasks=(task,)) for task in tasks]
    indexed = _is_indexed(tasks[0], snapshot)
    packs: list[list[LeafTask]] = []
    held = MOST_BYTES
    for task in tasks:
        size = _size(task, indexed=indexed)
        full = not packs or size is None or held + size > MOST_BYTES or len(packs[-1]) >= MOST_LEAVES
        if full or task.predicate is not packs[-1][0].predicate:
            packs.append([task])
            held = MOST_BYTES if size is None else size
        else:
            packs[-1].append(task)
            held += size or 0
    groups = [[each] if len(each) >= LEAST_LEAVES else [[task] for task in each] for each in packs]
    return [Pack(tasks=tuple(each), snapshot=snapshot) for group in groups for each in group]


def _size(task: LeafTask, *, indexed: bool) -> int | None:
    """The bytes of a leaf that can be read together with others, None if it stands alone."""
    item = task.leaf
    if item.stats is None or item.read_version is None or item.constants or task.fragments is not None:
        return None
    if item.stats.bytes > LARGE_LEAF or (indexed and item.stats.rows > INDEXED_ROWS):
        return None
    return item.stats.bytes


def _is_indexed(task: LeafTask, snapshot: Snapshot | None) -> bool:
    """Whether leaves have an index on a column of the filter."""
    if task.predicate is None or snapshot is None:
        return False
    named = task.predicate.columns()
    columns = task.metadata.columns
    return any(
        each.in_leaves and each.column in columns and columns[each.column].name in named for each in declared(snapshot)
    )


def read(pack: Pack) -> Iterator[pa.RecordBatch]:
    """The matching rows of a pack, leaf after leaf."""
    if (begun := _begun(pack)) is None:
        yield from read_each(pack)
        return
    task, made, matching = begun
    late = _keeps_few(pack, task, made, matching)
    with _naming_broken(pack):
        yield from leaf.projected(task, lambda each: leaf.scanned(each, made, matching, late=late))


def count(pack: Pack) -> int:
    """How many rows of a pack match."""
    if (begun := _begun(pack)) is None:
        return sum(leaf.count(task) for task in pack.tasks)
    task, made, matching = begun
    with _naming_broken(pack):
        return leaf.count_in(task, made, matching)


def _begun(pack: Pack) -> tuple[LeafTask, LeafHandle, Matching] | None:
    """The leaves of a pack as one dataset, with the task of reading it; None if each has to be opened."""
    if len(pack.tasks) < LEAST_LEAVES:
        return None
    first = pack.tasks[0]
    made: LeafHandle | None = cache.get(("pack", *_key(pack)), lambda: _union(pack), partial(_union_size, pack))
    if made is None:
        return None
    ids = [field_id(field) or 0 for field in first.metadata.schema]
    matching = Matching(
        names=dict(zip(ids, made.schema.names, strict=True)),
        types={number: field.type for number, field in zip(ids, first.metadata.schema, strict=True)},
    )
    mean = sum(task.leaf.stats.bytes for task in pack.tasks if task.leaf.stats is not None) // len(pack.tasks)
    ahead = max(2, min(_MOST_AHEAD, _AHEAD_BYTES // max(1, mean)))
    task = replace(first, limit=None, ahead=ahead)
    return task if task.batch_rows else leaf.in_large_batches(task, _BATCH_ROWS), made, matching


def _key(pack: Pack) -> tuple[Hashable, ...]:
    """What a union of leaves depends on: whose they are, their versions, and the columns by their ids."""
    first = pack.tasks[0]
    versions = tuple((task.leaf.location, task.leaf.read_version) for task in pack.tasks)
    schema = first.metadata.schema.serialize().to_pybytes()
    return (*first.root.identity, first.metadata.salt, schema, versions)


def _union(pack: Pack) -> LeafHandle | None:
    first, leaves = pack.tasks[0], [task.leaf for task in pack.tasks]
    rows = union.UnionRows(root=first.root, metadata=first.metadata, leaves=leaves, snapshot=pack.snapshot)
    try:
        return union.of_leaves(rows, union.UnionOptions(uri=shared_memory(), copying=False)).dataset
    except UnsupportedOperationError:
        return None


def _union_size(pack: Pack, made: LeafHandle | None) -> int:
    return _UNION_BYTES + _FRAGMENT_BYTES * len(pack.tasks) * (made is not None)


def _keeps_few(pack: Pack, task: LeafTask, made: LeafHandle, matching: Matching) -> bool | None:
    """Whether so few rows match that only their other columns should be read; None leaves it to Lance.

    A sample of the rows decides, which is kept; it is taken for filters that ask for single values.
    """
    rows = sum(each.leaf.stats.rows for each in pack.tasks if each.leaf.stats is not None)
    if task.predicate is None or rows < _SAMPLED or not _asks_for_values(task.predicate):
        return None
    named = {field.name: field_id(field) or 0 for field in task.metadata.schema}
    used = sorted({(path_of(name, task.metadata.plain_schema) or (name,))[0] for name in task.predicate.columns()})
    if not set(task.columns) - set(used) or any(named[name] not in matching.names for name in used):
        return None

    def sampled() -> pa.RecordBatch:
        found = lance_tables.sample(made, [matching.names[named[name]] for name in used])
        return found.rename_columns(used).combine_chunks().to_batches()[0]

    sample = cache.get(("sample", *_key(pack), tuple(used)), sampled, lambda found: int(found.nbytes))
    return True if matching_rows(sample, task.predicate).num_rows <= _FEW * sample.num_rows else None


def _asks_for_values(predicate: Predicate) -> bool:
    """Whether a filter demands that a column has one of some values."""
    match predicate:
        case Comparison(operator="=") | In(negated=False):
            return True
        case And(operands=operands):
            return any(map(_asks_for_values, operands))
    return False


@contextmanager
def _naming_broken(pack: Pack) -> Iterator[None]:
    try:
        yield
    except (UnreadableError, FileNotFoundError):
        _refuse_broken(pack)
        raise


def _refuse_broken(pack: Pack) -> None:
    """Name the leaf that keeps a pack from being read."""
    for task in pack.tasks:
        handle = leaf.open_leaf(task)
        if gone := leaf_handle.missing_files(task.root, task.leaf.location, handle):
            raise UnreadableError(f"leaf {task.leaf.object_id!r} can't be read: its file {gone[0]!r} is gone")


def read_each(pack: Pack) -> Iterator[pa.RecordBatch]:
    """The matching rows of a pack by opening each leaf."""
    for task in pack.tasks:
        yield from leaf.read(task)
