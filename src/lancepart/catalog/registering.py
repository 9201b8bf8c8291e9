"""Registering existing tables in the catalog, and deregistering them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from lance_namespace import (
    DeregisterTableRequest,
    DeregisterTableResponse,
    RegisterTableRequest,
    RegisterTableResponse,
)

from lancepart.catalog import declaring, directories, dropping, partitioned, requests, tables
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.properties import as_properties, own_root, refuse_own
from lancepart.errors import InvalidInputError, TableAlreadyExistsError, UnsupportedOperationError
from lancepart.format.names import LOCATION, METADATA
from lancepart.format.rows import table_row
from lancepart.model.ids import check_path, object_id
from lancepart.storage.dataset import open_dataset, set_table_metadata
from lancepart.storage.manifest_rows import NAMESPACE, TABLE, TABLE_VERSION, Change, Row, RowUpdate
from lancepart.storage.root import check_location
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import MissingError


def register(catalog: Catalog, request: RegisterTableRequest) -> RegisterTableResponse:
    """Register a table beneath the root under a name."""
    path = check_path(request.id, what="table")
    mode = requests.mode(request.mode, ["create", "overwrite"], what="RegisterTable mode")
    location = check_location(request.location)
    catalog.root.uri_of(location)
    given = dict(refuse_own(request.properties or {}))
    if not catalog.manifest_enabled:
        return _register_v1(catalog, path, location, given)
    partitioned.refuse_owned(catalog.snapshot(), path, "append")
    _refuse_missing(catalog, location)
    properties = {**tables.own_properties(catalog, location), **given}
    row = table_row(object_id(path), location, properties)

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        touches = tables.require_parent(catalog, snapshot, path)
        declaring.refuse_shared(snapshot, row.object_id, location)
        found = snapshot.row(row.object_id)
        if found is None and (mode == "overwrite" or _is_free(catalog, snapshot, path, location)):
            return Change(inserts=(row,), touches=touches), None
        if found is None or mode == "create" or found.object_type != TABLE:
            raise TableAlreadyExistsError(f"table {shown(path)} already exists")
        values = {LOCATION: location, METADATA: row.value(METADATA)}
        versions = tuple(version.object_id for version in snapshot.below(row.object_id, TABLE_VERSION))
        return Change(
            updates=(RowUpdate(object_id=row.object_id, values=values),), deletes=versions, touches=touches
        ), None

    catalog.manifest.transact(plan)
    directories.unhide(catalog, location)
    _give(catalog, location, given)
    return RegisterTableResponse(location=location, properties=properties)


def _give(catalog: Catalog, location: str, properties: Mapping[str, str]) -> None:
    """Put properties into the metadata of a table that is being registered; a declared one gets them with its data."""
    with contextlib.suppress(MissingError, FileNotFoundError):
        if properties:
            set_table_metadata(catalog.root, open_dataset(catalog.root, location), properties)


def _is_free(catalog: Catalog, snapshot: Snapshot, path: tuple[str, ...], location: str) -> bool:
    """Whether no directory of another table answers to the name; the one being registered may."""
    found = tables.find(catalog, snapshot, path)
    return found is None or found.location == location


def _refuse_missing(catalog: Catalog, location: str) -> None:
    """Refuse to register a directory that is no Lance table: a drop would remove all of its content."""
    if not directories.is_lance(catalog, location):
        raise InvalidInputError(f"location {location!r} holds no table: write one there first, or declare the table")
    if (inner := catalog.files.inner_table(location)) is not None:
        raise InvalidInputError(f"location {location!r} holds tables of its own, such as {inner!r}: it is none itself")


def _register_v1(
    catalog: Catalog, path: tuple[str, ...], location: str, properties: dict[str, str]
) -> RegisterTableResponse:
    """Without the manifest, a table can only be registered again where it was deregistered.

    The specification removes the mark and then registers, so a table without a mark is accepted.
    """
    if len(path) > 1:
        tables.require_parent(catalog, catalog.snapshot(), path)
    if location != directories.v1_location(path[0]):
        raise UnsupportedOperationError("RegisterTable at another place needs the manifest (manifest_enabled=true)")
    _refuse_missing(catalog, location)
    if properties and not directories.have_data(catalog, [location])[0]:
        declaring.refuse_unkept(catalog, properties)
    directories.unhide(catalog, location)
    _give(catalog, location, properties)
    return RegisterTableResponse(location=location, properties=tables.own_properties(catalog, location))


def deregister(catalog: Catalog, request: DeregisterTableRequest) -> DeregisterTableResponse:
    """Forget a table and keep its data."""
    forgotten = _forget_root(catalog, request)
    if forgotten is not None:
        return forgotten
    located = tables.locate(catalog, request.id)
    tables.refuse_published(located, "delete")
    dropping.forget(catalog, located, dropped=False)
    return DeregisterTableResponse(
        id=list(located.path), location=catalog.root.uri_of(located.location), properties=located.properties
    )


def _forget_root(catalog: Catalog, request: DeregisterTableRequest) -> DeregisterTableResponse | None:
    """Forget a partitioned table of a warehouse, whose row is a namespace's; the mark keeps its files from a sweep."""
    path = check_path(request.id, what="table")

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, Row | None]:
        row = snapshot.row(object_id(path))
        if row is None or row.object_type != NAMESPACE or own_root(row.metadata) is None:
            return Change(), None
        if snapshot.below(row.object_id, limit=1):
            raise UnsupportedOperationError(f"table {shown(path)} has its older layout beside it: it is not forgotten")
        with contextlib.suppress(InvalidInputError):
            directories.hide(catalog, check_location(own_root(row.metadata) or ""), dropped=False)
        return Change(deletes=(row.object_id,)), row

    row = catalog.manifest.transact(plan) if catalog.manifest_enabled else None
    if row is None:
        return None
    return DeregisterTableResponse(
        id=list(path), location=own_root(row.metadata), properties=as_properties(row.metadata)
    )
