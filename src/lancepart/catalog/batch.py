"""Several operations on several tables, as one commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lance_namespace import (
    BatchCommitTablesRequest,
    BatchCommitTablesResponse,
    BatchDeleteTableVersionsRequest,
    BatchDeleteTableVersionsResponse,
    CreateTableVersionRequest,
    CreateTableVersionResponse,
    DeclareTableRequest,
    DeclareTableResponse,
    DeregisterTableRequest,
    DeregisterTableResponse,
)
from lance_namespace_urllib3_client.models import CommitTableOperation, CommitTableResult

from lancepart.catalog import declaring, directories, requests, staging, tables, versions
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.properties import refuse_own
from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    LanceNamespaceError,
    TableAlreadyExistsError,
    UnsupportedOperationError,
)
from lancepart.format.rows import table_row
from lancepart.model.ids import check_path, object_id
from lancepart.storage.manifest_rows import TABLE_VERSION, Change
from lancepart.storage.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStep:
    """One operation of a batch: its part of the commit, what follows it, and what takes it back if it fails."""

    change: Callable[[Snapshot, bool], Change]
    after: Callable[[], CommitTableResult]
    undo: Callable[[], object] = lambda: None


def commit_tables(catalog: Catalog, request: BatchCommitTablesRequest) -> BatchCommitTablesResponse:
    """Declare tables, create and delete versions and deregister tables, all of it or nothing."""
    catalog.require_manifest("BatchCommitTables")
    steps: list[BatchStep] = []
    try:
        for operation in request.operations or ():
            steps.append(_step(catalog, operation))  # noqa: PERF401 - what was made before a failure is undone
        catalog.manifest.transact(lambda snapshot, retry: (_whole(steps, snapshot, retry), None))
    except LanceNamespaceError:
        for step in steps:
            step.undo()
        raise
    return BatchCommitTablesResponse(results=[step.after() for step in steps])


def _whole(steps: list[BatchStep], snapshot: Snapshot, retry: bool) -> Change:
    change = Change()
    for step in steps:
        change += step.change(snapshot, retry)
    named = [*(row.object_id for row in change.inserts), *change.deletes]
    if len(set(named)) != len(named) or any(item in change.touches for item in change.deletes):
        raise InvalidInputError("two operations of the batch name the same table or version")
    return change


def _step(catalog: Catalog, operation: CommitTableOperation) -> BatchStep:
    makers: dict[str, Callable[..., BatchStep]] = {
        "declare_table": _declare,
        "create_table_version": _create_version,
        "delete_table_versions": _delete_versions,
        "deregister_table": _deregister,
    }
    given = [(name, request) for name in makers if (request := getattr(operation, name)) is not None]
    if len(given) != 1:
        raise InvalidInputError(f"an operation of a batch is exactly one of {', '.join(makers)}")
    name, request = given[0]
    return makers[name](catalog, request)


def _declare(catalog: Catalog, request: DeclareTableRequest) -> BatchStep:
    path = check_path(request.id, what="table")
    properties = dict(refuse_own(request.properties or {}))
    snapshot = catalog.snapshot()
    declaring.refuse_existing(catalog, snapshot, path)
    location = declaring.declared_location(catalog, snapshot, path, request.location)
    token = directories.reserve(catalog, location)
    if token is None:
        raise ConcurrentModificationError(f"table {shown(path)} is being created by another writer at this moment")
    row = table_row(object_id(path), location, properties)

    def change(snapshot: Snapshot, retry: bool) -> Change:
        touches = tables.require_parent(catalog, snapshot, path)
        if snapshot.row(row.object_id) is not None:
            raise TableAlreadyExistsError(f"table {shown(path)} already exists")
        return Change(inserts=(row,), touches=touches)

    response = DeclareTableResponse(
        location=catalog.root.uri_of(location),
        properties=properties,
        managed_versioning=True if catalog.versions_managed(snapshot) else None,
    )

    def after() -> CommitTableResult:
        directories.restore_reservation(catalog, location, token)
        return CommitTableResult(declare_table=response)

    return BatchStep(change=change, after=after, undo=lambda: directories.unreserve(catalog, location, token))


def _create_version(catalog: Catalog, request: CreateTableVersionRequest) -> BatchStep:
    requests.refuse_branch(request.branch)
    table = tables.locate(catalog, request.id)
    tables.refuse_published(table, "append")
    _require_managed(table)
    staged = staging.read(catalog, table, request)

    def after() -> CommitTableResult:
        done = CreateTableVersionResponse(version=versions.finish(catalog, staged))
        return CommitTableResult(create_table_version=done)

    return BatchStep(
        change=lambda snapshot, retry: versions.creation(catalog, snapshot, [staged], retry=retry), after=after
    )


def _delete_versions(catalog: Catalog, request: BatchDeleteTableVersionsRequest) -> BatchStep:
    requests.refuse_branch(request.branch)
    table = tables.locate(catalog, request.id)
    tables.refuse_published(table, "maintenance.expire")
    _require_managed(table)
    chosen: list[int] = []

    def change(snapshot: Snapshot, retry: bool) -> Change:
        chosen[:] = versions.chosen_versions(catalog, snapshot, table, request)
        return Change(deletes=tuple(snapshot.rows(f"{table.identifier}${number}" for number in chosen)))

    def after() -> CommitTableResult:
        staging.delete_files(catalog, table, chosen)
        done = BatchDeleteTableVersionsResponse(deleted_count=len(chosen))
        return CommitTableResult(delete_table_versions=done)

    return BatchStep(change=change, after=after)


def _deregister(catalog: Catalog, request: DeregisterTableRequest) -> BatchStep:
    table = tables.locate(catalog, request.id)
    tables.refuse_published(table, "delete")
    if table.row is None:
        raise UnsupportedOperationError(f"table {shown(table.path)} is not in the manifest: migrate() first")
    hidden = directories.is_listed(catalog, table.location)
    directories.keep(catalog, table.location)
    if hidden:
        directories.hide(catalog, table.location, dropped=False)

    def change(snapshot: Snapshot, retry: bool) -> Change:
        tables.require(catalog, snapshot, table.path)
        inside = snapshot.below(table.identifier, TABLE_VERSION)
        return Change(deletes=(table.identifier, *(row.object_id for row in inside)))

    response = DeregisterTableResponse(
        id=list(table.path), location=catalog.root.uri_of(table.location), properties=table.properties
    )
    return BatchStep(
        change=change,
        after=lambda: CommitTableResult(deregister_table=response),
        undo=lambda: hidden and directories.unhide(catalog, table.location),
    )


def _require_managed(table: tables.Located) -> None:
    if not table.managed:
        raise UnsupportedOperationError(
            f"versions of table {shown(table.path)} are files, which can't be committed together: "
            "set the root property table_version_management=true"
        )
