"""Names for versions of one table."""

from __future__ import annotations

import pytest
from lance_namespace import (
    CreateTableTagRequest,
    DeleteTableTagRequest,
    GetTableTagVersionRequest,
    ListTableTagsRequest,
    UpdateTableTagRequest,
)

from lancepart.catalog import tags
from lancepart.errors import TableTagAlreadyExistsError, TableTagNotFoundError
from tests.conformance.catalog.client import Client
from tests.support.catalogs import rows


def version(client: Client, name: str) -> int:
    request = GetTableTagVersionRequest(id=["t"], tag=name)
    return tags.version(client.inside, client.namespace, request).version


def test_a_tag_is_made_moved_and_taken_away(client: Client) -> None:
    both = client.inside, client.namespace
    client.insert_into_table("t", data=rows(3))
    tags.create(*both, CreateTableTagRequest(id=["t"], tag="x", version=1))
    assert version(client, "x") == 1
    with pytest.raises(TableTagAlreadyExistsError):
        tags.create(*both, CreateTableTagRequest(id=["t"], tag="x", version=2))

    tags.update(*both, UpdateTableTagRequest(id=["t"], tag="x", version=2))
    assert version(client, "x") == 2
    tags.delete(*both, DeleteTableTagRequest(id=["t"], tag="x"))
    assert tags.list_all(*both, ListTableTagsRequest(id=["t"])).tags == {}
    with pytest.raises(TableTagNotFoundError, match="x"):
        version(client, "x")
