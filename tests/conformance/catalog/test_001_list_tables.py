"""001, «ListTables», and ListAllTables beside it."""

import pytest

from lancepart.errors import InvalidInputError, NamespaceNotFoundError
from tests.conformance.catalog.client import Client, refused, write_plainly
from tests.support.catalogs import Place


def test_list_tables_v1_step_1_lists_the_root_directory(v1: Client) -> None:
    assert v1.tables() == []
    write_plainly(v1.place, "users.lance")
    write_plainly(v1.place, "sub/hidden.lance")

    assert v1.tables() == ["users"]


def test_list_tables_v1_step_2_only_directories_that_end_in_lance(v1: Client) -> None:
    write_plainly(v1.place, "users.lance")
    write_plainly(v1.place, "users.lance2")
    v1.storage.write("file.lance")

    assert v1.tables() == ["users"]


def test_list_tables_v1_step_3_names_come_without_the_suffix(place: Place) -> None:
    catalog = Client(place, manifest_enabled="false")
    for name in ("b", "a", "a.lance"):
        catalog.storage.write(f"{name}.lance/.lance-reserved")

    assert catalog.tables() == ["a", "a.lance", "b"]


def test_list_tables_v2_step_1_only_rows_of_type_table(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")
    with_manifest.create("users")

    assert with_manifest.tables() == ["users"]


def test_list_tables_v2_step_2_and_3_only_tables_one_level_beneath(with_manifest: Client) -> None:
    for path in ["prod"], ["prod", "a"], ["prod2"]:
        with_manifest.create_namespace(*path)
        with_manifest.declare_table(*path, f"in_{path[-1]}")

    assert with_manifest.tables("prod") == ["in_prod"]
    assert with_manifest.tables() == []


def test_list_tables_v2_step_4_returns_names_and_not_ids(anywhere: Client) -> None:
    anywhere.create_namespace("prod")
    anywhere.declare_table("prod", "b")
    anywhere.declare_table("prod", "a")

    assert anywhere.tables("prod") == ["a", "b"]


def test_list_tables_in_v2_the_directories_are_not_looked_at(v2: Client) -> None:
    write_plainly(v2.place, "users.lance")

    assert v2.tables() == []


def test_list_tables_with_both_ways_the_results_are_merged(anywhere: Client) -> None:
    anywhere.create("in_manifest")
    write_plainly(anywhere.place, "on_disk.lance")

    assert anywhere.tables() == ["in_manifest", "on_disk"]


def test_list_tables_with_both_ways_the_manifest_comes_first(client: Client) -> None:
    write_plainly(client.place, "users.lance")
    client.register_table("users", location="users.lance")
    write_plainly(client.place, "renamed.lance")
    client.register_table("other", location="renamed.lance")

    assert client.tables() == ["other", "users"]


def test_list_tables_with_versions_managed_only_tables_are_listed(managed_here: Client) -> None:
    managed_here.create("users")

    assert managed_here.tables() == ["users"]
    assert managed_here.list_all_tables().tables == ["users"]


def test_list_tables_error_1_if_the_namespace_does_not_exist(with_manifest: Client) -> None:
    with_manifest.create("users")

    for name in ("prod", "users"):
        with refused(NamespaceNotFoundError, 1):
            with_manifest.list_tables(name)


def test_list_tables_v1_has_no_error_for_a_namespace_that_can_not_be(v1: Client) -> None:
    v1.create("users")

    assert v1.tables("prod") == []


@pytest.mark.parametrize("operation", ["list_tables", "list_all_tables"])
def test_list_tables_pages_by_token_and_limit(any_mode: Client, operation: str) -> None:
    names = ["a", "b b", "c", "é", "😀"]
    for name in reversed(names):
        any_mode.declare_table(name)

    seen, token = [], None
    while True:
        page = getattr(any_mode, operation)(page_token=token, limit=2)
        assert len(page.tables) <= 2
        seen += page.tables
        token = page.page_token
        if token is None:
            break

    assert seen == names


def test_list_tables_pages_run_through_manifest_and_listing_together(client: Client) -> None:
    for name in ("a", "c", "e"):
        client.declare_table(name)
    for name in ("b", "d"):
        client.storage.write(f"{name}.lance/.lance-reserved")

    first = client.list_tables(limit=2)
    second = client.list_tables(limit=2, page_token=first.page_token)
    third = client.list_tables(limit=2, page_token=second.page_token)

    assert (first.tables, second.tables, third.tables) == (["a", "b"], ["c", "d"], ["e"])
    assert third.page_token is None


@pytest.mark.parametrize("limit", [0, -1])
@pytest.mark.parametrize("operation", ["list_tables", "list_all_tables"])
def test_list_tables_a_limit_is_positive(client: Client, operation: str, limit: int) -> None:
    with refused(InvalidInputError, 13):
        getattr(client, operation)(limit=limit)


def test_list_tables_declared_ones_can_be_left_out(any_mode: Client) -> None:
    any_mode.declare_table("declared")
    any_mode.create("created")

    assert any_mode.tables() == ["created", "declared"]
    assert any_mode.list_tables(include_declared=False).tables == ["created"]


def test_list_all_tables_gives_the_full_ids_at_every_depth(anywhere: Client) -> None:
    for path in ["prod"], ["prod", "a"]:
        anywhere.create_namespace(*path)
        anywhere.declare_table(*path, "users")
    anywhere.declare_table("users")
    anywhere.storage.write("listed.lance/.lance-reserved")

    assert anywhere.list_all_tables().tables == ["listed", "prod$a$users", "prod$users", "users"]
    assert anywhere.list_all_tables("prod").tables == ["prod$a$users", "prod$users"]


def test_list_all_tables_error_1_if_the_namespace_does_not_exist(with_manifest: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        with_manifest.list_all_tables("prod")
