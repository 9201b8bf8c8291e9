"""001, «DescribeNamespace», and NamespaceExists beside it."""

import json

import pytest

from lancepart.errors import InvalidTableStateError, NamespaceNotFoundError, UnsupportedOperationError
from tests.conformance.catalog.client import Client, refused


def test_describe_namespace_is_only_supported_in_v2(v1: Client) -> None:
    with refused(UnsupportedOperationError, 0):
        v1.describe_namespace()


def test_describe_namespace_step_1_finds_the_row_with_the_id(anywhere: Client) -> None:
    anywhere.create_namespace("prod", properties={"level": "1"})
    anywhere.create_namespace("prod", "prod", properties={"level": "2"})

    assert anywhere.describe_namespace("prod").properties == {"level": "1"}
    assert anywhere.describe_namespace("prod", "prod").properties == {"level": "2"}


def test_describe_namespace_step_2_parses_the_metadata_column_as_json(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")
    stored = json.dumps({"owner": "data", "tags": ["a"], "size": 3}).replace("'", "''")
    with_manifest.manifest().update({"metadata": f"'{stored}'"}, where="object_id = 'prod'")

    properties = with_manifest.describe_namespace("prod").properties

    assert properties == {"owner": "data", "tags": '["a"]', "size": "3"}


def test_describe_namespace_step_2_metadata_that_is_no_json_object_is_an_error(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")
    with_manifest.manifest().update({"metadata": "'not json'"}, where="object_id = 'prod'")

    with refused(InvalidTableStateError, 19):
        with_manifest.describe_namespace("prod")


def test_describe_namespace_step_3_returns_the_properties_and_none_as_empty(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")

    assert with_manifest.describe_namespace("prod").properties == {}


def test_describe_namespace_of_the_root_returns_the_root_properties(anywhere: Client) -> None:
    assert anywhere.describe_namespace().properties == {}
    anywhere.namespace.set_root_properties({"owner": "data"})

    assert anywhere.describe_namespace().properties == {"owner": "data"}


def test_describe_namespace_error_1_if_it_does_not_exist(with_manifest: Client) -> None:
    with_manifest.create("table")

    for path in (["prod"], ["prod", "a"], ["table"]):
        with refused(NamespaceNotFoundError, 1):
            with_manifest.describe_namespace(*path)


def test_namespace_exists_answers_for_the_root_and_for_namespaces(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")

    assert with_manifest.namespace_exists() is not None
    assert with_manifest.namespace_exists("prod") is not None


@pytest.mark.parametrize("path", [["prod"], ["table"], ["prod", "a"]])
def test_namespace_exists_error_1_if_it_does_not_exist(any_mode: Client, path: list[str]) -> None:
    any_mode.create("table")

    with refused(NamespaceNotFoundError, 1):
        any_mode.namespace_exists(*path)
