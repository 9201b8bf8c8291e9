"""The leaves that a union is made of: as the manifest records them, or opened where it does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import TypeVar

from lancepart.format.fragments import LeafFiles
from lancepart.layout.matching import Matching
from lancepart.layout.recorded_files import recorded_files
from lancepart.model.config import config
from lancepart.read import leaf as reading
from lancepart.read.leaf import LeafTask, Opener
from lancepart.read.union_builder import Source
from lancepart.storage import leaf_handle, leaf_record
from lancepart.storage.leaf_handle import LeafShape
from lancepart.storage.snapshot import Snapshot

Item = TypeVar("Item")
Made = TypeVar("Made")


Shapes = MutableMapping[str, tuple[LeafShape, Matching]]
"""The columns of leaves by their fingerprint, matched to the table's."""


def over(items: Sequence[Item], action: Callable[[Item], Made]) -> list[Made]:
    """Do something for each item, on threads."""
    if len(items) < 2:
        return [action(item) for item in items]
    with ThreadPoolExecutor(config.threads) as pool:
        return list(pool.map(action, items))


def sources_of(
    tasks: Sequence[LeafTask], shapes: Shapes, *, snapshot: Snapshot | None = None, opener: Opener = reading.open_leaf
) -> list[Source]:
    """The leaves of tasks that have rows for a union; of recorded ones with the same columns one is opened."""
    recorded = recorded_files(snapshot, [task.leaf for task in tasks if task.predicate is None])
    opened = _opened(tasks, recorded, shapes, opener)
    found = []
    for task in tasks:
        name = task.leaf.object_id
        source = opened[name] if name in opened else _recorded(task, recorded[name], shapes, opener)
        found += [] if source is None else [source]
    return found


def _opened(
    tasks: Sequence[LeafTask], recorded: dict[str, LeafFiles], shapes: Shapes, opener: Opener
) -> Mapping[str, Source | None]:
    """Leaves that must be opened; ``recorded`` loses those of which the columns are not what was recorded."""
    done: dict[str, Source | None] = {}
    while again := _unknown([task for task in tasks if task.leaf.object_id not in done], recorded, shapes):
        for task, source in zip(again, over(again, lambda each: open_source(each, opener)), strict=True):
            done[task.leaf.object_id] = source
            files = recorded.pop(task.leaf.object_id, None)
            if files is not None and source is not None and leaf_record.fingerprint(source.open()) == files.shape:
                shapes[files.shape] = (source.shape, source.matching)
    return done


def _unknown(tasks: Sequence[LeafTask], recorded: Mapping[str, LeafFiles], shapes: Shapes) -> list[LeafTask]:
    """The leaves that are not recorded, and one for each fingerprint of columns that are not known yet."""
    firsts: dict[str, LeafTask] = {}
    bare = []
    for task in tasks:
        files = recorded.get(task.leaf.object_id)
        if files is None:
            bare.append(task)
        elif files.shape not in shapes:
            firsts.setdefault(files.shape, task)
    return [*bare, *firsts.values()]


def _recorded(task: LeafTask, files: LeafFiles, shapes: Shapes, opener: Opener) -> Source:
    shape, matching = shapes[files.shape]
    return Source(
        leaf=task.leaf,
        open=cache(lambda: opener(task)),
        fragments=tuple(leaf_record.fragment(item) for item in files.fragments),
        shape=shape,
        matching=matching,
    )


def open_source(task: LeafTask, opener: Opener = reading.open_leaf) -> Source | None:
    """Open a leaf, and find the rows that its filter matches; None if it has none."""
    opened = reading.opened(task, opener)
    if opened is None:
        return None
    handle = opened.handle
    source = Source(
        leaf=task.leaf,
        open=lambda: handle,
        fragments=tuple(item.metadata for item in handle.get_fragments()),
        shape=leaf_handle.shape_of(handle),
        matching=opened.matching,
        bases=handle.base_paths(),
    )
    if opened.task.predicate is None:
        return source
    found = reading.matching_addresses(opened.task, opened.reopen)
    return replace(source, shown=leaf_handle.split_addresses(found)) if len(found) else None
