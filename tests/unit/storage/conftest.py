"""A leaf with three rows."""

from __future__ import annotations

import pytest

from lancepart.storage import leaf_data
from lancepart.storage.root import Root
from tests.support.catalogs import Place, rows


@pytest.fixture
def root(local: Place) -> Root:
    return Root.parse(local.root)


@pytest.fixture
def first(root: Root) -> int:
    """Version 1 of a leaf with three rows."""
    staged = leaf_data.stage(root, "leaf", rows(1, 2, 3), base=None)
    return leaf_data.create_leaf(root, "leaf", rows().schema, staged.items)
