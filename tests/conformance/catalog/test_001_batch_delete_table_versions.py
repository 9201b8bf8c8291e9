"""001, «BatchDeleteTableVersions»."""

import pytest
from lance_namespace_urllib3_client.models import VersionRange

from lancepart.errors import InvalidInputError, TableNotFoundError, TableVersionNotFoundError
from tests.conformance.catalog.client import Client, refused, watched
from tests.support.catalogs import rows


def ranges(*pairs: tuple[int, int]) -> list[VersionRange]:
    return [VersionRange(start_version=start, end_version=end) for start, end in pairs]


def numbers(client: Client) -> list[int]:
    return [version.version for version in client.list_table_versions("users").versions]


def of_four_versions(client: Client) -> Client:
    client.create("users")
    for number in (2, 3, 4):
        client.insert_into_table("users", data=rows(number))
    return client


@pytest.fixture(params=["files", "rows"])
def four(request: pytest.FixtureRequest, client: Client) -> Client:
    """A table of four versions, kept as files and kept as rows."""
    return of_four_versions(client.manage_versions() if request.param == "rows" else client)


def test_batch_delete_table_versions_unmanaged_step_1_resolves_the_location(any_mode: Client) -> None:
    of_four_versions(any_mode)

    any_mode.batch_delete_table_versions("users", ranges=ranges((1, 3)))

    assert numbers(any_mode) == [3, 4]


def test_batch_delete_table_versions_unmanaged_step_2_deletes_the_manifest_files(anywhere: Client) -> None:
    of_four_versions(anywhere)

    with watched(anywhere) as seen:
        anywhere.batch_delete_table_versions("users", ranges=ranges((2, 3)))

    assert seen == [("delete", "users.lance/_versions/18446744073709551613.manifest")]
    assert anywhere.count_table_rows("users").count == 5


def test_batch_delete_table_versions_step_3_returns_how_many(four: Client) -> None:
    assert four.batch_delete_table_versions("users", ranges=ranges((1, 2), (3, 4))).deleted_count == 2
    assert numbers(four) == [2, 4]


def test_batch_delete_table_versions_managed_steps_1_and_2_files_go_before_rows(managed: Client) -> None:
    of_four_versions(managed)

    with watched(managed) as seen:
        managed.batch_delete_table_versions("users", ranges=ranges((1, 3)))

    assert [kind for kind, _ in seen] == ["delete", "delete", "commit"]
    assert set(seen[2][1].deletes) == {"users$1", "users$2"}
    assert set(managed.manifest_rows()) == {"users", "users$3", "users$4"}
    assert managed.count_table_rows("users").count == 5


def test_batch_delete_table_versions_ranges_exclude_their_end_and_may_overlap(four: Client) -> None:
    assert four.batch_delete_table_versions("users", ranges=ranges((1, 2), (1, 3))).deleted_count == 2
    assert numbers(four) == [3, 4]


def test_batch_delete_table_versions_an_end_of_minus_one_is_open(four: Client) -> None:
    assert four.batch_delete_table_versions("users", ranges=ranges((3, -1))).deleted_count == 2
    assert numbers(four) == [1, 2]


@pytest.mark.parametrize("pair", [(3, 2), (-1, 2), (1, -2)])
def test_batch_delete_table_versions_an_impossible_range_is_refused(four: Client, pair: tuple[int, int]) -> None:
    with refused(InvalidInputError, 13):
        four.batch_delete_table_versions("users", ranges=ranges(pair))

    assert numbers(four) == [1, 2, 3, 4]


def test_batch_delete_table_versions_of_a_table_from_before_management(client: Client) -> None:
    of_four_versions(client)
    client.manage_versions()
    client.insert_into_table("users", data=rows(5))

    assert client.batch_delete_table_versions("users", ranges=ranges((2, 5))).deleted_count == 3
    assert numbers(client) == [1, 5]


def test_batch_delete_table_versions_error_4_if_the_table_does_not_exist(any_mode: Client) -> None:
    with refused(TableNotFoundError, 4):
        any_mode.batch_delete_table_versions("users", ranges=ranges((1, 2)))


@pytest.mark.parametrize("context", [None, {"ignore_missing": "true"}])
def test_batch_delete_table_versions_missing_ones_are_skipped(four: Client, context: dict[str, str] | None) -> None:
    answer = four.batch_delete_table_versions("users", ranges=ranges((3, 9)), context=context)

    assert answer.deleted_count == 2
    assert numbers(four) == [1, 2]


@pytest.mark.parametrize("pairs", [[(3, 9)], [(1, 2), (7, 8)]])
def test_batch_delete_table_versions_error_11_for_missing_ones_if_they_are_not_to_be_ignored(
    four: Client, pairs: list[tuple[int, int]]
) -> None:
    with refused(TableVersionNotFoundError, 11):
        four.batch_delete_table_versions("users", ranges=ranges(*pairs), context={"ignore_missing": "false"})

    assert numbers(four) == [1, 2, 3, 4]
