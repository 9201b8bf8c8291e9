"""The contents of a root without a table of ours, for error messages."""

from __future__ import annotations

import os

from lancepart.errors import InvalidInputError, InvalidTableStateError
from lancepart.storage.files import Files
from lancepart.storage.root import Root
from lancepart.storage.translate import storage_errors


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


def missing(root: Root) -> str:
    """What to say of a local root that is not there."""
    return ", and there is no such directory" if root.is_local and not os.path.exists(root.uri) else ""
