"""001, «ListNamespaces»."""

import pytest

from lancepart.errors import InvalidInputError, NamespaceNotFoundError
from tests.conformance.catalog.client import Client, refused


@pytest.fixture
def nested(with_manifest: Client) -> Client:
    for path in ["prod"], ["test"], ["prod2"], ["prod", "b"], ["prod", "a"], ["prod", "a", "deep"]:
        with_manifest.create_namespace(*path)
    with_manifest.create("prod", "table")
    return with_manifest


def test_list_namespaces_in_v1_is_an_empty_list(v1: Client) -> None:
    v1.create("users")

    assert v1.namespaces() == []
    assert v1.namespaces("anything") == []


def test_list_namespaces_step_1_only_rows_of_type_namespace(nested: Client) -> None:
    assert "table" not in nested.namespaces("prod")


def test_list_namespaces_step_2_only_ids_with_the_parents_prefix(nested: Client) -> None:
    nested.create_namespace("prod2", "c")

    assert nested.namespaces("prod") == ["a", "b"]
    assert nested.namespaces("prod2") == ["c"]


def test_list_namespaces_step_3_exactly_one_level_more_than_the_parent(nested: Client) -> None:
    assert nested.namespaces() == ["prod", "prod2", "test"]
    assert nested.namespaces("prod") == ["a", "b"]


def test_list_namespaces_step_4_the_last_component_of_each_id(nested: Client) -> None:
    assert nested.namespaces("prod", "a") == ["deep"]


def test_list_namespaces_on_either_storage(anywhere: Client) -> None:
    anywhere.create_namespace("prod")
    anywhere.create_namespace("prod", "a")

    assert anywhere.namespaces() == ["prod"]
    assert anywhere.namespaces("prod") == ["a"]


def test_list_namespaces_error_1_if_the_parent_does_not_exist(with_manifest: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        with_manifest.list_namespaces("prod")


def test_list_namespaces_pages_by_token_and_limit(client: Client) -> None:
    names = ["a", "b b", "c", "é", "😀"]
    for name in reversed(names):
        client.create_namespace(name)

    seen, token = [], None
    while True:
        page = client.list_namespaces(page_token=token, limit=2)
        assert len(page.namespaces) <= 2
        seen += page.namespaces
        token = page.page_token
        if token is None:
            break

    assert seen == names


def test_list_namespaces_pages_of_a_child_and_a_token_past_the_end(client: Client) -> None:
    client.create_namespace("p")
    for name in ("x", "y"):
        client.create_namespace("p", name)

    assert client.list_namespaces("p", page_token="x").namespaces == ["y"]
    assert client.list_namespaces("p", page_token="z").namespaces == []
    assert client.list_namespaces("p", limit=2).page_token is None


@pytest.mark.parametrize("limit", [0, -1])
def test_list_namespaces_a_limit_is_positive(client: Client, limit: int) -> None:
    with refused(InvalidInputError, 13):
        client.list_namespaces(limit=limit)
