"""Checking that a root is not in use by something else than lancepart."""

from __future__ import annotations

import os

from lancepart.storage.files import Files
from lancepart.storage.root import Root

_MANIFEST = "__manifest"
_OF_TABLES = ("_versions", "_delta_log")
_HARMLESS = frozenset({".DS_Store", ".gitignore", ".gitkeep", "lost+found", "_checkpoint", "_checkpoints"})


def stranger(root: Root) -> str | None:
    """A file that forbids creating a partitioned table at a root, which must be empty; None if there is none."""
    around = _table_around(root)
    if around is not None:
        return around
    files = Files(root)
    names, found = files.children()
    for info in found:
        if info.path not in _HARMLESS:
            return info.path
    return next(
        (name for name in names if name not in _HARMLESS and name != _MANIFEST and not files.is_empty(name)), None
    )


def stranger_in_catalog(root: Root) -> str | None:
    """A file that forbids creating a catalog at a root: the root is a table itself, or has files but no table.

    A catalog that is there already may have other files beside its tables.
    """
    around = _table_around(root)
    if around is not None:
        return around
    names, found = Files(root).children()
    if _MANIFEST in names:
        return None
    table = next((name for name in names if name in _OF_TABLES), None)
    if table is not None or any(name.endswith(".lance") for name in names):
        return table
    return next((info.path for info in found if info.path not in _HARMLESS), None)


def _table_around(root: Root) -> str | None:
    """The plain Lance table that a local root would be inside of."""
    place = os.path.dirname(root.uri) if root.is_local else "/"
    while place != os.path.dirname(place):
        if os.path.isdir(os.path.join(place, _OF_TABLES[0])):
            return place
        place = os.path.dirname(place)
    return None
