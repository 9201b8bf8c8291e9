"""001, «DropNamespace», and its modes and behaviours."""

import pytest

from lancepart.errors import (
    InvalidInputError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    UnsupportedOperationError,
)
from tests.conformance.catalog.client import Client, interrupted_by, refused, watched


def test_drop_namespace_is_only_supported_in_v2(v1: Client) -> None:
    with refused(UnsupportedOperationError, 0):
        v1.drop_namespace("prod")


def test_drop_namespace_step_1_it_must_exist(with_manifest: Client) -> None:
    with_manifest.create("table")

    with refused(NamespaceNotFoundError, 1):
        with_manifest.drop_namespace("table")


@pytest.mark.parametrize("child", ["namespace", "table", "declared table"])
def test_drop_namespace_step_2_and_3_it_fails_if_there_are_children(with_manifest: Client, child: str) -> None:
    with_manifest.create_namespace("prod")
    make = {"namespace": "create_namespace", "table": "create", "declared table": "declare_table"}[child]
    getattr(with_manifest, make)("prod", "child")

    with refused(NamespaceNotEmptyError, 3):
        with_manifest.drop_namespace("prod")

    assert set(with_manifest.manifest_rows()) == {"prod", "prod$child"}


def test_drop_namespace_step_2_a_namespace_with_a_longer_name_is_no_child(with_manifest: Client) -> None:
    for name in ("prod", "prod2", "prod%", "prod#"):
        with_manifest.create_namespace(name)

    with_manifest.drop_namespace("prod")

    assert with_manifest.namespaces() == ["prod#", "prod%", "prod2"]


def test_drop_namespace_step_3_a_child_that_comes_at_the_same_moment_is_noticed(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")
    rival = Client(with_manifest.place)

    meanwhile = interrupted_by(with_manifest, lambda: rival.create_namespace("prod", "child"))
    with meanwhile, refused(NamespaceNotEmptyError, 3):
        with_manifest.drop_namespace("prod")

    assert set(with_manifest.manifest_rows()) == {"prod", "prod$child"}


def test_drop_namespace_step_4_deletes_the_row(anywhere: Client) -> None:
    anywhere.create_namespace("prod", properties={"owner": "data"})
    anywhere.create_namespace("test")

    with watched(anywhere) as seen:
        answer = anywhere.drop_namespace("prod")

    assert [(kind, change.deletes) for kind, change in seen] == [("commit", ("prod",))]
    assert set(anywhere.manifest_rows()) == {"test"}
    assert answer.properties == {"owner": "data"}


def test_drop_namespace_error_1_if_it_does_not_exist(with_manifest: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        with_manifest.drop_namespace("prod")


@pytest.mark.parametrize("behavior", [None, "restrict", "Restrict", "RESTRICT"])
def test_drop_namespace_error_3_if_it_is_not_empty(client: Client, behavior: str | None) -> None:
    client.create_namespace("prod")
    client.create("prod", "users")

    with refused(NamespaceNotEmptyError, 3):
        client.drop_namespace("prod", behavior=behavior)

    assert client.count_table_rows("prod", "users").count == 2


@pytest.mark.parametrize("behavior", ["cascade", "Cascade", "CASCADE"])
def test_drop_namespace_cascade_takes_all_that_is_in_it_and_nothing_else(client: Client, behavior: str) -> None:
    for path in ["prod"], ["prod", "a"], ["prod2"]:
        client.create_namespace(*path)
        client.create(*path, "users")

    client.drop_namespace("prod", behavior=behavior)

    kept = client.location("prod2", "users")
    assert set(client.manifest_rows()) == {"prod2", "prod2$users"}
    assert {path.split("/")[0] for path in client.storage.files()} == {"__manifest", kept}


def test_drop_namespace_cascade_takes_versions_with_their_tables(managed: Client) -> None:
    managed.create_namespace("prod")
    managed.create("prod", "users")

    managed.drop_namespace("prod", behavior="cascade")

    assert managed.manifest_rows() == {}


@pytest.mark.parametrize("mode", ["skip", "Skip", "SKIP"])
def test_drop_namespace_mode_skip_passes_over_a_missing_one(client: Client, mode: str) -> None:
    assert client.drop_namespace("prod", mode=mode).properties is None


@pytest.mark.parametrize("mode", [None, "fail", "Fail"])
def test_drop_namespace_mode_fail_is_the_default(client: Client, mode: str | None) -> None:
    with refused(NamespaceNotFoundError, 1):
        client.drop_namespace("prod", mode=mode)


@pytest.mark.parametrize("fields", [{"mode": "force"}, {"behavior": "purge"}])
def test_drop_namespace_unknown_modes_are_refused(client: Client, fields: dict[str, str]) -> None:
    client.create_namespace("prod")

    with refused(InvalidInputError, 13):
        client.drop_namespace("prod", **fields)

    assert client.namespaces() == ["prod"]


def test_drop_namespace_the_root_stays(client: Client) -> None:
    with refused(InvalidInputError, 13):
        client.drop_namespace(behavior="cascade")
