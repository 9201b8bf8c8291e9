"""Resolving branches, tags and the latest version of a single Lance table."""

from __future__ import annotations

from lancepart.storage import leaf_handle
from lancepart.storage.files import Files
from lancepart.storage.root import Root
from lancepart.storage.translate import storage_errors

RESERVED = ".lance-reserved"

_BRANCHES = "tree"


def latest(root: Root, location: str) -> int:
    """The latest version of main."""
    return int(leaf_handle.leaf_dataset(root, location, None).version)


def is_declared(root: Root, location: str) -> bool:
    """Whether a table was declared, and so far has no version."""
    return Files(root).exists(f"{location}/{RESERVED}")


def tagged(root: Root, location: str, name: str) -> tuple[str | None, int] | None:
    """The branch, None for main, and the version that a tag refers to; None if there is no such tag."""
    with storage_errors(f"read the tags of the leaf at {location!r}", root):
        entry = leaf_handle.leaf_dataset(root, location, None).tags.list().get(name)
    return None if entry is None else (entry.get("branch"), int(entry["version"]))


def branch_location(location: str, branch: str | None) -> str:
    """Where a branch of a table is a table of its own."""
    return location if branch is None else f"{location}/{_BRANCHES}/{branch}"
