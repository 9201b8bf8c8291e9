"""Removing orphan directories of a warehouse, left by statements that failed or were killed."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from lancepart.catalog import partitioned
from lancepart.errors import LanceNamespaceError, NamespaceNotFoundError
from lancepart.layout.opening import moved
from lancepart.maintain.collect import moment
from lancepart.maintain.leaf_maintenance import MaintenanceResult
from lancepart.queries.warehouse import Warehouse
from lancepart.storage import removal
from lancepart.storage.files import FileInfo
from lancepart.storage.manifest import NAME, Manifest

AGE = timedelta(days=3)

_PLACE = re.compile(r"[0-9a-f]{8}_.+", re.DOTALL)


def remove_orphans(
    warehouse: Warehouse, older_than: timedelta | datetime = AGE, *, dry_run: bool = False
) -> MaintenanceResult:
    """Remove directories of the root that contain only files of our tables, and that no row of the catalog names.

    All files of a directory are older than ``older_than``. A statement that took longer to make a table is refused when
    it publishes it.
    """
    catalog = warehouse.catalog
    names, _ = catalog.files.children()
    if catalog.snapshot().handle is None:
        raise NamespaceNotFoundError(
            f"there is no catalog at {catalog.root.uri!r}: orphan directories can't be identified there"
        )
    now = None if dry_run else catalog.files.clock(f"{NAME}/_transactions")
    cutoff = moment(older_than, now)
    swept: dict[str, list[FileInfo]] = {}
    for name in sorted(name for name in names if _PLACE.fullmatch(name)):
        files = [] if catalog.root.leads_outside(name) else list(catalog.files.walk(name))
        if not _is_garbage(warehouse, name, files, cutoff):
            continue
        if dry_run or _remove(warehouse, name, files):
            swept[name] = files
    gone = [info for files in swept.values() for info in files]
    return MaintenanceResult(
        action="remove_orphans",
        changed=len(swept),
        removed_files=len(gone),
        freed_bytes=sum(info.size for info in gone),
        locations=tuple(swept),
    )


def _remove(warehouse: Warehouse, name: str, files: list[FileInfo]) -> bool:
    """Remove a directory, unless a slow statement is just publishing the table in it."""
    catalog = warehouse.catalog
    claimed = any(info.path == f"{name}/{removal.FATE}" for info in files)
    if not removal.doom(catalog.files, name, even_claimed=claimed):
        return False
    if warehouse.names(name):
        removal.spare(catalog.files, name)
        return False
    removal.remove_root(catalog.files, catalog.root, name, partitioned.is_table)
    return True


def _is_garbage(warehouse: Warehouse, name: str, files: list[FileInfo], cutoff: datetime) -> bool:
    """Whether a directory is old and ours; the catalog is checked last, so that its answer is the newest."""
    if not files or any(info.modified > cutoff for info in files):
        return False
    ours = all(removal.is_of_root(info.path[len(name) + 1 :]) for info in files) and _has_been_table(warehouse, name)
    return ours and not warehouse.names(name)


def _has_been_table(warehouse: Warehouse, name: str) -> bool:
    """Whether the manifest in a directory, if there is one, is that of a partitioned table, complete or half made."""
    try:
        snapshot = Manifest(moved(warehouse.catalog.root, name)).snapshot()
        return snapshot.handle is None or partitioned.is_table(snapshot)
    except (LanceNamespaceError, OSError):
        return False
