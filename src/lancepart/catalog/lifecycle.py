"""Declaring, creating and dropping tables."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from lance_namespace import (
    CreateTableRequest,
    CreateTableResponse,
    DeclareTableRequest,
    DeclareTableResponse,
    DropTableRequest,
    DropTableResponse,
)

from lancepart.catalog import directories, partitioned, requests, tables
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.directories import State
from lancepart.catalog.properties import refuse_own
from lancepart.catalog.tables import Located
from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    LanceNamespaceError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from lancepart.model.ids import check_path, hashed_location, object_id
from lancepart.storage.dataset import (
    Dataset,
    create_dataset,
    overwrite_dataset,
    overwrite_managed,
    read_ipc,
    set_table_metadata,
)
from lancepart.storage.manifest_rows import TABLE, TABLE_VERSION, Change, Row, Update, dump_metadata, now
from lancepart.storage.root import check_location
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import ConflictError, ExistsError, MissingError

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace


def declare(catalog: Catalog, request: DeclareTableRequest) -> DeclareTableResponse:
    """Reserve a name and a place for a table: first the marker file, then the row."""
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
        row = Row(
            object_id=object_id(path),
            object_type=TABLE,
            location=location,
            metadata=properties or None,
            created_at=now(),
        )
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


def declared_location(catalog: Catalog, snapshot: Snapshot, path: tuple[str, ...], asked: str | None) -> str:
    """Where a declared table is to live: where the request says, if that is allowed."""
    if asked is None:
        return new_location(catalog, path)
    location = check_location(asked)
    catalog.root.uri_of(location)
    refuse_shared(snapshot, object_id(path), location)
    if not catalog.manifest_enabled and location != directories.v1_location(path[0]):
        raise InvalidInputError(f"location {asked!r}: without the manifest a table lives in {path[0]}.lance")
    return location


def new_location(catalog: Catalog, path: tuple[str, ...]) -> str:
    """Where a new table is to live: ``<name>.lance`` in the root, unless another table or its remains are there."""
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
    """Put a new table's row into the manifest, its namespace held fast meanwhile.

    A drop that saw the directory before the row came may have removed it: then the row is taken back.
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
    """Take a new row back if its directory was dropped before the row came, so that no row names what is gone."""
    if standing:
        return

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        found = snapshot.row(row.object_id)
        is_own = found is not None and (found.location, found.created_at) == (row.location, row.created_at)
        return Change(deletes=(row.object_id,) if is_own else ()), None

    catalog.manifest.transact(plan)
    raise ConcurrentModificationError(f"table {row.object_id!r} was dropped by another writer at this moment")


def create(
    catalog: Catalog, namespace: LanceNamespace, request: CreateTableRequest, body: bytes
) -> CreateTableResponse:
    """Write a table from an Arrow IPC stream and make it known; it appears with its data or not at all."""
    path = check_path(request.id, what="table")
    mode = requests.mode(request.mode, ["create", "exist_ok", "overwrite"], what="CreateTable mode")
    snapshot = catalog.snapshot()
    partitioned.refuse_owned(snapshot, path, "append or overwrite")
    catalog.require_place(snapshot)
    tables.require_parent(catalog, snapshot, path)
    found = tables.find(catalog, snapshot, path)
    if found is None and snapshot.row(object_id(path)) is not None:
        raise TableAlreadyExistsError(f"a namespace named {shown(path)} already exists")
    declared = found is not None and tables.is_declared(catalog, found)
    if found is not None and not declared and mode == "create":
        raise TableAlreadyExistsError(f"table {shown(path)} already exists")
    if found is not None and not declared and mode == "exist_ok":
        return CreateTableResponse(location=catalog.root.uri_of(found.location), properties=found.properties)
    data = read_ipc(body)
    properties = dict(refuse_own(request.properties or {}))
    if found is not None and declared and catalog.versions_managed(snapshot):
        found = _adopted(catalog, found)
    if found is not None:
        return _fill(catalog, namespace, found, data, properties, overwrite=not declared)
    return _create_new(catalog, namespace, path, data, properties)


def _create_new(
    catalog: Catalog,
    namespace: LanceNamespace,
    path: tuple[str, ...],
    data: pa.RecordBatchReader,
    properties: dict[str, str],
) -> CreateTableResponse:
    if catalog.versions_managed(catalog.snapshot()):
        declared = declare(catalog, DeclareTableRequest(id=list(path), properties=properties or None))
        located = tables.require(catalog, catalog.snapshot(), path)
        try:
            dataset = _write(catalog, namespace, located, data, properties)
        except LanceNamespaceError:
            _take_back(catalog, located)
            raise
        directories.unreserve(catalog, located.location)
        return CreateTableResponse(location=declared.location, version=dataset.version, properties=properties)
    location = new_location(catalog, path)
    dataset = _write(catalog, namespace, Located(path=path, location=location, row=None), data, properties)
    _record(catalog, path, location, properties)
    return CreateTableResponse(location=catalog.root.uri_of(location), version=dataset.version, properties=properties)


def _write(
    catalog: Catalog,
    namespace: LanceNamespace,
    table: Located,
    data: pa.RecordBatchReader,
    properties: Mapping[str, str],
    *,
    overwrite: bool = False,
) -> Dataset:
    """Write a table's data, then its properties; of several that write its first data at once, one comes through."""
    directories.keep(catalog, table.location)
    try:
        dataset = _written(catalog, namespace, table, data, overwrite=overwrite)
        set_table_metadata(catalog.root, dataset, properties)
        return dataset
    except (ExistsError, ConflictError, MissingError):
        raise ConcurrentModificationError(
            f"table {shown(table.path)} was written by another writer at this moment"
        ) from None


def _written(
    catalog: Catalog, namespace: LanceNamespace, table: Located, data: pa.RecordBatchReader, *, overwrite: bool
) -> Dataset:
    if not overwrite:
        keeper = (namespace, table.path) if table.managed else (None, None)
        return create_dataset(catalog.root, table.location, data, namespace=keeper[0], path=keeper[1])
    if table.managed:
        return overwrite_managed(catalog.root, namespace, table.path, data)
    return overwrite_dataset(catalog.root, table.location, data)


def _record(catalog: Catalog, path: tuple[str, ...], location: str, properties: dict[str, str]) -> None:
    """Give a table that has its data its row, unless a declaration of it came first and did."""
    if catalog.manifest_enabled:
        row = Row(
            object_id=object_id(path),
            object_type=TABLE,
            location=location,
            metadata=properties or None,
            created_at=now(),
        )
        try:
            insert(catalog, row, path)
        except LanceNamespaceError:
            found = tables.find(catalog, catalog.snapshot(), path)
            if found is None or found.row is None or found.location != location:
                directories.remove_unnamed(catalog, location)
                raise
            _set_properties(catalog, found, properties)
    directories.unreserve(catalog, location)


def _adopted(catalog: Catalog, found: Located) -> Located:
    """A declared table with its row, which it needs before the manifest can keep its versions."""
    if found.row is None:
        row = Row(object_id=found.identifier, object_type=TABLE, location=found.location, created_at=now())
        with contextlib.suppress(TableAlreadyExistsError, ConcurrentModificationError):
            insert(catalog, row, found.path, adopts=True)
    return tables.require(catalog, catalog.snapshot(), found.path)


def _fill(
    catalog: Catalog,
    namespace: LanceNamespace,
    found: Located,
    data: pa.RecordBatchReader,
    properties: dict[str, str],
    *,
    overwrite: bool,
) -> CreateTableResponse:
    """Write the first data of a declared table, or new data over a table."""
    dataset = _write(catalog, namespace, found, data, properties or found.properties, overwrite=overwrite)
    if found.row is not None:
        _set_properties(catalog, found, properties)
        directories.unreserve(catalog, found.location)
    elif not overwrite:
        _record(catalog, found.path, found.location, properties)
    return CreateTableResponse(
        location=catalog.root.uri_of(found.location), version=dataset.version, properties=properties or found.properties
    )


def _take_back(catalog: Catalog, located: Located) -> None:
    """Undo the declaration of a table whose first data could not be written; NotFound if another writer dropped it."""
    snapshot = catalog.snapshot()
    found = tables.find(catalog, snapshot, located.path)
    if found is None or found.location != located.location:
        directories.delete_tables(catalog, [located.row] if located.row else [])
        tables.require(catalog, snapshot, located.path)
    elif tables.is_declared(catalog, found):
        drop(catalog, DropTableRequest(id=list(located.path)))


def _set_properties(catalog: Catalog, found: Located, properties: dict[str, str]) -> None:
    if not properties:
        return

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        tables.require(catalog, snapshot, found.path)
        update = Update(object_id=found.identifier, values={"metadata": dump_metadata(properties)})
        return Change(updates=(update,)), None

    catalog.manifest.transact(plan)


def refuse_shared(snapshot: Snapshot, identifier: str, location: str) -> None:
    """Two names for one directory, or one table inside another, would let the drop of one take the other's data."""
    for other in snapshot.at_locations([location]):
        if other.object_id != identifier:
            raise TableAlreadyExistsError(f"location {location!r} is registered already, as table {other.object_id!r}")
    for other in directories.named_at(snapshot, location):
        if other.object_id != identifier:
            raise InvalidInputError(f"location {location!r} overlaps with that of table {other.object_id!r}")


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
