"""Tables that are declared."""

from __future__ import annotations

import pytest
from lance_namespace import DeclareTableRequest

from lancepart.catalog import declaring
from lancepart.errors import NamespaceNotFoundError, TableAlreadyExistsError
from tests.conformance.catalog.client import Client


def test_a_declared_table_is_listed_and_keeps_its_name(client: Client) -> None:
    declaring.declare(client.inside, DeclareTableRequest(id=["ns", "later"]))

    assert client.tables("ns") == ["later"]
    with pytest.raises(TableAlreadyExistsError):
        declaring.declare(client.inside, DeclareTableRequest(id=["ns", "later"]))


def test_a_declaration_needs_its_namespace(client: Client) -> None:
    with pytest.raises(NamespaceNotFoundError):
        declaring.declare(client.inside, DeclareTableRequest(id=["none", "t"]))
