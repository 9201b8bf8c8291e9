"""Compaction of one leaf."""

from __future__ import annotations

from lancepart.storage import leaf_compaction, leaf_data, leaf_handle
from lancepart.storage.root import Root
from tests.support.catalogs import rows


def test_small_fragments_become_one_in_a_detached_version(root: Root, first: int) -> None:
    staged = leaf_data.stage(root, "leaf", rows(4, 5), base=first)
    longer = leaf_data.append(root, "leaf", staged.items, base=first)

    compacted = leaf_compaction.compact(root, "leaf", base=longer, target_rows=100)

    assert leaf_handle.measure(leaf_handle.open_leaf(root, "leaf", compacted))[::2] == (5, 1)
    assert leaf_handle.measure(leaf_handle.open_leaf(root, "leaf", longer))[::2] == (5, 2)
    assert leaf_compaction.compact(root, "leaf", base=first, target_rows=100) is None
