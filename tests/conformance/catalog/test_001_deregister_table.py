"""001, «DeregisterTable»."""

from lancepart.errors import NamespaceNotFoundError, TableNotFoundError
from tests.conformance.catalog.client import Client, refused, watched, write_plainly


def test_deregister_table_keeps_the_data(any_mode: Client) -> None:
    any_mode.create("users")
    location = any_mode.location("users")
    before = any_mode.storage.files(location)

    any_mode.deregister_table("users")

    assert before <= any_mode.storage.files(location)


def test_deregister_table_can_be_registered_again(any_mode: Client) -> None:
    any_mode.create("users")
    location = any_mode.location("users")
    any_mode.deregister_table("users")

    any_mode.register_table("users", location=location)

    assert any_mode.tables() == ["users"]
    assert any_mode.count_table_rows("users").count == 2


def test_deregister_table_v1_step_1_looks_for_the_directory(v1: Client) -> None:
    write_plainly(v1.place, "users.lance")

    assert v1.deregister_table("users").location == f"{v1.place.root}/users.lance"


def test_deregister_table_v1_step_2_it_must_exist_and_not_be_deregistered(v1: Client) -> None:
    with refused(TableNotFoundError, 4):
        v1.deregister_table("users")
    v1.create("users")
    v1.deregister_table("users")

    with refused(TableNotFoundError, 4):
        v1.deregister_table("users")


def test_deregister_table_v1_step_3_creates_the_marker_file(place) -> None:
    v1 = Client(place, manifest_enabled="false")
    v1.create("users")

    with watched(v1) as seen:
        v1.deregister_table("users")

    assert seen == [("put", "users.lance/.lance-deregistered")]
    assert "users.lance/.lance-deregistered" in v1.storage.files()


def test_deregister_table_v1_step_4_returns_the_location(v1: Client) -> None:
    v1.create("users")

    answer = v1.deregister_table("users")

    assert (answer.id, answer.location) == (["users"], f"{v1.place.root}/users.lance")


def test_deregister_table_v1_the_table_is_not_listed(v1: Client) -> None:
    v1.create("users")
    v1.deregister_table("users")

    assert v1.tables() == []
    assert v1.list_all_tables().tables == []


def test_deregister_table_v1_describe_and_exists_say_not_found(v1: Client) -> None:
    v1.create("users")
    v1.deregister_table("users")

    for operation in ("describe_table", "table_exists"):
        with refused(TableNotFoundError, 4):
            getattr(v1, operation)("users")


def test_deregister_table_v1_without_its_marker_it_is_registered_again(v1: Client) -> None:
    v1.create("users")
    v1.deregister_table("users")
    v1.storage.delete("users.lance/.lance-deregistered")

    v1.register_table("users", location="users.lance")

    assert v1.tables() == ["users"]
    assert v1.count_table_rows("users").count == 2


def test_deregister_table_with_both_ways_without_its_marker_it_can_be_registered(client: Client) -> None:
    write_plainly(client.place, "users.lance")
    client.deregister_table("users")
    client.storage.delete("users.lance/.lance-deregistered")

    client.register_table("users", location="users.lance")

    assert set(client.manifest_rows()) == {"users"}


def test_deregister_table_v1_drop_still_works(v1: Client) -> None:
    v1.create("users")
    v1.deregister_table("users")

    v1.drop_table("users")

    assert v1.storage.files() == set()


def test_deregister_table_v2_step_1_the_manifest_says_where_the_table_is(v2: Client) -> None:
    write_plainly(v2.place, "elsewhere/users")
    v2.register_table("users", location="elsewhere/users")

    assert v2.deregister_table("users").location == f"{v2.place.root}/elsewhere/users"


def test_deregister_table_v2_step_2_removes_the_row(anywhere: Client) -> None:
    anywhere.create_namespace("prod")
    anywhere.create("prod", "users")
    anywhere.create("prod", "other")

    anywhere.deregister_table("prod", "users")

    assert set(anywhere.manifest_rows()) == {"prod", "prod$other"}


def test_deregister_table_v2_step_2_removes_the_rows_of_its_versions(managed_here: Client) -> None:
    managed_here.create("users")

    managed_here.deregister_table("users")

    assert managed_here.manifest_rows() == {}


def test_deregister_table_v2_step_3_touches_no_file(v2: Client) -> None:
    v2.create("users")
    before = v2.storage.files(v2.location("users"))

    location = v2.deregister_table("users").location.removeprefix(v2.place.root + "/")

    assert v2.storage.files(location) == before


def test_deregister_table_v2_step_4_returns_location_and_properties(with_manifest: Client) -> None:
    with_manifest.create("users", properties={"owner": "data"})
    location = with_manifest.describe_table("users").location

    answer = with_manifest.deregister_table("users")

    assert (answer.id, answer.location, answer.properties) == (["users"], location, {"owner": "data"})


def test_deregister_table_with_both_ways_a_table_of_the_manifest_follows_v2(client: Client) -> None:
    client.create("users")

    client.deregister_table("users")

    assert client.manifest_rows() == {}
    assert client.tables() == []


def test_deregister_table_with_both_ways_a_table_of_the_listing_follows_v1(client: Client) -> None:
    write_plainly(client.place, "users.lance")

    client.deregister_table("users")

    assert "users.lance/.lance-deregistered" in client.storage.files()
    assert client.tables() == []


def test_deregister_table_error_1_if_the_parent_does_not_exist(any_mode: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        any_mode.deregister_table("prod", "users")


def test_deregister_table_error_4_if_it_does_not_exist_or_is_already_deregistered(any_mode: Client) -> None:
    with refused(TableNotFoundError, 4):
        any_mode.deregister_table("users")
    any_mode.create("users")
    any_mode.deregister_table("users")

    with refused(TableNotFoundError, 4):
        any_mode.deregister_table("users")
