"""Dropping tables, and removing their rows from the manifest."""

from __future__ import annotations

from lance_namespace import (
    DropTableRequest,
    DropTableResponse,
)

from lancepart.catalog import directories, tables
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.directories import State
from lancepart.catalog.tables import Located
from lancepart.errors import (
    ConcurrentModificationError,
    LanceNamespaceError,
    TableNotFoundError,
)
from lancepart.model.ids import check_path, object_id
from lancepart.storage.manifest_rows import TABLE_VERSION, Change
from lancepart.storage.snapshot import Snapshot


def drop(catalog: Catalog, request: DropTableRequest) -> DropTableResponse:
    """Remove a table: its row first, then its data; without a row, its directory."""
    path = check_path(request.id, what="table")
    snapshot = catalog.snapshot()
    located = tables.find(catalog, snapshot, path) or _hidden(catalog, snapshot, path)
    if located is None:
        located = tables.require(catalog, snapshot, path)
    tables.refuse_published(located, "delete")
    shared = located.row is not None and tables.is_shared(snapshot, located)
    if not shared:
        catalog.files.refuse_removal(located.location)
    if located.row is None:
        _drop_listed(catalog, snapshot, located)
    elif shared:
        forget(catalog, located, dropped=True, hide=False)
    else:
        forget(catalog, located, dropped=True)
        directories.delete_tables(catalog, [located.row])
    return DropTableResponse(
        id=list(path), location=catalog.root.uri_of(located.location), properties=located.properties
    )


def _drop_listed(catalog: Catalog, snapshot: Snapshot, located: Located) -> None:
    """Remove a table that only the listing knows; its creator may be about to give it a row."""
    if not catalog.manifest_enabled:
        directories.delete(catalog, located.location)
        return
    if snapshot.handle is not None:
        directories.keep(catalog, located.location)
    if not directories.remove_unnamed(catalog, located.location):
        raise ConcurrentModificationError(
            f"table {shown(located.path)} was registered by another writer at this moment: drop it again"
        )


def _hidden(catalog: Catalog, snapshot: Snapshot, path: tuple[str, ...]) -> Located | None:
    """A deregistered table of the root, which can still be dropped."""
    if not catalog.uses_v1_name(path) or snapshot.row(object_id(path)) is not None:
        return None
    location = directories.v1_location(path[0])
    if directories.state(catalog, location) is not State.DEREGISTERED or snapshot.at_locations([location]):
        return None
    if directories.is_leftover(catalog, location):
        directories.remove_unnamed(catalog, location)
        return None
    return Located(path=path, location=location, row=None)


def forget(catalog: Catalog, located: Located, *, dropped: bool, hide: bool = True) -> None:
    """Take a table's row and its versions' rows out of the manifest, and hide its directory from the listing first."""
    path, location = located.path, located.location
    hidden = hide and directories.is_listed(catalog, location)
    if located.row is not None:
        directories.keep(catalog, location)
    if hidden or located.row is None:
        directories.hide(catalog, location, dropped=dropped)
    if located.row is None:
        return

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        row = snapshot.row(located.identifier)
        if row is None or row.location != location:
            raise TableNotFoundError(f"table {shown(path)} was removed by another writer at this moment")
        versions = snapshot.below(located.identifier, TABLE_VERSION)
        return Change(deletes=(located.identifier, *(version.object_id for version in versions))), None

    try:
        catalog.manifest.transact(plan)
    except LanceNamespaceError:
        if hidden and catalog.snapshot().row(located.identifier) is not None:
            directories.unhide(catalog, location)
        elif hidden:
            directories.tidy(catalog, location)
        raise
