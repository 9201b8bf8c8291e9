"""Namespaces: rows of the manifest, and the root with its properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lance_namespace import (
    CreateNamespaceRequest,
    CreateNamespaceResponse,
    DescribeNamespaceRequest,
    DescribeNamespaceResponse,
    DropNamespaceRequest,
    DropNamespaceResponse,
    ListNamespacesRequest,
    ListNamespacesResponse,
    NamespaceExistsRequest,
    NamespaceExistsResponse,
)

from lancepart.catalog import directories, partitioned, requests
from lancepart.catalog.context import VERSION_MANAGEMENT, Catalog, shown
from lancepart.catalog.properties import as_properties, own_root, refuse_own
from lancepart.errors import (
    InvalidInputError,
    LanceNamespaceError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    UnsupportedOperationError,
)
from lancepart.format.names import METADATA, SCHEMA, SPEC_PREFIX
from lancepart.format.rows import CREATED_AT, namespace_row
from lancepart.model.aliases import JsonMapping
from lancepart.model.ids import check_path, object_id
from lancepart.storage.manifest_rows import NAMESPACE, Change, Row, RowUpdate
from lancepart.storage.snapshot import Snapshot

_Plan = Callable[[Snapshot, bool], tuple[Change, tuple[JsonMapping | None, list[Row]]]]


def create(catalog: Catalog, request: CreateNamespaceRequest) -> CreateNamespaceResponse:
    """Make a namespace; its parent's row is touched, so that the parent can't be dropped meanwhile."""
    catalog.require_manifest("CreateNamespace")
    path = check_path(request.id, what="namespace", root_allowed=True)
    mode = requests.mode(request.mode, ["create", "exist_ok", "overwrite"], what="CreateNamespace mode")
    properties = dict(refuse_own(request.properties or {}))
    if not path:
        return _create_root(catalog, mode)
    catalog.require_place(catalog.snapshot())
    identifier = object_id(path)
    row = namespace_row(identifier, metadata=properties or None)
    parent = path[:-1]

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, tuple[JsonMapping | None, list[Row]]]:
        partitioned.refuse_owned(snapshot, path, "append")
        catalog.require_namespace(snapshot, parent)
        found = snapshot.row(identifier)
        touches = (object_id(parent),) if parent else ()
        if found is None:
            return Change(inserts=(row,), touches=touches), (properties, [])
        if mode == "exist_ok" and found.object_type == NAMESPACE:
            return Change(), (found.metadata or {}, [])
        if mode == "create" or found.object_type != NAMESPACE:
            raise NamespaceAlreadyExistsError(f"{found.object_type} {shown(path)} already exists")
        if own_root(found.metadata) is not None:
            raise NamespaceAlreadyExistsError(f"{shown(path)} is a partitioned table: drop it first")
        inside = _droppable(catalog, snapshot, snapshot.below(identifier))
        fresh = {METADATA: row.value(METADATA), CREATED_AT.name: row.created_at}
        return Change(
            updates=(RowUpdate(object_id=identifier, values=fresh),),
            deletes=tuple(child.object_id for child in inside),
            touches=touches,
        ), (properties, inside)

    kept = _remove(catalog, identifier, plan)
    return CreateNamespaceResponse(properties=as_properties(kept) or None)


def _create_root(catalog: Catalog, mode: str) -> CreateNamespaceResponse:
    if mode == "exist_ok":
        return CreateNamespaceResponse(properties=dict(catalog.snapshot().properties) or None)
    if mode == "overwrite":
        raise InvalidInputError(
            "the root namespace can't be overwritten: use set_root_properties to change its properties"
        )
    raise NamespaceAlreadyExistsError("the root namespace always exists")


def list_children(catalog: Catalog, request: ListNamespacesRequest) -> ListNamespacesResponse:
    """The names of the namespaces directly beneath one."""
    path = check_path(request.id, what="namespace", root_allowed=True)
    if not catalog.manifest_enabled:
        return ListNamespacesResponse(namespaces=[])
    snapshot = catalog.snapshot()
    catalog.require_namespace(snapshot, path)
    names, token = requests.page(
        snapshot.names(object_id(path), NAMESPACE, request.page_token), request.page_token, request.limit
    )
    return ListNamespacesResponse.model_construct(namespaces=names, page_token=token)


def describe(catalog: Catalog, request: DescribeNamespaceRequest) -> DescribeNamespaceResponse:
    """The properties of a namespace; those of the root are in the manifest table's metadata map."""
    catalog.require_manifest("DescribeNamespace")
    path = check_path(request.id, what="namespace", root_allowed=True)
    snapshot = catalog.snapshot()
    row = catalog.require_namespace(snapshot, path)
    if row is None:
        return DescribeNamespaceResponse(properties=dict(snapshot.properties))
    seen = {**as_properties(row.metadata), **partitioned.runtime_properties(snapshot, path)}
    return DescribeNamespaceResponse(properties=seen)


def exists(catalog: Catalog, request: NamespaceExistsRequest) -> NamespaceExistsResponse:
    """Return if the namespace exists, raise if it does not."""
    path = check_path(request.id, what="namespace", root_allowed=True)
    if path and not catalog.manifest_enabled:
        raise NamespaceNotFoundError(
            f"namespace {shown(path)} does not exist: without the manifest there is only the root"
        )
    catalog.require_namespace(catalog.snapshot(), path)
    return NamespaceExistsResponse()


def drop(catalog: Catalog, request: DropNamespaceRequest) -> DropNamespaceResponse:
    """Remove a namespace, with its content if the request says cascade, in one commit."""
    catalog.require_manifest("DropNamespace")
    path = check_path(request.id, what="namespace", root_allowed=True)
    mode = requests.mode(request.mode, ["fail", "skip"], what="DropNamespace mode")
    behavior = requests.mode(request.behavior, ["restrict", "cascade"], what="DropNamespace behavior")
    if not path:
        raise InvalidInputError("the root namespace can't be dropped")
    identifier = object_id(path)

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, tuple[JsonMapping | None, list[Row]]]:
        try:
            row = catalog.require_namespace(snapshot, path)
        except NamespaceNotFoundError:
            if mode == "skip":
                return Change(), (None, [])
            raise
        assert row is not None
        partitioned.refuse_owned(snapshot, path, "delete")
        inside = snapshot.below(identifier, limit=None if behavior == "cascade" else 1)
        if inside and behavior == "restrict":
            raise NamespaceNotEmptyError(
                f"namespace {shown(path)} is not empty, it holds {inside[0].object_id!r}: drop that first, or cascade"
            )
        if own_root(row.metadata) is not None and behavior == "restrict":
            raise NamespaceNotEmptyError(f"{shown(path)} is a partitioned table: cascade drops it with all its rows")
        doomed = _droppable(catalog, snapshot, [row, *inside])
        return Change(deletes=tuple(child.object_id for child in doomed)), (row.metadata, doomed)

    removed = _remove(catalog, identifier, plan)
    return DropNamespaceResponse(properties=as_properties(removed) if removed is not None else None)


def _droppable(catalog: Catalog, snapshot: Snapshot, rows: list[Row]) -> list[Row]:
    """Refuse to drop a directory that does not match its row, and hide the rest from the listing."""
    for row in rows:
        directories.refuse_other(catalog, row)
    directories.hide_rows(catalog, snapshot, rows)
    return rows


def _remove(catalog: Catalog, identifier: str, plan: _Plan) -> JsonMapping | None:
    """Commit a plan and remove the tables whose rows it deletes; if the commit fails, nothing is removed."""
    try:
        properties, dropped = catalog.manifest.transact(plan)
    except LanceNamespaceError:
        directories.unhide_rows(catalog, catalog.snapshot().below(identifier))
        raise
    directories.delete_tables(catalog, dropped)
    return properties


def set_root_properties(catalog: Catalog, values: Mapping[str, str | None]) -> dict[str, str]:
    """Set or, with ``None``, remove properties of the root namespace; all of them afterwards."""
    catalog.require_manifest("setting root properties")
    for key, value in values.items():
        if not isinstance(key, str) or not (value is None or isinstance(value, str)):
            raise InvalidInputError(f"root property {key!r}: keys are strings, values strings or None")
    refuse_own(values)
    _refuse_redefinition(catalog.snapshot(), values)
    catalog.manifest.set_properties(values)
    return dict(catalog.snapshot().properties)


def _refuse_redefinition(snapshot: Snapshot, values: Mapping[str, str | None]) -> None:
    """Refuse to change what makes the root a partitioned table, and what would hide its leaves' versions."""
    if not partitioned.is_partitioned(snapshot.properties):
        return
    for key, value in values.items():
        if key == SCHEMA or key.startswith(SPEC_PREFIX):
            raise UnsupportedOperationError(
                f"root property {key!r} defines the partitioned table at {snapshot.root.uri!r}: "
                "use lancepart.open_table(…).update_spec, add_column and their like instead"
            )
        if key == VERSION_MANAGEMENT and str(value).lower() == "true" and partitioned.is_strong(snapshot):
            raise UnsupportedOperationError(
                f"root property {key!r}: the transactions of the partitioned table keep its leaves' versions"
            )
