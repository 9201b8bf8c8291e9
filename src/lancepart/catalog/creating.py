"""Writing tables: new ones, declared ones, and new data over old."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from lance_namespace import (
    CreateTableRequest,
    CreateTableResponse,
    DeclareTableRequest,
    DropTableRequest,
)

from lancepart.catalog import directories, partitioned, requests, tables
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.properties import refuse_own
from lancepart.catalog.tables import Located
from lancepart.errors import (
    ConcurrentModificationError,
    LanceNamespaceError,
    TableAlreadyExistsError,
)
from lancepart.format.rows import table_row
from lancepart.model.ids import check_path, object_id
from lancepart.storage.dataset import (
    Dataset,
    create_dataset,
    overwrite_dataset,
    overwrite_managed,
    read_ipc,
    set_table_metadata,
)
from lancepart.storage.manifest_rows import Change, metadata_update
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import ConflictError, ExistsError, MissingError

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace
from lancepart.catalog.declaring import declare, insert, new_location
from lancepart.catalog.dropping import drop


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
    """Write a table's data, then its properties; of several concurrent writers of its first data, one succeeds."""
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
    """Insert the row of a table whose data is written, unless a concurrent declaration did."""
    if catalog.manifest_enabled:
        row = table_row(object_id(path), location, properties)
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
        row = table_row(found.identifier, found.location)
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
        update = metadata_update(found.identifier, properties)
        return Change(updates=(update,)), None

    catalog.manifest.transact(plan)
