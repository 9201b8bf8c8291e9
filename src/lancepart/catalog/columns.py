"""Changes of one table's schema, its metadata and its tags."""

from __future__ import annotations

from typing import Any

from lance_namespace import (
    AlterTableAddColumnsRequest,
    AlterTableAddColumnsResponse,
    AlterTableAlterColumnsRequest,
    AlterTableAlterColumnsResponse,
    AlterTableDropColumnsRequest,
    AlterTableDropColumnsResponse,
    CreateTableTagRequest,
    CreateTableTagResponse,
    DeleteTableTagRequest,
    DeleteTableTagResponse,
    GetTableTagVersionRequest,
    GetTableTagVersionResponse,
    ListTableTagsRequest,
    ListTableTagsResponse,
    UpdateFieldMetadataRequest,
    UpdateFieldMetadataResponse,
    UpdateTableSchemaMetadataRequest,
    UpdateTableSchemaMetadataResponse,
    UpdateTableTagRequest,
    UpdateTableTagResponse,
)
from lance_namespace_urllib3_client.models import JsonArrowDataType, TagContents

from lancepart.catalog import requests
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.data import changing, field_at, opened, require_columns
from lancepart.errors import (
    InvalidInputError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)
from lancepart.model.schema import type_from_json


def add(catalog: Catalog, namespace: Any, request: AlterTableAddColumnsRequest) -> AlterTableAddColumnsResponse:
    """Add columns, each computed by an SQL expression over the rows there are."""
    expressions: dict[str, str] = {}
    for entry in request.new_columns:
        if entry.expression is None or entry.virtual_column is not None or entry.computed is not None:
            raise UnsupportedOperationError(f"column {entry.name!r}: only columns with an SQL expression can be added")
        expressions[entry.name] = entry.expression
    with changing(catalog, namespace, request, "add columns to") as (dataset, located):
        taken = [name for name in expressions if name in dataset.schema.names]
        if taken:
            raise InvalidInputError(f"table {shown(located.path)} already has a column {taken[0]!r}")
        dataset.add_columns(expressions)
        return AlterTableAddColumnsResponse(version=dataset.version)


def alter(catalog: Catalog, namespace: Any, request: AlterTableAlterColumnsRequest) -> AlterTableAlterColumnsResponse:
    """Rename columns, change their types or whether they may be null."""
    changes: list[dict[str, Any]] = []
    for entry in request.alterations:
        if entry.virtual_column is not None:
            raise UnsupportedOperationError(f"column {entry.path!r}: virtual columns are not supported")
        change: dict[str, Any] = {"path": entry.path}
        if entry.rename is not None:
            change["name"] = entry.rename
        if entry.nullable is not None:
            change["nullable"] = entry.nullable
        if entry.data_type is not None:
            change["data_type"] = type_from_json(JsonArrowDataType.model_validate(entry.data_type))
        changes.append(change)
    with changing(catalog, namespace, request, "alter columns of") as (dataset, located):
        require_columns(dataset, located, [change["path"] for change in changes])
        dataset.alter_columns(*changes)
        return AlterTableAlterColumnsResponse(version=dataset.version)


def drop(catalog: Catalog, namespace: Any, request: AlterTableDropColumnsRequest) -> AlterTableDropColumnsResponse:
    """Remove columns."""
    with changing(catalog, namespace, request, "drop columns of") as (dataset, located):
        require_columns(dataset, located, list(request.columns))
        dataset.drop_columns(list(request.columns))
        return AlterTableDropColumnsResponse(version=dataset.version)


def update_schema_metadata(
    catalog: Catalog, namespace: Any, request: UpdateTableSchemaMetadataRequest
) -> UpdateTableSchemaMetadataResponse:
    """Set entries of the schema's metadata."""
    with changing(catalog, namespace, request, "set schema metadata of") as (dataset, _):
        return UpdateTableSchemaMetadataResponse(metadata=dataset.update_schema_metadata(dict(request.metadata or {})))


def update_field_metadata(
    catalog: Catalog, namespace: Any, request: UpdateFieldMetadataRequest
) -> UpdateFieldMetadataResponse:
    """Set entries of fields' metadata; a value of ``None`` removes one."""
    with changing(catalog, namespace, request, "set field metadata of") as (dataset, located):
        require_columns(dataset, located, [update.path for update in request.updates])
        fields: dict[str, dict[str, str]] = {}
        for update in request.updates:
            dataset.update_field_metadata({update.path: dict(update.metadata)}, replace=bool(update.replace))
        for update in request.updates:
            kept = field_at(dataset.schema, update.path).metadata or {}
            fields[update.path] = {key.decode(): value.decode() for key, value in kept.items()}
        return UpdateFieldMetadataResponse(version=dataset.version, fields=fields)


def list_tags(catalog: Catalog, namespace: Any, request: ListTableTagsRequest) -> ListTableTagsResponse:
    """The tags of a table."""
    with opened(catalog, namespace, request, "list tags of") as (dataset, _):
        found = dataset.tags.list()
        names, token = requests.page(sorted(found), request.page_token, request.limit)
        tags = {name: _tag(found[name]) for name in names}
        return ListTableTagsResponse(tags=tags, page_token=token)


def _tag(entry: Any) -> TagContents:
    return TagContents(version=entry["version"], manifest_size=entry["manifest_size"], branch=entry.get("branch"))


def tag_version(catalog: Catalog, namespace: Any, request: GetTableTagVersionRequest) -> GetTableTagVersionResponse:
    """The version that a tag stands for."""
    with opened(catalog, namespace, request, "read a tag of") as (dataset, located):
        found = dataset.tags.list().get(request.tag)
        if found is None:
            raise TableTagNotFoundError(f"table {shown(located.path)} has no tag {request.tag!r}")
        return GetTableTagVersionResponse(version=found["version"])


def create_tag(catalog: Catalog, namespace: Any, request: CreateTableTagRequest) -> CreateTableTagResponse:
    """Name a version."""
    with changing(catalog, namespace, request, "tag") as (dataset, located):
        if request.tag in dataset.tags.list():
            raise TableTagAlreadyExistsError(f"table {shown(located.path)} already has a tag {request.tag!r}")
        _require_version(dataset, located, request.version)
        dataset.tags.create(request.tag, request.version)
        return CreateTableTagResponse()


def update_tag(catalog: Catalog, namespace: Any, request: UpdateTableTagRequest) -> UpdateTableTagResponse:
    """Let a tag stand for another version."""
    with changing(catalog, namespace, request, "move a tag of") as (dataset, located):
        if request.tag not in dataset.tags.list():
            raise TableTagNotFoundError(f"table {shown(located.path)} has no tag {request.tag!r}")
        _require_version(dataset, located, request.version)
        dataset.tags.update(request.tag, request.version)
        return UpdateTableTagResponse()


def delete_tag(catalog: Catalog, namespace: Any, request: DeleteTableTagRequest) -> DeleteTableTagResponse:
    """Remove a tag; the version stays."""
    with changing(catalog, namespace, request, "delete a tag of") as (dataset, located):
        if request.tag not in dataset.tags.list():
            raise TableTagNotFoundError(f"table {shown(located.path)} has no tag {request.tag!r}")
        dataset.tags.delete(request.tag)
        return DeleteTableTagResponse()


def _require_version(dataset: Any, located: Any, version: int) -> None:
    if not any(entry["version"] == version for entry in dataset.versions()):
        raise TableVersionNotFoundError(f"table {shown(located.path)} has no version {version}")
