"""Removing a table that has a root of its own, with all its leaves, after checking that it is the one meant."""

from __future__ import annotations

import re
from collections.abc import Callable

from lancepart.errors import InvalidInputError, InvalidTableStateError, LanceNamespaceError
from lancepart.format.names import LOCATION, TABLE, of_type
from lancepart.storage.files import Files
from lancepart.storage.manifest import NAME, Manifest
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.table_index import DIRECTORY as TABLE_INDICES
from lancepart.storage.translate import SealedError

LEAF_DIRECTORY = re.compile(r"^[0-9a-f]{8}_v\d+\$(?:.*\$)?dataset$")
"""The directory of a leaf; that of a table without partitions names no values."""

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
    snapshot = _found(root, location)
    if snapshot.handle is not None and not meant(snapshot):
        raise InvalidTableStateError(
            f"location {location!r} is not removed: the table there is not the one that the catalog's row refers to"
        )
    if snapshot.handle is None and not all(is_of_root(info.path[len(location) + 1 :]) for info in files.walk(location)):
        raise InvalidTableStateError(f"location {location!r} is not removed: there is no partitioned table")


def remove_root(files: Files, root: Root, location: str, meant: Meant) -> None:
    """Remove the files of a table with a root of its own, if it is the table that is meant; files of others stay."""
    refuse_other_table(root, location, meant)
    leaves = _leaf_locations(_found(root, location))

    def is_own(path: str) -> bool:
        return is_of_root(path) or any(path.startswith(f"{leaf}/") for leaf in leaves)

    files.delete_directory(location, last=FATE, with_tables=True, only=is_own)


def _found(root: Root, location: str) -> Snapshot:
    """What is at a location; a table whose removal was begun counts as none."""
    own = Root(root.uri_of(location), root.storage_options)
    try:
        return Manifest(own).snapshot()
    except SealedError:
        return Snapshot(None, own)


def _leaf_locations(snapshot: Snapshot) -> list[str]:
    """Where leaves are whose directories have names that this library does not give; none if it can't be read."""
    try:
        found = snapshot.scan(of_type(TABLE), columns=[LOCATION])
    except LanceNamespaceError:
        return []
    locations = [] if found is None else found.column(LOCATION).to_pylist()
    return [each for each in locations if each and not LEAF_DIRECTORY.match(each)]


def claim(files: Files, root: Root, location: str) -> bool:
    """Claim the directory of a new table before its row is written; returns False if a sweep has claimed it.

    Check it again after the row is written: a sweep removes the claim of a writer that waited very long.
    """
    if not files.put_new(f"{location}/{FATE}", _PUBLISHED) and _is_doomed(files, location):
        return False
    return _found(root, location).handle is not None


def doom(files: Files, location: str, *, even_claimed: bool) -> bool:
    """Claim an old directory for removal before its row is looked up once more; returns whether the claim holds.

    An existing claim must be as old as the files: then its writer has ended, or will check it again.
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
    >>> is_of_root("0011aabb_v1$dataset/data/a.lance")
    True
    """
    parts = path.split("/")
    if path == FATE:
        return True
    if parts[0] == TABLE_INDICES:
        return len(parts) > 3 and parts[2] in _OF_LANCE
    if len(parts) < 3 or parts[1] not in _OF_LANCE:
        return False
    return parts[0] in (NAME, UNION_DIRECTORY) or LEAF_DIRECTORY.match(parts[0]) is not None
