"""RegisterTable: 001 names it as the way back from DeregisterTable; locations stay beneath the root."""

import os
from pathlib import Path

import pytest

from lancepart.errors import (
    InvalidInputError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    UnsupportedOperationError,
)
from tests.conformance.catalog.client import Client, refused, write_plainly
from tests.support.catalogs import Place, rows

OUTSIDE = [
    "/etc",
    "/",
    "//host/share",
    "~",
    "~/tables/users",
    "~root/users",
    "s3://bucket/users.lance",
    "gs://bucket/users",
    "file:///etc",
    "file:users",
    "..",
    "../users.lance",
    "a/../../users.lance",
    "./users.lance",
    "a//b",
    "a/",
    "",
    "a\nb",
    "a\x00b",
    "..\\users",
    "C:\\users",
    "C:/users",
    "__manifest",
]


def test_register_table_makes_a_written_table_known(anywhere: Client) -> None:
    write_plainly(anywhere.place, "elsewhere/users")
    anywhere.create_namespace("prod")

    answer = anywhere.register_table("prod", "users", location="elsewhere/users", properties={"owner": "data"})

    assert answer.location == "elsewhere/users"
    assert anywhere.count_table_rows("prod", "users").count == 2
    assert anywhere.describe_table("prod", "users").properties == {"owner": "data"}


def test_register_table_moves_no_data(with_manifest: Client) -> None:
    write_plainly(with_manifest.place, "elsewhere/users")
    before = with_manifest.storage.files()

    with_manifest.register_table("users", location="elsewhere/users")

    assert {path for path in with_manifest.storage.files() if not path.startswith("__manifest")} == before


def test_register_table_takes_the_deregistered_mark_away(with_listing: Client) -> None:
    with_listing.create("users")
    with_listing.deregister_table("users")

    with_listing.register_table("users", location="users.lance")

    assert not any(".lance-deregistered" in path for path in with_listing.storage.files())
    assert with_listing.tables() == ["users"]


def test_register_table_error_5_if_the_table_exists(anywhere: Client) -> None:
    anywhere.create("users")

    with refused(TableAlreadyExistsError, 5):
        anywhere.register_table("users", location="users.lance")


def test_register_table_error_13_for_what_is_no_lance_table(with_manifest: Client) -> None:
    with_manifest.storage.write("photos/holiday.png")
    write_plainly(with_manifest.place, "more/of/them.lance")
    before = with_manifest.storage.files()

    for location in ("photos", "more", "more/of"):
        with refused(InvalidInputError, 13):
            with_manifest.register_table("users", location=location)

    assert {path for path in with_manifest.storage.files() if not path.startswith("__manifest")} == before


def test_register_table_brings_the_properties_of_a_deregistered_table_back(any_mode: Client) -> None:
    any_mode.create("users", properties={"owner": "data"})
    location = any_mode.location("users")
    any_mode.deregister_table("users")

    answer = any_mode.register_table("users", location=location)

    assert answer.properties == {"owner": "data"}
    assert any_mode.describe_table("users").properties == {"owner": "data"}


def test_register_table_puts_properties_into_the_tables_metadata(any_mode: Client) -> None:
    write_plainly(any_mode.place, "users.lance").update_metadata({"team": "a", "owner": "nobody"})
    if any_mode.inside.dir_listing_enabled:
        any_mode.deregister_table("users")

    any_mode.register_table("users", location="users.lance", properties={"owner": "data"})

    assert any_mode.dataset("users").metadata == {"team": "a", "owner": "data"}
    assert any_mode.describe_table("users").properties == {"team": "a", "owner": "data"}


def test_register_table_error_5_if_another_name_has_the_location(client: Client) -> None:
    client.create("users")

    with refused(TableAlreadyExistsError, 5):
        client.register_table("people", location="users.lance")

    assert client.tables() == ["users"]


def test_register_table_error_1_if_the_parent_does_not_exist(any_mode: Client) -> None:
    write_plainly(any_mode.place, "users.lance")

    with refused(NamespaceNotFoundError, 1):
        any_mode.register_table("prod", "users", location="users.lance")


def test_register_table_error_13_if_nothing_stands_at_the_location(with_manifest: Client) -> None:
    with refused(InvalidInputError, 13):
        with_manifest.register_table("users", location="nothing/here")

    assert with_manifest.tables() == []


def test_register_table_error_13_inside_or_around_another_table(client: Client) -> None:
    write_plainly(client.place, "sub/users")
    client.register_table("users", location="sub/users")

    for location in ("sub", "sub/users/data"):
        with refused(InvalidInputError, 13):
            client.register_table("other", location=location)

    assert client.tables() == ["users"]


@pytest.mark.parametrize("operation", ["register_table", "declare_table"])
def test_register_and_declare_table_error_13_for_a_location_outside_the_root(any_mode: Client, operation: str) -> None:
    any_mode.create("other")
    before = any_mode.storage.files()

    for location in OUTSIDE:
        with refused(InvalidInputError, 13):
            getattr(any_mode, operation)("users", location=location)

    assert any_mode.storage.files() == before
    assert any_mode.tables() == ["other"]


@pytest.mark.parametrize("mode", [None, "create", "Create"])
def test_register_table_mode_create_is_the_default(client: Client, mode: str | None) -> None:
    write_plainly(client.place, "a")
    write_plainly(client.place, "b")
    client.register_table("users", location="a", mode=mode)

    with refused(TableAlreadyExistsError, 5):
        client.register_table("users", location="b", mode=mode)

    assert client.location("users") == "a"


@pytest.mark.parametrize("mode", ["overwrite", "Overwrite", "OVERWRITE"])
def test_register_table_mode_overwrite_points_the_name_elsewhere_and_keeps_the_old_data(
    client: Client, mode: str
) -> None:
    write_plainly(client.place, "a")
    write_plainly(client.place, "b", rows(1, 2, 3))
    client.register_table("users", location="a")

    client.register_table("users", location="b", mode=mode)

    assert client.count_table_rows("users").count == 3
    assert any(path.startswith("a/") for path in client.storage.files())


def test_register_table_an_unknown_mode_is_refused(client: Client) -> None:
    write_plainly(client.place, "a")

    with refused(InvalidInputError, 13):
        client.register_table("users", location="a", mode="exist_ok")


def test_register_table_in_v1_only_where_the_listing_looks(v1: Client) -> None:
    write_plainly(v1.place, "elsewhere.lance")

    with refused(UnsupportedOperationError, 0):
        v1.register_table("users", location="elsewhere.lance")


def test_register_table_in_v1_properties_of_a_table_without_data_can_not_be_kept(v1: Client) -> None:
    v1.declare_table("users")
    v1.deregister_table("users")

    with refused(UnsupportedOperationError, 0):
        v1.register_table("users", location="users.lance", properties={"owner": "data"})

    assert v1.tables() == []


@pytest.mark.parametrize(
    "operation",
    ["table_exists", "describe_table", "declare_table", "deregister_table", "drop_table", "count_table_rows", "create"],
)
def test_a_symbolic_link_out_of_the_root_is_refused_and_nothing_outside_changes(
    with_listing: Client, tmp_path: Path, operation: str
) -> None:
    outside = write_plainly(Place(str(tmp_path)), "outside")
    before = Client(Place(outside.uri)).storage.files()
    os.makedirs(with_listing.place.root)
    os.symlink(outside.uri, f"{with_listing.place.root}/users.lance")

    with refused(InvalidInputError, 13):
        getattr(with_listing, operation)("users")

    assert Client(Place(outside.uri)).storage.files() == before
    assert with_listing.tables() == []


@pytest.mark.parametrize("operation", ["register_table", "declare_table"])
def test_a_symbolic_link_out_of_the_root_is_no_location(client: Client, tmp_path: Path, operation: str) -> None:
    outside = write_plainly(Place(str(tmp_path)), "outside/users")
    os.makedirs(client.place.root)
    os.symlink(os.path.dirname(outside.uri), f"{client.place.root}/sub")

    with refused(InvalidInputError, 13):
        getattr(client, operation)("users", location="sub/users")

    assert client.tables() == []


def test_a_symbolic_link_that_stays_in_the_root_is_followed(v1: Client) -> None:
    write_plainly(v1.place, "real.lance")
    os.symlink("real.lance", f"{v1.place.root}/link.lance")

    assert v1.tables() == ["link", "real"]
    assert v1.count_table_rows("link").count == 2
