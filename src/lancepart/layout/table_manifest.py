"""Where the snapshots of a table come from: ``__manifest`` itself, or a Hive-style tree that a catalog registers."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from lancepart.errors import UnsupportedOperationError
from lancepart.layout.hive_tree import TreeManifest
from lancepart.layout.layouts import layout_for, layout_of, refuse_past
from lancepart.layout.metadata import TableMetadata
from lancepart.storage import history
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot


class TableManifest(Protocol):
    """A table's manifest, whichever layout the table has."""

    @property
    def root(self) -> Root:
        """The root of the table, or of the catalog that it is in."""

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The latest version, or a given one."""


def load(manifest: TableManifest, version: int | None = None) -> TableMetadata:
    """The definition of a table as it is, or as it was at a version."""
    snapshot = manifest.snapshot(version)
    return layout_of(snapshot).load(snapshot)


def catalog_of(manifest: TableManifest) -> Manifest:
    """The ``__manifest`` that a table's leaves are registered in."""
    if isinstance(manifest, TreeManifest):
        return manifest.catalog
    assert isinstance(manifest, Manifest)
    return manifest


def tree_of(manifest: TableManifest) -> TreeManifest | None:
    """The tree of a Hive-style table, for the modules that write and upgrade one; ``None`` for other tables."""
    return manifest if isinstance(manifest, TreeManifest) else None


def has_commits(manifest: TableManifest) -> bool:
    """Whether writes are commits to the table's own ``__manifest``; otherwise leaves are written one by one."""
    return tree_of(manifest) is None


def namespace_of(manifest: TableManifest) -> tuple[str, ...]:
    """The path of a table inside a larger catalog; empty for one that has a root of its own."""
    return manifest.namespace if isinstance(manifest, TreeManifest) else ()


def committing(manifest: TableManifest, what: str) -> Manifest:
    """The manifest of a table whose writes are commits to it; a table without such is refused for ``what``."""
    if isinstance(manifest, TreeManifest):
        raise UnsupportedOperationError(f"{what}: a Hive-style table has no snapshots; lancepart.upgrade makes one")
    return catalog_of(manifest)


def maintained(manifest: TableManifest, what: str, version: int | None = None) -> Manifest:
    """The manifest of a table that can be maintained and redefined; one of an older layout is refused for ``what``."""
    metadata = load(manifest, version)
    layout = layout_for(metadata)
    if not layout.capabilities(metadata).maintenance:
        raise layout.unsupported(what)
    return catalog_of(manifest)


def travelling(manifest: TableManifest, version: int | None = None) -> Manifest:
    """The manifest of a table whose snapshots can be named; one without such is refused."""
    snapshot = manifest.snapshot(version)
    layout = layout_of(snapshot)
    if not layout.capabilities(layout.load(snapshot)).snapshots:
        refuse_past(snapshot)
    return catalog_of(manifest)


def past_version(manifest: TableManifest, version: int | str | datetime | None) -> int | None:
    """The snapshot that a user names, if the table can still be read as it was then; ``None`` for the latest."""
    if version is None:
        return None
    if isinstance(manifest, TreeManifest):
        refuse_past(manifest.snapshot())
    found = history.resolve(catalog_of(manifest), version)
    refuse_past(manifest.snapshot(found))
    return found


def pinned_version(manifest: TableManifest, version: int) -> int | None:
    """The version that a plan was made at; ``None`` for a table without snapshots, which is read as it is now."""
    return None if isinstance(manifest, TreeManifest) else history.at(catalog_of(manifest), version).version
