"""Indices of one leaf."""

from __future__ import annotations

from lancepart.storage import leaf_data, leaf_handle, leaf_index
from lancepart.storage.root import Root
from tests.support.catalogs import rows


def test_an_index_covers_the_fragments_that_it_was_built_over(root: Root, first: int) -> None:
    indexed = leaf_index.build_index(root, "leaf", "id", "BTREE", "by_id", base=first)
    staged = leaf_data.stage(root, "leaf", rows(4, 5), base=indexed)
    longer = leaf_data.append(root, "leaf", staged.items, base=indexed)

    assert leaf_index.coverage(root, "leaf", "by_id", base=indexed).uncovered == {}
    assert list(leaf_index.coverage(root, "leaf", "by_id", base=longer).uncovered.values()) == [2]


def test_an_index_is_dropped_in_a_version_of_its_own(root: Root, first: int) -> None:
    indexed = leaf_index.build_index(root, "leaf", "id", "BTREE", "by_id", base=first)

    dropped = leaf_index.drop_index(root, "leaf", "by_id", base=indexed)

    assert dropped is not None
    assert leaf_handle.open_leaf(root, "leaf", dropped).describe_indices() == []
    assert leaf_index.drop_index(root, "leaf", "by_id", base=dropped) is None
