"""Splitting a large group of a join by the leaves of one side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lancepart.plan.join_planner import ANTI, INNER, LEFT, RIGHT, SEMI
from lancepart.read.group import GroupTask, size_of
from lancepart.read.leaf import LeafTask
from lancepart.read.pieces import cut, packed

_REREAD = 4
_SPLIT_LEFT = (INNER, LEFT, SEMI, ANTI)
_SPLIT_RIGHT = (INNER, RIGHT)


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


def _dealt(tasks: Sequence[LeafTask], parts: int) -> list[tuple[LeafTask, ...]]:
    """The leaves of one side in so many parts."""
    known = {task.leaf.object_id: task for task in tasks}
    pieces = cut(tasks[0].root, [task.leaf for task in tasks], size_of(tasks) // parts)
    return [
        tuple(replace(known[piece.leaf.object_id], fragments=piece.fragments) for piece in part)
        for part in packed(pieces, parts)
    ]
