"""Tags: names for versions of one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_namespace import (
    CreateTableTagRequest,
    CreateTableTagResponse,
    DeleteTableTagRequest,
    DeleteTableTagResponse,
    GetTableTagVersionRequest,
    GetTableTagVersionResponse,
    ListTableTagsRequest,
    ListTableTagsResponse,
    UpdateTableTagRequest,
    UpdateTableTagResponse,
)
from lance_namespace_urllib3_client.models import TagContents

from lancepart.catalog import requests
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.data import changing, opened
from lancepart.catalog.tables import Located
from lancepart.errors import TableTagAlreadyExistsError, TableTagNotFoundError, TableVersionNotFoundError
from lancepart.model.aliases import JsonMapping
from lancepart.storage.dataset import Dataset

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace


def list_all(catalog: Catalog, namespace: LanceNamespace, request: ListTableTagsRequest) -> ListTableTagsResponse:
    """The tags of a table."""
    with opened(catalog, namespace, request, "list tags of") as (dataset, _):
        found = dataset.tags.list()
        names, token = requests.page(sorted(found), request.page_token, request.limit)
        tags = {name: _tag(found[name]) for name in names}
        return ListTableTagsResponse(tags=tags, page_token=token)


def _tag(entry: JsonMapping) -> TagContents:
    return TagContents(version=entry["version"], manifestSize=entry["manifest_size"], branch=entry.get("branch"))


def version(
    catalog: Catalog, namespace: LanceNamespace, request: GetTableTagVersionRequest
) -> GetTableTagVersionResponse:
    """The version that a tag refers to."""
    with opened(catalog, namespace, request, "read a tag of") as (dataset, located):
        found = dataset.tags.list().get(request.tag)
        if found is None:
            raise TableTagNotFoundError(f"table {shown(located.path)} has no tag {request.tag!r}")
        return GetTableTagVersionResponse(version=found["version"])


def create(catalog: Catalog, namespace: LanceNamespace, request: CreateTableTagRequest) -> CreateTableTagResponse:
    """Name a version."""
    with changing(catalog, namespace, request, "tag") as (dataset, located):
        if request.tag in dataset.tags.list():
            raise TableTagAlreadyExistsError(f"table {shown(located.path)} already has a tag {request.tag!r}")
        _require_version(dataset, located, request.version)
        dataset.tags.create(request.tag, request.version)
        return CreateTableTagResponse()


def update(catalog: Catalog, namespace: LanceNamespace, request: UpdateTableTagRequest) -> UpdateTableTagResponse:
    """Move a tag to another version."""
    with changing(catalog, namespace, request, "move a tag of") as (dataset, located):
        if request.tag not in dataset.tags.list():
            raise TableTagNotFoundError(f"table {shown(located.path)} has no tag {request.tag!r}")
        _require_version(dataset, located, request.version)
        dataset.tags.update(request.tag, request.version)
        return UpdateTableTagResponse()


def delete(catalog: Catalog, namespace: LanceNamespace, request: DeleteTableTagRequest) -> DeleteTableTagResponse:
    """Remove a tag; the version stays."""
    with changing(catalog, namespace, request, "delete a tag of") as (dataset, located):
        if request.tag not in dataset.tags.list():
            raise TableTagNotFoundError(f"table {shown(located.path)} has no tag {request.tag!r}")
        dataset.tags.delete(request.tag)
        return DeleteTableTagResponse()


def _require_version(dataset: Dataset, located: Located, version: int) -> None:
    if not any(entry["version"] == version for entry in dataset.versions()):
        raise TableVersionNotFoundError(f"table {shown(located.path)} has no version {version}")
