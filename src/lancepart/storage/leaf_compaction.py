"""Compaction of leaf tables."""

from __future__ import annotations

import json
from collections.abc import Collection

import lance
from lance.fragment import FragmentMetadata
from lance.optimize import Compaction, CompactionOptions, RewriteResult

from lancepart.storage import leaf_data
from lancepart.storage.leaf_handle import fragments_of, leaf_dataset
from lancepart.storage.leaf_index import segments_of
from lancepart.storage.root import Root
from lancepart.storage.translate import storage_errors


def compact(root: Root, location: str, *, base: int, target_rows: int, rebuilt: Collection[str] = ()) -> int | None:
    """Make a version whose small fragments are put together and whose deleted rows are gone; None if none is needed.

    Lance leaves apart what an index covers and what it does not, so those that are ``rebuilt`` anyway go first.
    """
    handle = leaf_dataset(root, location, base)
    old = [item for index in handle.describe_indices() if index.name in rebuilt for item in segments_of(index)]
    if old and len(handle.get_fragments()) > 1:
        base = leaf_data.commit_version(root, location, lance.LanceOperation.CreateIndex([], old), base)
        handle = leaf_dataset(root, location, base)
    with storage_errors(f"compact the leaf at {location!r}", root):
        plan = Compaction.plan(handle, CompactionOptions(target_rows_per_fragment=target_rows, num_threads=1))
        if not plan.num_tasks():
            return None
        done = [task.execute(handle) for task in plan.tasks]
    groups = [lance.LanceOperation.RewriteGroup(_originals(handle, item), item.new_fragments) for item in done]
    return leaf_data.commit_version(root, location, lance.LanceOperation.Rewrite(groups, []), base, handle=handle)


def _originals(handle: lance.LanceDataset, done: RewriteResult) -> list[FragmentMetadata]:
    """The fragments that were put together; pylance's ``original_fragments`` can't read those with overlays."""
    numbers = [each["id"] for each in json.loads(done.json())["original_fragments"]]  # type: ignore[attr-defined]
    return [item.metadata for item in fragments_of(handle, numbers)]
