"""Removing a table that has a root of its own, with all its leaves, after checking that it is the one meant."""

from __future__ import annotations

import re
from collections.abc import Callable

from lancepart.errors import InvalidInputError, InvalidTableStateError
from lancepart.storage.files import Files
from lancepart.storage.manifest import NAME, Manifest
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.table_index import DIRECTORY as TABLE_INDICES

LEAF_DIRECTORY = re.compile(r"^[0-9a-f]{8}_v\d+\$.*\$dataset$")

UNION_DIRECTORY = "union.lance"

FATE = f"{NAME}/_fate"

_OF_LANCE = {"data", "_versions", "_transactions", "_deletions", "_indices", "_refs"}
_PUBLISHED, _SWEPT = b"published\n", b"swept\n"

Meant = Callable[[Snapshot], bool]


def refuse_other_table(root: Root, location: str, meant: Meant) -> None:
    """Refuse to remove a directory that is not, by what its own manifest says, the table that is meant.

    Without a manifest it may only hold leaves, as a removal that was cut short leaves them.
    """
    files = Files(root)
    try:
        files.refuse_removal(location, with_tables=True)
    except InvalidInputError as error:
        raise InvalidTableStateError(f"the catalog's row names no directory that may be removed: {error}") from None
    snapshot = Manifest(Root(root.uri_of(location), root.storage_options)).snapshot()
    if snapshot.handle is not None and not meant(snapshot):
        raise InvalidTableStateError(
            f"location {location!r} is not removed: the table there is not the one that the catalog's row refers to"
        )
    if snapshot.handle is None and not all(is_of_root(info.path[len(location) + 1 :]) for info in files.walk(location)):
        raise InvalidTableStateError(f"location {location!r} is not removed: there is no partitioned table")


def remove_root(files: Files, root: Root, location: str, meant: Meant) -> None:
    """Remove the directory of a table with a root of its own, if it is the table that is meant."""
    refuse_other_table(root, location, meant)
    files.delete_directory(location, last=FATE, with_tables=True)


def claim(files: Files, root: Root, location: str) -> bool:
    """Decide that a new table is to be published, before it gets its row; say whether no sweep decided otherwise.

    To be asked again when the row is there: a sweep takes the claim of whoever waited with the row for very long.
    """
    if not files.put_new(f"{location}/{FATE}", _PUBLISHED) and _is_doomed(files, location):
        return False
    return Manifest(Root(root.uri_of(location), root.storage_options)).snapshot().handle is not None


def doom(files: Files, location: str, *, even_claimed: bool) -> bool:
    """Decide that an old directory is to be removed, before its row is looked for once more; say whether that holds.

    A claim must be as old as the rest for that: then whoever made it is gone, or asks for it again.
    """
    path = f"{location}/{FATE}"
    if files.put_new(path, _SWEPT) or _is_doomed(files, location):
        return True
    if even_claimed:
        files.put(path, _SWEPT)
    return even_claimed


def _is_doomed(files: Files, location: str) -> bool:
    try:
        return files.read(f"{location}/{FATE}") == _SWEPT
    except FileNotFoundError:
        return True


def spare(files: Files, location: str) -> None:
    """Take that decision back for a directory that turned out to have a row."""
    files.delete(f"{location}/{FATE}")


def is_of_root(path: str) -> bool:
    """Whether a file, named from the root on, is where a partitioned table has its own: in the manifest or a leaf.

    >>> is_of_root("0011aabb_v1$k7m2n9p4q8r5s3t6$dataset/data/a.lance"), is_of_root("photos/data/a.png")
    (True, False)
    """
    parts = path.split("/")
    if path == FATE:
        return True
    if parts[0] == TABLE_INDICES:
        return len(parts) > 3 and parts[2] in _OF_LANCE
    if len(parts) < 3 or parts[1] not in _OF_LANCE:
        return False
    return parts[0] in (NAME, UNION_DIRECTORY) or LEAF_DIRECTORY.match(parts[0]) is not None
