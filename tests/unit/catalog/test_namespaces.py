"""Namespaces of a catalog."""

from __future__ import annotations

import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    DescribeNamespaceRequest,
    DropNamespaceRequest,
    ListNamespacesRequest,
    NamespaceExistsRequest,
)

from lancepart.catalog import namespaces
from lancepart.errors import NamespaceAlreadyExistsError, NamespaceNotEmptyError, NamespaceNotFoundError
from tests.conformance.catalog.client import Client


def test_a_namespace_is_made_inside_another_and_keeps_its_properties(client: Client) -> None:
    request = CreateNamespaceRequest(id=["ns", "inner"], properties={"owner": "ada"})
    namespaces.create(client.inside, request)

    assert namespaces.list_children(client.inside, ListNamespacesRequest(id=["ns"])).namespaces == ["inner"]
    found = namespaces.describe(client.inside, DescribeNamespaceRequest(id=["ns", "inner"]))
    assert found.properties == {"owner": "ada"}
    with pytest.raises(NamespaceAlreadyExistsError):
        namespaces.create(client.inside, request)


def test_one_that_is_missing_is_refused(client: Client) -> None:
    with pytest.raises(NamespaceNotFoundError):
        namespaces.exists(client.inside, NamespaceExistsRequest(id=["none"]))
    with pytest.raises(NamespaceNotFoundError):
        namespaces.create(client.inside, CreateNamespaceRequest(id=["none", "inner"]))


def test_one_that_is_not_empty_stays(client: Client) -> None:
    client.create("ns", "t")
    with pytest.raises(NamespaceNotEmptyError):
        namespaces.drop(client.inside, DropNamespaceRequest(id=["ns"]))

    namespaces.drop(client.inside, DropNamespaceRequest(id=["ns"], behavior="Cascade"))
    assert client.namespaces() == []


def test_properties_of_the_root_are_set_and_taken_away(client: Client) -> None:
    assert namespaces.set_root_properties(client.inside, {"owner": "ada"})["owner"] == "ada"
    assert "owner" not in namespaces.set_root_properties(client.inside, {"owner": None})
