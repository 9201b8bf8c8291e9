"""The contents of a root without a table of ours, for error messages."""

from __future__ import annotations

import contextlib
import os

from lancepart.errors import InvalidInputError, InvalidTableStateError, LanceNamespaceError, PermissionDeniedError
from lancepart.storage.files import Files
from lancepart.storage.root import Root
from lancepart.storage.translate import storage_errors

_MANIFEST = "__manifest"
_MOST_NAMED = 3
_MOST_LOOKED_INTO = 20


def refuse_file(root: Root) -> None:
    """Refuse a local root that is a file, or would be inside of one."""
    place = root.uri if root.is_local else ""
    while place and not os.path.lexists(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    if place and os.path.isfile(place):
        raise InvalidInputError(f"{place!r}: the root of a table must be a directory, and this is a file")


def refuse_plain(root: Root) -> None:
    """Refuse a root that is a Lance table which is not partitioned."""
    with storage_errors(f"look at {root.uri!r}", root):
        is_lance = not Files(root).is_empty("_versions")
    if is_lance:
        raise InvalidTableStateError(
            f"{root.uri!r} is a plain Lance table, not a partitioned one: read it with lance.dataset, or make a "
            "partitioned table of it at another root with lancepart.create_table(root, lance.dataset(…).schema, "
            "partition_by) and append(lance.dataset(…).scanner().to_reader())"
        )


def advice(root: Root) -> str:
    """What to do about a root without a table: open one of those beneath it, or make one."""
    if found := beneath(root):
        named = ", ".join(map(repr, found[:_MOST_NAMED])) + (", …" if len(found) > _MOST_NAMED else "")
        return f", and it is no warehouse: give one of the tables beneath it, {named}"
    gone = ", and there is no such directory" if root.is_local and not os.path.exists(root.uri) else ""
    return f"{gone}: make one with lancepart.create_table"


def beneath(root: Root) -> list[str]:
    """The tables and warehouses that are directories of a root which is none itself; of a store those of the first few.

    A root that can't be listed has none: what is wrong with it was said before.
    """
    if not root.is_local:
        return _beneath_store(root)
    if not os.path.isdir(root.uri) or os.path.isdir(os.path.join(root.uri, _MANIFEST)):
        return []
    with contextlib.suppress(OSError), os.scandir(root.uri) as entries:
        return sorted(each.path for each in entries if os.path.isdir(os.path.join(each.path, _MANIFEST)))
    return []


def _beneath_store(root: Root) -> list[str]:
    files = Files(root)
    try:
        names = sorted(files.children()[0])
        if _MANIFEST in names:
            return []
        found = [name for name in names[:_MOST_LOOKED_INTO] if not files.is_empty(f"{name}/{_MANIFEST}")]
    except LanceNamespaceError:
        return []
    return [f"{root.uri}/{name}" for name in found]


def make_directory(root: Root) -> None:
    """Make the directory of a local root; one that can't be made is named at once, not after retries."""
    try:
        if root.is_local:
            os.makedirs(root.uri, exist_ok=True)
    except OSError as error:
        raise PermissionDeniedError(
            f"can't make the directory {root.uri!r}: {error.strerror}; give a root that you may write to"
        ) from None
