"""001, «ListTableVersions»."""

import pytest

from lancepart.errors import InvalidInputError, NamespaceNotFoundError, TableNotFoundError
from tests.conformance.catalog.client import Client, commit_unfinished, refused, stage, write_plainly
from tests.support.catalogs import rows


def numbers(client: Client, *path: str, **fields: object) -> list[int]:
    return [version.version for version in client.list_table_versions(*path, **fields).versions]


@pytest.fixture(params=["files", "rows"])
def four(request: pytest.FixtureRequest, client: Client) -> Client:
    """A table of four versions, kept as files and kept as rows."""
    if request.param == "rows":
        client.manage_versions()
    client.create("users")
    for number in (2, 3, 4):
        client.insert_into_table("users", data=rows(number))
    return client


def test_list_table_versions_unmanaged_step_1_resolves_the_location(any_mode: Client) -> None:
    any_mode.create("users")

    assert numbers(any_mode, "users") == [1]


def test_list_table_versions_unmanaged_step_2_lists_the_versions_directory(anywhere: Client) -> None:
    anywhere.create("users")
    write_plainly(anywhere.place, "users.lance", rows(3), mode="append")

    assert numbers(anywhere, "users") == [1, 2]


@pytest.mark.parametrize("v2_names", [True, False])
def test_list_table_versions_unmanaged_step_3_reads_both_naming_schemes(client: Client, v2_names: bool) -> None:
    for _ in range(3):
        write_plainly(client.place, "users.lance", mode="overwrite", enable_v2_manifest_paths=v2_names)

    assert numbers(client, "users") == [1, 2, 3]


def test_list_table_versions_unmanaged_step_3_other_files_are_no_versions(client: Client) -> None:
    client.create("users")
    for name in ("2.manifest-staged", "d17.manifest", "notes.txt", ".manifest", "latest.manifest"):
        client.storage.write(f"users.lance/_versions/{name}")

    assert numbers(client, "users") == [1]


def test_list_table_versions_unmanaged_step_4_tells_size_tag_and_time(anywhere: Client) -> None:
    anywhere.create("users")

    (version,) = anywhere.list_table_versions("users").versions

    assert version.manifest_path.endswith("users.lance/_versions/18446744073709551614.manifest")
    assert version.manifest_size == len(anywhere.storage.read("users.lance/_versions/18446744073709551614.manifest"))
    assert version.e_tag
    assert version.timestamp_millis > 1_600_000_000_000


def test_list_table_versions_step_5_sorts_by_number_also_descending(four: Client) -> None:
    assert numbers(four, "users") == [1, 2, 3, 4]
    assert numbers(four, "users", descending=True) == [4, 3, 2, 1]


def test_list_table_versions_step_6_pages_by_token_and_limit(four: Client) -> None:
    first = four.list_table_versions("users", limit=3)
    second = four.list_table_versions("users", limit=3, page_token=first.page_token)

    assert [version.version for version in first.versions] == [1, 2, 3]
    assert [version.version for version in second.versions] == [4]
    assert second.page_token is None
    down = four.list_table_versions("users", limit=2, descending=True)
    assert numbers(four, "users", limit=2, descending=True, page_token=down.page_token) == [2, 1]


@pytest.mark.parametrize("fields", [{"limit": 0}, {"limit": -1}, {"page_token": "next"}])
def test_list_table_versions_step_6_a_bad_page_is_refused(four: Client, fields: dict[str, object]) -> None:
    with refused(InvalidInputError, 13):
        four.list_table_versions("users", **fields)


def test_list_table_versions_managed_step_1_only_version_rows_of_the_table(managed_here: Client) -> None:
    for name in ("users", "users2"):
        managed_here.create(name)
    managed_here.insert_into_table("users2", data=rows(3))

    assert numbers(managed_here, "users") == [1]
    assert numbers(managed_here, "users2") == [1, 2]


def test_list_table_versions_managed_step_2_the_number_comes_from_the_id(managed_here: Client) -> None:
    managed_here.create("7")
    for number in range(12):
        managed_here.insert_into_table("7", data=rows(number))

    assert numbers(managed_here, "7") == list(range(1, 14))


def test_list_table_versions_managed_step_3_the_details_come_from_the_metadata_column(managed: Client) -> None:
    managed.create("users")
    staged = stage(managed, "users")
    managed.create_table_version(**staged.fields, metadata={"by": "me"})

    version = managed.list_table_versions("users").versions[-1]

    assert version.manifest_path.endswith(staged.final)
    assert version.manifest_size == len(managed.storage.read(staged.final))
    assert version.metadata == {"by": "me"}
    assert version.timestamp_millis > 1_600_000_000_000


def test_list_table_versions_managed_finishes_what_was_never_finalised(managed: Client) -> None:
    managed.create("users")
    staged = stage(managed, "users")
    commit_unfinished(managed, staged, {"manifest_path": staged.staged})

    listed = managed.list_table_versions("users").versions

    assert [version.version for version in listed] == [1, 2]
    assert listed[1].manifest_path.endswith(staged.final)
    assert staged.final in managed.storage.files()
    assert managed.dataset("users").count_rows() == 4


def test_list_table_versions_of_a_declared_table_is_empty(any_mode: Client) -> None:
    any_mode.declare_table("users")

    assert numbers(any_mode, "users") == []


def test_list_table_versions_error_4_if_the_table_does_not_exist(any_mode: Client) -> None:
    with refused(TableNotFoundError, 4):
        any_mode.list_table_versions("users")


def test_list_table_versions_error_1_if_the_namespace_does_not_exist(any_mode: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        any_mode.list_table_versions("prod", "users")
