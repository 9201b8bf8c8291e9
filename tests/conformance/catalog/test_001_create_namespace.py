"""001, «CreateNamespace», and the modes of the operation."""

import json
from datetime import UTC, datetime

import pytest

from lancepart.errors import (
    InvalidInputError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    UnsupportedOperationError,
)
from tests.conformance.catalog.client import Client, interrupted_by, refused, watched


def test_create_namespace_is_only_supported_in_v2(v1: Client) -> None:
    with refused(UnsupportedOperationError, 0):
        v1.create_namespace("prod")

    assert v1.storage.files() == set()


def test_create_namespace_step_1_the_parent_must_exist(with_manifest: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        with_manifest.create_namespace("prod", "analytics")

    assert with_manifest.namespaces() == []


def test_create_namespace_step_1_a_table_is_no_parent(with_manifest: Client) -> None:
    with_manifest.create("prod")

    with refused(NamespaceNotFoundError, 1):
        with_manifest.create_namespace("prod", "analytics")


def test_create_namespace_step_2_merges_a_row_with_all_its_columns(anywhere: Client) -> None:
    before = datetime.now(UTC)
    anywhere.create_namespace("prod")
    answer = anywhere.create_namespace("prod", "analytics", properties={"owner": "data"})
    row = anywhere.manifest_rows()["prod$analytics"]

    assert row["object_type"] == "namespace"
    assert json.loads(row["metadata"]) == {"owner": "data"}
    assert before <= row["created_at"] <= datetime.now(UTC)
    assert row["location"] is None
    assert answer.properties == {"owner": "data"}


def test_create_namespace_step_2_is_one_commit(client: Client) -> None:
    client.create_namespace("prod")

    with watched(client) as seen:
        client.create_namespace("prod", "analytics")

    assert [kind for kind, _ in seen] == ["commit"]


def test_create_namespace_step_2_the_key_is_not_inserted_twice(anywhere: Client) -> None:
    anywhere.create_namespace("prod")
    with refused(NamespaceAlreadyExistsError, 2):
        anywhere.create_namespace("prod")

    assert anywhere.manifest().to_table()["object_id"].to_pylist() == ["prod"]


def test_create_namespace_step_2_one_of_two_writers_at_once_fails(with_manifest: Client) -> None:
    with_manifest.create_namespace("other")
    rival = Client(with_manifest.place)

    meanwhile = interrupted_by(with_manifest, lambda: rival.create_namespace("prod", properties={"by": "rival"}))
    with meanwhile, refused(NamespaceAlreadyExistsError, 2):
        with_manifest.create_namespace("prod", properties={"by": "me"})

    assert with_manifest.describe_namespace("prod").properties == {"by": "rival"}
    assert sorted(with_manifest.manifest().to_table()["object_id"].to_pylist()) == ["other", "prod"]


def test_create_namespace_error_2_if_it_exists(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod", properties={"owner": "data"})

    with refused(NamespaceAlreadyExistsError, 2):
        with_manifest.create_namespace("prod", properties={"owner": "other"})

    assert with_manifest.describe_namespace("prod").properties == {"owner": "data"}


def test_create_namespace_error_2_if_a_table_has_the_name(with_manifest: Client) -> None:
    with_manifest.create("prod")

    for mode in ("create", "exist_ok", "overwrite"):
        with refused(NamespaceAlreadyExistsError, 2):
            with_manifest.create_namespace("prod", mode=mode)

    assert with_manifest.count_table_rows("prod").count == 2


def test_create_namespace_error_2_for_the_root(with_manifest: Client) -> None:
    with refused(NamespaceAlreadyExistsError, 2):
        with_manifest.create_namespace()


def test_create_namespace_error_1_if_the_parent_does_not_exist(with_manifest: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        with_manifest.create_namespace("no", "such", "parent", mode="exist_ok")


def test_create_namespace_error_13_if_the_id_is_invalid(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")

    for part in ["", " ", "a$b", "a/b", "a\\b", ".", "..", "a\nb", "a\x00b", "\ud800"]:
        for path in ([part], ["prod", part]):
            with refused(InvalidInputError, 13):
                with_manifest.create_namespace(id=path)

    assert set(with_manifest.manifest_rows()) == {"prod"}


@pytest.mark.parametrize("mode", [None, "create", "Create", "CREATE"])
def test_create_namespace_mode_create_is_the_default(client: Client, mode: str | None) -> None:
    client.create_namespace("prod", mode=mode)

    with refused(NamespaceAlreadyExistsError, 2):
        client.create_namespace("prod", mode=mode)


@pytest.mark.parametrize("mode", ["exist_ok", "ExistOk", "EXIST_OK", "existok"])
def test_create_namespace_mode_exist_ok_keeps_what_is_there(client: Client, mode: str) -> None:
    client.create_namespace("prod", mode=mode, properties={"owner": "data"})
    answer = client.create_namespace("prod", mode=mode, properties={"owner": "other"})

    assert answer.properties == {"owner": "data"}
    assert client.describe_namespace("prod").properties == {"owner": "data"}


@pytest.mark.parametrize("mode", ["overwrite", "Overwrite", "OVERWRITE"])
def test_create_namespace_mode_overwrite_replaces_the_namespace_and_all_in_it(client: Client, mode: str) -> None:
    client.create_namespace("prod", properties={"owner": "data"})
    client.create_namespace("prod", "analytics")
    client.create("prod", "analytics", "users")

    client.create_namespace("prod", mode=mode, properties={"owner": "other"})

    assert client.describe_namespace("prod").properties == {"owner": "other"}
    assert set(client.manifest_rows()) == {"prod"}
    assert {path.split("/")[0] for path in client.storage.files()} == {"__manifest"}


def test_create_namespace_an_unknown_mode_is_refused(client: Client) -> None:
    with refused(InvalidInputError, 13):
        client.create_namespace("prod", mode="replace")


def test_create_namespace_the_root_exists_already_in_exist_ok_and_is_not_overwritten(client: Client) -> None:
    client.namespace.set_root_properties({"owner": "data"})

    assert client.create_namespace(mode="exist_ok").properties == {"owner": "data"}
    with refused(InvalidInputError, 13):
        client.create_namespace(mode="overwrite")
