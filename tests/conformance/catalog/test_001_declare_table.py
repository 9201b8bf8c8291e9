"""001, «DeclareTable»."""

import re

import pytest

from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    UnsupportedOperationError,
)
from tests.conformance.catalog.client import Client, interrupted_by, refused, watched, write_plainly


def test_declare_table_reserves_without_data_files(any_mode: Client) -> None:
    any_mode.declare_table("users")
    location = any_mode.location("users")

    assert any_mode.storage.files(location) == {f"{location}/.lance-reserved"}


def test_declare_table_step_1_the_parent_must_exist(any_mode: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        any_mode.declare_table("prod", "users")

    assert not any(".lance-reserved" in path for path in any_mode.storage.files())


def test_declare_table_step_2_location_in_v1(v1: Client) -> None:
    assert v1.declare_table("users").location == f"{v1.place.root}/users.lance"


def test_declare_table_step_2_location_in_v2_at_the_root_with_listing(anywhere: Client) -> None:
    assert anywhere.declare_table("users").location == f"{anywhere.place.root}/users.lance"


def test_declare_table_step_2_location_in_v2_in_a_child_namespace(anywhere: Client) -> None:
    anywhere.create_namespace("prod")

    location = anywhere.declare_table("prod", "users").location.removeprefix(anywhere.place.root)

    assert re.fullmatch(r"/[0-9a-f]{8}_prod\$users", location)


def test_declare_table_step_2_location_in_v2_without_listing(v2: Client) -> None:
    location = v2.declare_table("users").location.removeprefix(v2.place.root)

    assert re.fullmatch(r"/[0-9a-f]{8}_users", location)


def test_declare_table_step_2_a_location_may_be_asked_for(with_manifest: Client) -> None:
    with_manifest.declare_table("users", location="sub/dir/users")

    assert with_manifest.location("users") == "sub/dir/users"
    assert "sub/dir/users/.lance-reserved" in with_manifest.storage.files()


def test_declare_table_step_2_in_v1_another_location_is_refused(v1: Client) -> None:
    with refused(InvalidInputError, 13):
        v1.declare_table("users", location="elsewhere.lance")

    assert v1.declare_table("users", location="users.lance").location.endswith("/users.lance")


@pytest.mark.parametrize(
    ("location", "error", "code"),
    [
        ("other.lance", TableAlreadyExistsError, 5),
        ("other.lance/data", InvalidInputError, 13),
        ("__manifest/data", InvalidInputError, 13),
    ],
)
def test_declare_table_step_2_the_place_of_another_table_is_refused(
    client: Client, location: str, error: type, code: int
) -> None:
    client.create("other")
    before = client.storage.files()

    with refused(error, code):
        client.declare_table("users", location=location)

    assert client.storage.files() == before


def test_declare_table_step_3_then_4_the_marker_comes_before_the_row(anywhere: Client) -> None:
    anywhere.create_namespace("prod")

    with watched(anywhere) as seen:
        anywhere.declare_table("prod", "users")

    location = anywhere.location("prod", "users")
    assert [kind for kind, _ in seen] == ["put_new", "commit"]
    assert seen[0][1] == f"{location}/.lance-reserved"
    assert [row.object_id for row in seen[1][1].inserts] == ["prod$users"]


def test_declare_table_step_4_merges_a_row_with_its_columns(with_manifest: Client) -> None:
    with_manifest.declare_table("users", properties={"owner": "data"})
    row = with_manifest.manifest_rows()["users"]

    assert row["object_type"] == "table"
    assert row["location"] == with_manifest.location("users")
    assert with_manifest.describe_table("users").properties == {"owner": "data"}


def test_declare_table_step_4_in_v1_there_is_no_row(v1: Client) -> None:
    v1.declare_table("users")

    assert v1.storage.files() == {"users.lance/.lance-reserved"}


def test_declare_table_in_v1_properties_can_not_be_kept_and_nothing_is_written(v1: Client) -> None:
    with refused(UnsupportedOperationError, 0):
        v1.declare_table("users", properties={"owner": "data"})

    assert v1.storage.files() == set()


def test_declare_table_error_1_if_the_parent_does_not_exist(with_manifest: Client) -> None:
    with_manifest.create("table")

    for parent in ("prod", "table"):
        with refused(NamespaceNotFoundError, 1):
            with_manifest.declare_table(parent, "users")


@pytest.mark.parametrize("how", ["declare_table", "create"])
def test_declare_table_error_5_if_the_table_exists(any_mode: Client, how: str) -> None:
    getattr(any_mode, how)("users")
    before = any_mode.storage.files()

    with refused(TableAlreadyExistsError, 5):
        any_mode.declare_table("users")

    assert any_mode.storage.files() == before


def test_declare_table_error_5_if_a_namespace_has_the_name(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")

    with refused(TableAlreadyExistsError, 5):
        with_manifest.declare_table("prod")


def test_declare_table_error_5_if_only_the_listing_knows_the_table(with_listing: Client) -> None:
    write_plainly(with_listing.place, "users.lance")

    with refused(TableAlreadyExistsError, 5):
        with_listing.declare_table("users")


def test_declare_table_error_14_if_another_writer_creates_it_at_once(v2: Client) -> None:
    v2.create_namespace("prod")
    rival = Client(v2.place, dir_listing_enabled="false")

    meanwhile = interrupted_by(v2, lambda: rival.declare_table("prod", "users"))
    with meanwhile, refused(ConcurrentModificationError, 14):
        v2.declare_table("prod", "users")

    location = v2.location("prod", "users")
    assert [path for path in v2.storage.files() if ".lance-reserved" in path] == [f"{location}/.lance-reserved"]
    assert sorted(v2.manifest().to_table()["object_id"].to_pylist()) == ["prod", "prod$users"]


@pytest.mark.parametrize("fields", [{}, {"vend_credentials": True}])
def test_declare_table_credentials_are_vended_only_when_asked_for(s3_server, fields: dict[str, bool]) -> None:
    catalog = Client(s3_server.place())

    answer = catalog.declare_table("users", **fields)

    assert answer.storage_options == (catalog.place.options if fields else None)


def test_declare_table_says_whether_versions_are_managed(managed_here: Client) -> None:
    assert managed_here.declare_table("users").managed_versioning is True
