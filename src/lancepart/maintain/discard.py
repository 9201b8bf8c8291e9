"""Removing a table that a failed write had just created."""

from __future__ import annotations

import contextlib

from lancepart.errors import LanceNamespaceError, TableNotFoundError
from lancepart.format.names import OBJECT_ID, writer_id
from lancepart.layout import create
from lancepart.model.ids import leaf_location
from lancepart.storage import manifest as manifests
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from lancepart.storage.removal import LEAF_DIRECTORY


def discard_new(manifest: Manifest, salt: str, transaction: str = "") -> bool:
    """Remove a new table if nobody but a transaction has used it, and return whether it was removed.

    The manifest is sealed first: a concurrent writer either prevents the removal or is refused.
    """
    with contextlib.suppress(LanceNamespaceError, OSError):
        snapshot = manifest.snapshot()
        found = create.load(snapshot)
        rows = snapshot.scan(None, columns=[OBJECT_ID])
        there = set() if rows is None else set(rows.column(0).to_pylist()) - {writer_id(transaction)}
        if found.salt != salt or found.change or there != {f"v{found.spec.id}"}:
            return False
        _remove(manifest, manifest.seal(snapshot))
        return True
    return False


def withdraw_late(manifest: Manifest, salt: str, transaction: str) -> None:
    """Remove what a transaction wrote into a table that was made for it and discarded meanwhile.

    A task that is still running when its write fails ends after the table was removed. Files that it wrote before the
    manifest was sealed are removed with the table; a task that finds the manifest sealed removes its own.
    """
    if not _is_discarded(manifest, salt):
        return
    files = Files(manifest.root)
    names, _ = files.children()
    for name in names:
        if LEAF_DIRECTORY.match(name) and name == leaf_location(transaction, name.partition("_")[2]):
            files.delete_directory(name)
    files.prune("")


def _is_discarded(manifest: Manifest, salt: str) -> bool:
    """Whether the table with this salt was removed, or is being removed."""
    try:
        return manifest.is_sealed() or create.load(manifest.snapshot()).salt != salt
    except TableNotFoundError:  # removed between the two looks
        return True


def _remove(manifest: Manifest, last: str) -> None:
    """Remove the files, that of the sealed version last."""
    files = Files(manifest.root)
    names, _ = files.children()
    for name in names:
        if LEAF_DIRECTORY.match(name):
            files.delete_directory(name)
    files.delete_manifest(manifests.NAME, last=last)
    files.prune("")
