"""Removing a table that a failed write had just created."""

from __future__ import annotations

import contextlib

from lancepart.errors import LanceNamespaceError
from lancepart.format.names import OBJECT_ID
from lancepart.layout import create
from lancepart.storage import manifest as manifests
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from lancepart.storage.removal import LEAF_DIRECTORY

_NEWEST = 2**64 - 1
"""Lance counts the names of its version files down from here."""


def discard_new(manifest: Manifest, salt: str) -> bool:
    """Remove the table with a salt if it is as it was made, and say whether; one that others have used stays.

    The manifest is sealed first: a writer that comes at the same moment either keeps the table, or is refused.
    """
    with contextlib.suppress(LanceNamespaceError, OSError):
        snapshot = manifest.snapshot()
        found = create.load(manifest, snapshot)
        rows = snapshot.scan(None, columns=[OBJECT_ID])
        if found.salt != salt or found.change or rows is None or rows.column(0).to_pylist() != [f"v{found.spec.id}"]:
            return False
        manifest.seal(snapshot)
        _remove(manifest, snapshot.version + 1)
        return True
    return False


def _remove(manifest: Manifest, sealed: int) -> None:
    """Remove the files; the sealed version goes last, so that no older one is ever taken for the newest."""
    files = Files(manifest.root)
    names, _ = files.children()
    for name in names:
        if LEAF_DIRECTORY.match(name):
            files.delete_directory(name)
    files.delete_manifest(manifests.NAME, last=f"_versions/{_NEWEST - sealed:020d}.manifest")
    files.prune("")
