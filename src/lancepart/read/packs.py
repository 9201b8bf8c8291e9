"""Many small leaves read as one dataset: to open and scan each of them takes longer than to read its rows.

What a union names of a leaf is kept in memory, so that leaves which did not change are not even opened again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lancepart.errors import UnsupportedOperationError
from lancepart.layout.matching import Matching
from lancepart.model.schema import field_id
from lancepart.read import leaf, union
from lancepart.read.leaf import LeafTask
from lancepart.read.union_builder import has_blobs

LEAST_LEAVES = 64
MOST_LEAVES = 1_024
SMALL_BYTES = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """Leaves that follow each other in a scan, and are read in one go."""

    tasks: tuple[LeafTask, ...]


def packed(tasks: Sequence[LeafTask]) -> list[Pack]:
    """The tasks of a scan, small leaves that follow each other put together."""
    if len(tasks) < LEAST_LEAVES or not tasks[0].metadata.salt or has_blobs(tasks[0].metadata):
        return [Pack(tasks=(task,)) for task in tasks]
    packs: list[list[LeafTask]] = []
    open_for_more = False
    for task in tasks:
        small = _is_small(task)
        if small and open_for_more and len(packs[-1]) < MOST_LEAVES and task.predicate is packs[-1][0].predicate:
            packs[-1].append(task)
        else:
            packs.append([task])
        open_for_more = small
    return [Pack(tasks=tuple(each)) for each in packs]


def _is_small(task: LeafTask) -> bool:
    """Whether a leaf is read as a whole, and is no more than opening it is worth."""
    item = task.leaf
    if item.stats is None or item.read_version is None or item.constants or task.fragments is not None:
        return False
    return item.stats.bytes <= SMALL_BYTES


def read(pack: Pack) -> Iterator[pa.RecordBatch]:
    """The matching rows of a pack, leaf after leaf."""
    if len(pack.tasks) < LEAST_LEAVES:
        yield from read_each(pack)
        return
    first, leaves = pack.tasks[0], [task.leaf for task in pack.tasks]
    try:
        made = union.of_leaves(first.root, first.metadata, leaves, copying=False).dataset
    except UnsupportedOperationError:
        yield from read_each(pack)
        return
    ids = [field_id(field) or 0 for field in first.metadata.schema]
    matching = Matching(
        names=dict(zip(ids, made.schema.names, strict=True)),
        types={number: field.type for number, field in zip(ids, first.metadata.schema, strict=True)},
    )
    yield from leaf.projected(replace(first, limit=None), lambda task: leaf.scanned(task, made, matching))


def read_each(pack: Pack) -> Iterator[pa.RecordBatch]:
    """The matching rows of a pack by opening each leaf."""
    for task in pack.tasks:
        yield from leaf.read(task)
