"""Dropping a table that has a root of its own, and checking whether one exists."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from lancepart.catalog import directories
from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    NamespaceNotFoundError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from lancepart.format.names import LOCATION, of_type
from lancepart.layout import opening
from lancepart.storage.files import Files
from lancepart.storage.manifest import NAME, Manifest
from lancepart.storage.manifest_rows import TABLE
from lancepart.storage.removal import is_of_root
from lancepart.storage.root import Root
from lancepart.storage.root_contents import refuse_file, refuse_plain
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import ConflictError, MissingError

_TRIES = 50


def exists(root: Root, namespace: Sequence[str] = ()) -> bool:
    """Whether a partitioned table of any layout is at a root; a plain Lance table or a file is none."""
    try:
        refuse_file(root)
        if not namespace:
            refuse_plain(root)
    except (InvalidInputError, InvalidTableStateError):
        return False
    try:
        opening.find(root, namespace)
    except (TableNotFoundError, NamespaceNotFoundError):
        return False
    return True


def drop(root: Root) -> None:
    """Remove a table: no reader or writer can open it any more, then the leaves that it named go, then the manifest.

    Files of others are kept. What an interrupted removal left is removed by the next one.
    """
    _refuse_warehouse(root)
    files = Files(root)
    leaves, last = _sealed(root, files) if _is_whole(root) else (_remains(root, files), _newest(files))
    for leaf in sorted(leaves):
        files.delete_directory(leaf)
    files.delete_manifest(NAME, last=last)
    files.prune("")


def _sealed(root: Root, files: Files) -> tuple[set[str], str]:
    """Close a table to all commits: the directories of its leaves, and the file that is to be removed last.

    A manifest whose own files are gone, as a writer leaves it that commits while they are removed, is what remains.
    """
    for _ in range(_TRIES):
        manifest = Manifest(root)
        snapshot = manifest.snapshot()
        if snapshot.handle is None:
            raise UnsupportedOperationError(
                f"{root.uri!r} is a tree of Lance tables without a manifest: which files are its own is not recorded, "
                "so remove it by hand"
            )
        try:
            leaves = _leaf_directories(snapshot, files)
        except MissingError:
            leaves = _remains(root, files)
        for leaf in leaves:
            files.refuse_removal(leaf)
        with contextlib.suppress(ConflictError):
            return leaves, manifest.seal(snapshot)
    raise ConcurrentModificationError(f"other writers kept changing the table at {root.uri!r}: nothing was removed")


def _newest(files: Files) -> str:
    """The file of the newest version of the manifest: their names count down."""
    names = sorted(info.path for info in files.children(f"{NAME}/_versions")[1] if info.path.endswith(".manifest"))
    return names[0].partition("/")[2] if names else ""


def _remains(root: Root, files: Files) -> set[str]:
    """The directories of leaves of which nothing else is left; with files of others there is no table."""
    remains = [info.path for info in files.walk("")]
    if not remains or not all(map(is_of_root, remains)):
        raise TableNotFoundError(f"there is no partitioned table at {root.uri!r}")
    leaves = {path.split("/")[0] for path in remains} - {NAME}
    for leaf in leaves:
        files.refuse_removal(leaf)
    return leaves


def _is_whole(root: Root) -> bool:
    """Whether there is a table to open; what a removal that was cut short left of one is none."""
    try:
        return exists(root)
    except InvalidTableStateError:
        if Manifest(root).snapshot().handle is not None:
            raise
        return False


def _leaf_directories(snapshot: Snapshot, files: Files) -> set[str]:
    """The directories that rows of the manifest name, and those that only a writer of the table can have made."""
    found = snapshot.scan(of_type(TABLE), columns=[LOCATION])
    named = set() if found is None else {str(location) for location in found.column(LOCATION).to_pylist() if location}
    folders, _ = files.children()
    return named | {folder for folder in folders if is_of_root(f"{folder}/data/file")} - {NAME}


def _refuse_warehouse(root: Root) -> None:
    """Refuse a table that a warehouse names: its row would be left behind."""
    above, _, name = root.uri.rpartition("/")
    if not name or not above or above.endswith(":/"):
        raise InvalidInputError(f"{root.uri!r} is not a directory below another one: nothing is removed")
    snapshot = Manifest(Root(above, root.storage_options)).snapshot()
    if snapshot.handle is not None and directories.is_named(snapshot, name):
        raise UnsupportedOperationError(
            f"{root.uri!r} belongs to the warehouse {above!r}: use lancepart.connect({above!r}).drop_table(…)"
        )
