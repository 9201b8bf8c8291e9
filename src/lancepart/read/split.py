"""Splitting large work: a leaf by its fragments, a group of a join by the leaves of one side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lancepart.plan.join_planner import ANTI, INNER, LEFT, RIGHT, SEMI
from lancepart.plan.pack import pack
from lancepart.read.group import GroupTask, size_of
from lancepart.read.leaf import LeafTask
from lancepart.storage import leaf_data

_REREAD = 4
_SPLIT_LEFT = (INNER, LEFT, SEMI, ANTI)
_SPLIT_RIGHT = (INNER, RIGHT)


def sized_pieces(tasks: Sequence[LeafTask], parts: int) -> list[tuple[LeafTask, int]]:
    """Leaves with their sizes, those larger than a fair share of ``parts`` cut by fragments."""
    share = sum(map(size_of, ((task,) for task in tasks))) // max(1, parts)
    found: list[tuple[LeafTask, int]] = []
    for task in tasks:
        found += _cut(task, share) if size_of((task,)) > share else [(task, size_of((task,)))]
    return found


def _cut(task: LeafTask, share: int) -> list[tuple[LeafTask, int]]:
    """One leaf in pieces of about a size; the version is pinned, since fragments are only known in one."""
    stats = task.leaf.stats
    if stats is None or stats.fragments < 2:
        return [(task, size_of((task,)))]
    handle = leaf_data.open_leaf(task.root, task.leaf.location, task.leaf.read_version)
    sizes = leaf_data.fragment_sizes(handle)
    numbers = list(sizes)
    pieces = pack(list(sizes.values()), -(-sum(sizes.values()) // max(1, share)))
    return [
        (
            replace(task, fragments=tuple(sorted(numbers[at] for at in piece))),
            sum(sizes[numbers[at]] for at in piece),
        )
        for piece in pieces
    ]


def split_groups(tasks: Sequence[GroupTask], parts: int) -> list[GroupTask]:
    """Groups of a join, one that is far larger than a fair share cut where the other side is cheap to read again."""
    share = sum(task.bytes for task in tasks) // max(1, parts)
    return [piece for task in tasks for piece in _split(task, share)]


def _split(task: GroupTask, share: int) -> Iterator[GroupTask]:
    left, right = size_of(task.left), size_of(task.right)
    how = task.query.how
    wanted = min(_REREAD * 4, -(-task.bytes // max(1, share)))
    if wanted > 1 and left > _REREAD * right and how in _SPLIT_LEFT:
        for piece in _dealt(task.left, wanted):
            yield replace(task, left=piece)
    elif wanted > 1 and right > _REREAD * left and how in _SPLIT_RIGHT:
        for piece in _dealt(task.right, wanted):
            yield replace(task, right=piece)
    else:
        yield task


def _dealt(leaves: Sequence[LeafTask], parts: int) -> list[tuple[LeafTask, ...]]:
    pieces = sized_pieces(leaves, parts)
    return [tuple(pieces[at][0] for at in bin) for bin in pack([size for _, size in pieces], parts)]
