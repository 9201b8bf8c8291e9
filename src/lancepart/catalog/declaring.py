"""Declaring, creating and dropping tables."""

from __future__ import annotations

from lance_namespace import (
    DeclareTableRequest,
    DeclareTableResponse,
)

from lancepart.catalog import directories, partitioned, tables
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.directories import State
from lancepart.catalog.properties import refuse_own
from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    LanceNamespaceError,
    TableAlreadyExistsError,
    UnsupportedOperationError,
)
from lancepart.format.rows import table_row
from lancepart.model.ids import check_path, hashed_location, object_id
from lancepart.storage.manifest_rows import Change, Row
from lancepart.storage.root import check_location
from lancepart.storage.snapshot import Snapshot


def declare(catalog: Catalog, request: DeclareTableRequest) -> DeclareTableResponse:
    """Reserve a name and a location for a table: first the marker file, then the row."""
    path = check_path(request.id, what="table")
    snapshot = catalog.snapshot()
    refuse_existing(catalog, snapshot, path)
    properties = dict(refuse_own(request.properties or {}))
    refuse_unkept(catalog, properties)
    location = declared_location(catalog, snapshot, path, request.location)
    token = directories.reserve(catalog, location)
    if token is None:
        raise ConcurrentModificationError(f"table {shown(path)} is being created by another writer at this moment")
    if catalog.manifest_enabled:
        row = table_row(object_id(path), location, properties)
        try:
            insert(catalog, row, path, token=token)
        except LanceNamespaceError:
            directories.unreserve(catalog, location, token)
            raise
    return DeclareTableResponse(
        location=catalog.root.uri_of(location),
        properties=properties,
        managed_versioning=True if catalog.versions_managed(catalog.snapshot()) else None,
        storage_options=dict(catalog.root.storage_options) if request.vend_credentials else None,
    )


def refuse_existing(catalog: Catalog, snapshot: Snapshot, path: tuple[str, ...]) -> None:
    """Raise if the name is taken, or its namespace missing."""
    partitioned.refuse_owned(snapshot, path, "append")
    catalog.require_place(snapshot)
    tables.require_parent(catalog, snapshot, path)
    if tables.find(catalog, snapshot, path) is not None or snapshot.row(object_id(path)) is not None:
        raise TableAlreadyExistsError(f"table {shown(path)} already exists")


def refuse_unkept(catalog: Catalog, properties: dict[str, str]) -> None:
    """Refuse properties of a table that has no data yet where there is no row to keep them."""
    if properties and not catalog.manifest_enabled:
        raise UnsupportedOperationError(
            "properties of a table without data need the manifest: they are not kept with manifest_enabled=false"
        )


def declared_location(catalog: Catalog, snapshot: Snapshot, path: tuple[str, ...], requested: str | None) -> str:
    """The location of a declared table: the one in the request, if that is allowed."""
    if requested is None:
        return new_location(catalog, path)
    location = check_location(requested)
    catalog.root.uri_of(location)
    refuse_shared(snapshot, object_id(path), location)
    if not catalog.manifest_enabled and location != directories.v1_location(path[0]):
        raise InvalidInputError(f"location {requested!r}: without the manifest a table lives in {path[0]}.lance")
    return location


def new_location(catalog: Catalog, path: tuple[str, ...]) -> str:
    """The location of a new table: ``<name>.lance`` in the root, unless another table or its remains are there."""
    if not catalog.uses_v1_name(path):
        return hashed_location(object_id(path))
    location = directories.v1_location(path[0])
    found = directories.state(catalog, location)
    if found is State.ABSENT or not catalog.manifest_enabled:
        return location
    if found is State.DEREGISTERED:
        directories.sweep_leftover(catalog, location)
    elif found is not State.STRAY and all(
        row.object_id == path[0] for row in catalog.snapshot().at_locations([location])
    ):
        raise ConcurrentModificationError(f"table {shown(path)} is being created by another writer at this moment")
    return hashed_location(object_id(path))


def insert(
    catalog: Catalog, row: Row, path: tuple[str, ...], *, token: bytes | None = None, adopts: bool = False
) -> None:
    """Insert a new table's row into the manifest, with a compare-and-swap on its namespace.

    A drop that saw the directory before the row was inserted may have removed it: then the row is removed again.
    """

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        touches = tables.require_parent(catalog, snapshot, path)
        if snapshot.row(row.object_id) is not None:
            if retry:
                raise ConcurrentModificationError(f"table {shown(path)} was created by another writer at this moment")
            raise TableAlreadyExistsError(f"table {shown(path)} already exists")
        return Change(inserts=(row,), touches=touches), None

    catalog.manifest.transact(plan)
    location = row.location or ""
    confirm(
        catalog,
        row,
        directories.exists(catalog, location) if adopts else directories.is_standing(catalog, location, token),
    )


def confirm(catalog: Catalog, row: Row, standing: bool) -> None:
    """Remove a new row if its directory was dropped before the row was inserted: no row may name a missing table."""
    if standing:
        return

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        found = snapshot.row(row.object_id)
        is_own = found is not None and (found.location, found.created_at) == (row.location, row.created_at)
        return Change(deletes=(row.object_id,) if is_own else ()), None

    catalog.manifest.transact(plan)
    raise ConcurrentModificationError(f"table {row.object_id!r} was dropped by another writer at this moment")


def refuse_shared(snapshot: Snapshot, identifier: str, location: str) -> None:
    """Two names for one directory, or one table inside another, would let the drop of one take the other's data."""
    for other in snapshot.at_locations([location]):
        if other.object_id != identifier:
            raise TableAlreadyExistsError(f"location {location!r} is registered already, as table {other.object_id!r}")
    for other in directories.named_at(snapshot, location):
        if other.object_id != identifier:
            raise InvalidInputError(f"location {location!r} overlaps with that of table {other.object_id!r}")
