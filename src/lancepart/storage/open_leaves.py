"""Versions of leaves that searches and scans keep open, so that commits to them need not open them again."""

from __future__ import annotations

from collections.abc import Hashable

import lance

from lancepart.storage.cache import cache, handle_size
from lancepart.storage.leaf_handle import LeafHandle, leaf_dataset
from lancepart.storage.root import Root


def leaf_key(root: Root, location: str, branch: str | None, version: int) -> tuple[Hashable, ...]:
    """What a version of a leaf is known by."""
    return root.uri, tuple(sorted(root.storage_options.items())), location, branch, version


def kept_leaf(root: Root, location: str, version: int | None) -> lance.LanceDataset | None:
    """The open table of a version of a leaf, if searches or scans keep it."""
    if version is None or not cache.holds(key := ("leaf", *leaf_key(root, location, None, version))):
        return None
    return cache.get(key, lambda: leaf_dataset(root, location, version, session=cache.session), handle_size)


def keep_leaf(root: Root, location: str, handle: LeafHandle) -> None:
    """Keep a version of a leaf that was made of one that is kept, for those who read it next."""
    cache.get(("leaf", *leaf_key(root, location, None, int(handle.version))), lambda: handle, handle_size)
