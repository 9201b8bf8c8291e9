"""Changes of one table's schema and its metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_namespace import (
    AlterTableAddColumnsRequest,
    AlterTableAddColumnsResponse,
    AlterTableAlterColumnsRequest,
    AlterTableAlterColumnsResponse,
    AlterTableDropColumnsRequest,
    AlterTableDropColumnsResponse,
    UpdateFieldMetadataRequest,
    UpdateFieldMetadataResponse,
    UpdateTableSchemaMetadataRequest,
    UpdateTableSchemaMetadataResponse,
)
from lance_namespace_urllib3_client.models import JsonArrowDataType

from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.data import changing, field_at, require_columns
from lancepart.errors import (
    InvalidInputError,
    UnsupportedOperationError,
)
from lancepart.model.aliases import JsonObject
from lancepart.model.schema import type_from_json

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace


def add(
    catalog: Catalog, namespace: LanceNamespace, request: AlterTableAddColumnsRequest
) -> AlterTableAddColumnsResponse:
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


def alter(
    catalog: Catalog, namespace: LanceNamespace, request: AlterTableAlterColumnsRequest
) -> AlterTableAlterColumnsResponse:
    """Rename columns, change their types or whether they may be null."""
    changes: list[JsonObject] = []
    for entry in request.alterations:
        if entry.virtual_column is not None:
            raise UnsupportedOperationError(f"column {entry.path!r}: virtual columns are not supported")
        change: JsonObject = {"path": entry.path}
        if entry.rename is not None:
            change["name"] = entry.rename
        if entry.nullable is not None:
            change["nullable"] = entry.nullable
        if entry.data_type is not None:
            change["data_type"] = type_from_json(JsonArrowDataType.model_validate(entry.data_type))
        changes.append(change)
    with changing(catalog, namespace, request, "alter columns of") as (dataset, located):
        require_columns(dataset, located, [change["path"] for change in changes])
        dataset.alter_columns(*changes)  # type: ignore[arg-type]
        return AlterTableAlterColumnsResponse(version=dataset.version)


def drop(
    catalog: Catalog, namespace: LanceNamespace, request: AlterTableDropColumnsRequest
) -> AlterTableDropColumnsResponse:
    """Remove columns."""
    with changing(catalog, namespace, request, "drop columns of") as (dataset, located):
        require_columns(dataset, located, list(request.columns))
        dataset.drop_columns(list(request.columns))
        return AlterTableDropColumnsResponse(version=dataset.version)


def update_schema_metadata(
    catalog: Catalog, namespace: LanceNamespace, request: UpdateTableSchemaMetadataRequest
) -> UpdateTableSchemaMetadataResponse:
    """Set entries of the schema's metadata."""
    with changing(catalog, namespace, request, "set schema metadata of") as (dataset, _):
        return UpdateTableSchemaMetadataResponse(metadata=dataset.update_schema_metadata(dict(request.metadata or {})))


def update_field_metadata(
    catalog: Catalog, namespace: LanceNamespace, request: UpdateFieldMetadataRequest
) -> UpdateFieldMetadataResponse:
    """Set entries of fields' metadata; a value of ``None`` removes one."""
    with changing(catalog, namespace, request, "set field metadata of") as (dataset, located):
        require_columns(dataset, located, [update.path for update in request.updates])
        fields: dict[str, dict[str, str]] = {}
        for update in request.updates:
            dataset.update_field_metadata({update.path: dict(update.metadata)}, replace=bool(update.replace))
        for update in request.updates:
            field = field_at(dataset.schema, update.path)
            kept = {} if field is None else field.metadata or {}
            fields[update.path] = {key.decode(): value.decode() for key, value in kept.items()}
        return UpdateFieldMetadataResponse(version=dataset.version, fields=fields)
