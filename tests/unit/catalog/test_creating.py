"""Tables that are created from rows."""

from __future__ import annotations

import pytest
from lance_namespace import CreateTableRequest, DeclareTableRequest

from lancepart.catalog import creating, declaring
from lancepart.errors import NamespaceNotFoundError, TableAlreadyExistsError
from tests.conformance.catalog.client import Client
from tests.support.catalogs import ipc, rows


def create(client: Client, *path: str, mode: str | None = None) -> None:
    request = CreateTableRequest(id=list(path), mode=mode)
    creating.create(client.inside, client.namespace, request, ipc(rows(7)))


def test_a_table_is_created_once_unless_the_mode_says_otherwise(client: Client) -> None:
    with pytest.raises(TableAlreadyExistsError):
        create(client, "t")
    create(client, "t", mode="exist_ok")
    assert client.count_table_rows("t").count == 2

    create(client, "t", mode="overwrite")
    assert client.count_table_rows("t").count == 1


def test_a_table_needs_its_namespace(client: Client) -> None:
    with pytest.raises(NamespaceNotFoundError):
        create(client, "none", "t")


def test_a_declared_table_gets_its_rows_later(client: Client) -> None:
    declaring.declare(client.inside, DeclareTableRequest(id=["ns", "later"]))
    assert client.tables("ns") == ["later"]

    create(client, "ns", "later")
    assert client.count_table_rows("ns", "later").count == 1
