"""Operations on the rows of one table: count, insert, merge, update, delete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
from lance_namespace import (
    CountTableRowsRequest,
    CountTableRowsResponse,
    DeleteFromTableRequest,
    DeleteFromTableResponse,
    InsertIntoTableRequest,
    InsertIntoTableResponse,
    MergeInsertIntoTableRequest,
    MergeInsertIntoTableResponse,
    RestoreTableRequest,
    RestoreTableResponse,
    UpdateTableRequest,
    UpdateTableResponse,
)

from lancepart.catalog import requests, tables
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.tables import Located
from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableColumnNotFoundError,
    UnsupportedOperationError,
)
from lancepart.storage.dataset import Dataset, read_ipc
from lancepart.storage.translate import ConflictError, MissingError, storage_errors

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace


_PATH = re.compile(r"`([^`]+)`|([^.`]+)")
_TIMEOUT = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)?\s*$")
_INSTEAD = {
    "insert into": "append",
    "merge into": "upsert",
    "update": "update",
    "delete from": "delete",
    "restore": "maintenance.rollback",
    "index": "maintenance.create_index",
    "drop an index of": "maintenance.create_index",
    "add columns to": "add_column",
    "alter columns of": "rename_column or widen_column",
    "drop columns of": "drop_column",
    "tag": "tags.create",
    "move a tag of": "tags.create",
    "delete a tag of": "tags.delete",
}
_OF_ROWS = {"insert into", "merge into", "update", "delete from", "restore", "index", "drop an index of"}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


class TableRequest(Protocol):
    """A request that names a table."""

    id: list[str] | None


@contextmanager
def opened(
    catalog: Catalog, namespace: LanceNamespace, request: TableRequest, action: str, version: int | str | None = None
) -> Iterator[tuple[Dataset, Located]]:
    """The table that a request names, open; errors name the table."""
    requests.refuse_branch(getattr(request, "branch", None))
    located = tables.locate(catalog, request.id)
    dataset = tables.open_table(catalog, namespace, located, version)
    try:
        with storage_errors(f"{action} table {shown(located.path)}", catalog.root):
            yield dataset, located
    except ConflictError as error:
        raise ConcurrentModificationError(str(error)) from None
    except MissingError as error:
        raise InvalidInputError(str(error)) from None


@contextmanager
def changing(
    catalog: Catalog, namespace: LanceNamespace, request: TableRequest, action: str, version: int | str | None = None
) -> Iterator[tuple[Dataset, Located]]:
    """The same for an operation that changes the table, which a leaf of a partitioned table does not take."""
    with opened(catalog, namespace, request, action, version) as (dataset, located):
        tables.refuse_published(located, _INSTEAD.get(action, "maintenance"), weak=action not in _OF_ROWS)
        yield dataset, located


def require_columns(dataset: Dataset, located: Located, columns: list[str]) -> None:
    """Refuse columns that the table does not have."""
    for column in columns:
        if field_at(dataset.schema, column) is None:
            raise TableColumnNotFoundError(f"table {shown(located.path)} has no column {column!r}")


def field_at(schema: pa.Schema, column: str) -> pa.Field | None:
    """The field that a column's name, or its path through nested ones, leads to; ``None`` if there is none."""
    if column in schema.names:
        return schema.field(column)
    fields, found = {field.name: field for field in schema}, None
    for quoted, plain in _PATH.findall(column):
        found = fields.get(quoted or plain)
        if found is None:
            return None
        inner = [found.type.field(at) for at in range(found.type.num_fields)]
        fields = {field.name: field for field in inner}
    return found


def count(catalog: Catalog, namespace: LanceNamespace, request: CountTableRowsRequest) -> CountTableRowsResponse:
    """How many rows there are, or how many match."""
    with opened(catalog, namespace, request, "count rows of", request.version) as (dataset, _):
        return CountTableRowsResponse(count=dataset.count_rows(filter=request.predicate))


def insert(
    catalog: Catalog, namespace: LanceNamespace, request: InsertIntoTableRequest, body: bytes
) -> InsertIntoTableResponse:
    """Append rows, or replace all rows, in one commit."""
    mode = requests.mode(request.mode, ["append", "overwrite"], what="InsertIntoTable mode")
    data = read_ipc(body).read_all()
    with changing(catalog, namespace, request, "insert into") as (dataset, _):
        dataset.insert(data, mode=mode)
        return InsertIntoTableResponse(num_inserted_rows=data.num_rows, version=dataset.version)


def merge_insert(
    catalog: Catalog, namespace: LanceNamespace, request: MergeInsertIntoTableRequest, body: bytes
) -> MergeInsertIntoTableResponse:
    """Update the rows that match on some columns, insert the others, as requested."""
    if not request.on:
        raise InvalidInputError("MergeInsertIntoTable needs the columns to match on")
    data = read_ipc(body).read_all()
    with changing(catalog, namespace, request, "merge into") as (dataset, located):
        require_columns(dataset, located, list(request.on))
        builder = dataset.merge_insert(list(request.on))
        if request.when_matched_update_all or request.when_matched_update_all_filt:
            builder = builder.when_matched_update_all(request.when_matched_update_all_filt)
        if request.when_not_matched_insert_all:
            builder = builder.when_not_matched_insert_all()
        if request.when_not_matched_by_source_delete or request.when_not_matched_by_source_delete_filt:
            builder = builder.when_not_matched_by_source_delete(request.when_not_matched_by_source_delete_filt)
        if request.timeout:
            builder = builder.retry_timeout(_timeout(request.timeout))
        if request.use_index is not None:
            builder = builder.use_index(request.use_index)
        done = builder.execute(data)
        return MergeInsertIntoTableResponse(
            num_updated_rows=done["num_updated_rows"],
            num_inserted_rows=done["num_inserted_rows"],
            num_deleted_rows=done["num_deleted_rows"],
            version=dataset.version,
        )


def update(catalog: Catalog, namespace: LanceNamespace, request: UpdateTableRequest) -> UpdateTableResponse:
    """Set columns to expressions, in the rows that match."""
    if request.properties:
        raise UnsupportedOperationError(
            "UpdateTable changes rows only: table properties are set when a table is created"
        )
    updates: dict[str, str] = {}
    for column, expression in request.updates or ():
        if column in updates:
            raise InvalidInputError(f"column {column!r} is set twice")
        updates[column] = expression
    if not updates:
        raise InvalidInputError("UpdateTable needs at least one column to set")
    with changing(catalog, namespace, request, "update") as (dataset, located):
        require_columns(dataset, located, list(updates))
        done = dataset.update(updates, where=request.predicate)
        return UpdateTableResponse(updated_rows=done["num_rows_updated"], version=dataset.version)


def delete(catalog: Catalog, namespace: LanceNamespace, request: DeleteFromTableRequest) -> DeleteFromTableResponse:
    """Delete the rows that match."""
    if not request.predicate.strip():
        raise InvalidInputError("DeleteFromTable needs a predicate; 'true' deletes all rows")
    with changing(catalog, namespace, request, "delete from") as (dataset, _):
        dataset.delete(request.predicate)
        return DeleteFromTableResponse(version=dataset.version)


def restore(catalog: Catalog, namespace: LanceNamespace, request: RestoreTableRequest) -> RestoreTableResponse:
    """Make an older version the latest one again, as a new version."""
    with changing(catalog, namespace, request, "restore", request.version) as (dataset, _):
        dataset.restore()  # type: ignore[no-untyped-call]
        return RestoreTableResponse()


def _timeout(text: str) -> timedelta:
    match = _TIMEOUT.match(text)
    if not match:
        raise InvalidInputError(f"timeout {text!r} is not understood: write for example 30s or 5m")
    return timedelta(seconds=float(match.group(1)) * _SECONDS[match.group(2)])
