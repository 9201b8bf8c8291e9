"""RenameTable: 004 says that a table of the root moves to a hashed directory, and that V2 makes renames possible."""

import re

import pytest

from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from tests.conformance.catalog.client import Client, interrupted_by, refused, watched, write_plainly
from tests.support.catalogs import rows


def test_rename_table_is_only_supported_in_v2(v1: Client) -> None:
    v1.create("users")

    with refused(UnsupportedOperationError, 0):
        v1.rename_table("users", new_table_name="people")


def test_rename_table_of_the_root_moves_to_a_hashed_directory(anywhere: Client) -> None:
    anywhere.create("users", properties={"owner": "data"})

    anywhere.rename_table("users", new_table_name="people")

    location = anywhere.location("people")
    assert re.fullmatch(r"[0-9a-f]{8}_people", location)
    assert {path.split("/")[0] for path in anywhere.storage.files()} == {"__manifest", location}
    assert anywhere.tables() == ["people"]
    assert anywhere.dataset("people").to_table() == rows(1, 2)
    assert anywhere.describe_table("people").properties == {"owner": "data"}


def test_rename_table_that_only_the_listing_knows(client: Client) -> None:
    write_plainly(client.place, "users.lance")

    client.rename_table("users", new_table_name="people")

    assert client.tables() == ["people"]
    assert client.location("people") != "people.lance"
    assert client.count_table_rows("people").count == 2


def test_rename_table_of_a_child_namespace_stays_where_it_is(anywhere: Client) -> None:
    anywhere.create_namespace("prod")
    anywhere.create("prod", "users")
    location = anywhere.location("prod", "users")

    with watched(anywhere) as seen:
        anywhere.rename_table("prod", "users", new_table_name="people")

    assert [kind for kind, _ in seen] == ["commit"]
    assert anywhere.location("prod", "people") == location
    assert anywhere.tables("prod") == ["people"]


@pytest.mark.parametrize(
    ("old", "new_namespace", "new"),
    [(["t"], ["b"], ["b", "t"]), (["a", "t"], ["b"], ["b", "t"]), (["a", "t"], [], ["t"])],
)
def test_rename_table_across_namespaces(
    with_manifest: Client, old: list[str], new_namespace: list[str], new: list[str]
) -> None:
    for name in ("a", "b"):
        with_manifest.create_namespace(name)
    with_manifest.create(*old)

    with_manifest.rename_table(*old, new_table_name="t", new_namespace_id=new_namespace)

    assert with_manifest.count_table_rows(*new).count == 2
    assert with_manifest.list_all_tables().tables == ["$".join(new)]


def test_rename_table_keeps_history_tags_and_indices(client: Client) -> None:
    client.create("users")
    client.insert_into_table("users", data=rows(3))
    client.create_table_tag("users", tag="first", version=1)
    client.create_table_scalar_index("users", column="id", index_type="BTREE")

    client.rename_table("users", new_table_name="people")

    assert client.count_table_rows("people", version=1).count == 2
    assert client.get_table_tag_version("people", tag="first").version == 1
    assert [index.index_name for index in client.list_table_indices("people").indexes] == ["id_idx"]


def test_rename_table_takes_managed_versions_along(managed: Client) -> None:
    managed.create("users")
    managed.insert_into_table("users", data=rows(3))

    managed.rename_table("users", new_table_name="people")

    assert set(managed.manifest_rows()) == {"people", "people$1", "people$2"}
    assert managed.count_table_rows("people", version=1).count == 2
    managed.insert_into_table("people", data=rows(4))
    assert managed.count_table_rows("people").count == 4


def test_rename_table_frees_the_old_name(with_manifest: Client) -> None:
    with_manifest.create("users")
    with_manifest.rename_table("users", new_table_name="people")

    with_manifest.create("users", data=rows(7))

    assert with_manifest.count_table_rows("users").count == 1
    assert with_manifest.count_table_rows("people").count == 2


def test_rename_table_a_declared_table(with_manifest: Client) -> None:
    with_manifest.declare_table("users")

    with_manifest.rename_table("users", new_table_name="people")

    assert with_manifest.tables() == ["people"]
    assert with_manifest.describe_table("people", check_declared=True).is_only_declared is True


def test_rename_table_error_4_if_the_table_does_not_exist(with_manifest: Client) -> None:
    with refused(TableNotFoundError, 4):
        with_manifest.rename_table("users", new_table_name="people")


@pytest.mark.parametrize("new_namespace", [["prod"], ["other"]])
def test_rename_table_error_1_if_a_namespace_does_not_exist(with_manifest: Client, new_namespace: list[str]) -> None:
    with_manifest.create("users")

    with refused(NamespaceNotFoundError, 1):
        with_manifest.rename_table("users", new_table_name="users", new_namespace_id=new_namespace)
    with refused(NamespaceNotFoundError, 1):
        with_manifest.rename_table("prod", "users", new_table_name="people")


@pytest.mark.parametrize("taken", ["table", "namespace"])
def test_rename_table_error_5_if_the_new_name_is_taken(with_manifest: Client, taken: str) -> None:
    with_manifest.create("users")
    getattr(with_manifest, "create" if taken == "table" else "create_namespace")("people")

    with refused(TableAlreadyExistsError, 5):
        with_manifest.rename_table("users", new_table_name="people")

    assert with_manifest.count_table_rows("users").count == 2


def test_rename_table_error_14_if_another_writer_takes_the_new_name_at_once(with_manifest: Client) -> None:
    with_manifest.create("users")
    rival = Client(with_manifest.place)

    meanwhile = interrupted_by(with_manifest, lambda: rival.declare_table("people"))
    with meanwhile, refused(ConcurrentModificationError, 14):
        with_manifest.rename_table("users", new_table_name="people")

    assert with_manifest.tables() == ["people", "users"]
    assert with_manifest.count_table_rows("users").count == 2


@pytest.mark.parametrize("name", ["", "users", "a$b", "a/b", "..", "a\nb"])
def test_rename_table_error_13_for_an_invalid_or_the_same_name(with_manifest: Client, name: str) -> None:
    with_manifest.create("users")

    with refused(InvalidInputError, 13):
        with_manifest.rename_table("users", new_table_name=name)

    assert with_manifest.tables() == ["users"]
