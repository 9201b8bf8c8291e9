"""Removing a table that has a root of its own, with all its leaves: only if it is the table that is meant."""

from __future__ import annotations

import re
from collections.abc import Callable

from lancepart.errors import InvalidInputError, InvalidTableStateError
from lancepart.storage.files import Files
from lancepart.storage.manifest import NAME, Manifest
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot

LEAF_DIRECTORY = re.compile(r"^[0-9a-f]{8}_v\d+\$.*\$dataset$")

_OF_LANCE = {"data", "_versions", "_transactions", "_deletions", "_indices", "_refs"}

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
            f"location {location!r} is not removed: what stands there is not the table that the catalog's row means"
        )
    if snapshot.handle is None and not all(is_of_root(info.path[len(location) + 1 :]) for info in files.walk(location)):
        raise InvalidTableStateError(f"location {location!r} is not removed: no partitioned table stands there")


def remove_root(files: Files, root: Root, location: str, meant: Meant) -> None:
    """Remove the directory of a table with a root of its own, if it is the table that is meant."""
    refuse_other_table(root, location, meant)
    files.delete_directory(location, with_tables=True)


def is_of_root(path: str) -> bool:
    """Whether a file, named from the root on, is where a partitioned table has its own: in the manifest or a leaf.

    >>> is_of_root("0011aabb_v1$k7m2n9p4q8r5s3t6$dataset/data/a.lance"), is_of_root("photos/data/a.png")
    (True, False)
    """
    parts = path.split("/")
    if len(parts) < 3 or parts[1] not in _OF_LANCE:
        return False
    return parts[0] == NAME or LEAF_DIRECTORY.match(parts[0]) is not None
