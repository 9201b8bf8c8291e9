"""001, «DescribeTableVersion»: what was committed and never finalised is healed by the next reader."""

import json

import lance
import pytest

from lancepart.errors import InternalError, LanceNamespaceError, TableNotFoundError, TableVersionNotFoundError
from tests.conformance.catalog.client import Client, commit_unfinished, refused, stage, watched, write_plainly
from tests.support.catalogs import rows


def test_describe_table_version_unmanaged_step_1_resolves_the_location(any_mode: Client) -> None:
    any_mode.create("users")
    location = any_mode.location("users")

    version = any_mode.describe_table_version("users", version=1).version

    assert f"{location}/_versions/" in version.manifest_path


def test_describe_table_version_unmanaged_step_2_opens_the_version(client: Client) -> None:
    client.create("users")
    client.storage.write("users.lance/_versions/18446744073709551613.manifest", b"broken")

    with pytest.raises(LanceNamespaceError, match="users"):
        client.describe_table_version("users", version=2)


def test_describe_table_version_unmanaged_step_3_reads_the_metadata_of_the_manifest(any_mode: Client) -> None:
    any_mode.create("users")

    version = any_mode.describe_table_version("users", version=1).version

    assert version.metadata["total_rows"] == "2"


@pytest.mark.parametrize("v2_names", [True, False])
def test_describe_table_version_unmanaged_step_4_returns_path_size_tag_time_and_metadata(
    client: Client, v2_names: bool
) -> None:
    write_plainly(client.place, "users.lance", enable_v2_manifest_paths=v2_names)
    name = "18446744073709551614.manifest" if v2_names else "1.manifest"

    version = client.describe_table_version("users", version=1).version

    assert version.version == 1
    assert version.manifest_path == f"{client.place.root}/users.lance/_versions/{name}".lstrip("/")
    assert version.manifest_size == len(client.storage.read(f"users.lance/_versions/{name}"))
    assert version.e_tag
    assert version.timestamp_millis > 1_600_000_000_000
    assert version.metadata


def test_describe_table_version_without_a_number_is_the_latest(any_mode: Client) -> None:
    any_mode.create("users")
    any_mode.insert_into_table("users", data=rows(3))

    assert any_mode.describe_table_version("users").version.version == 2


def test_describe_table_version_managed_step_1_a_final_path_needs_nothing_more(managed: Client) -> None:
    managed.create("users")

    with watched(managed) as seen:
        version = managed.describe_table_version("users", version=1).version

    assert seen == []
    assert version.manifest_path.endswith("users.lance/_versions/18446744073709551614.manifest")


@pytest.mark.parametrize("spelling", ["relative", "absolute"])
def test_describe_table_version_managed_steps_2_and_3_finalise_a_staged_manifest(
    managed: Client, spelling: str
) -> None:
    managed.create("users")
    staged = stage(managed, "users")
    path = managed.inside.root.uri.partition("://")[2].partition("/")[2] or managed.place.root.lstrip("/")
    written = staged.staged if spelling == "relative" else f"{path}/{staged.staged}"
    commit_unfinished(managed, staged, {"manifest_path": written, "metadata": {"by": "me"}})

    with watched(managed) as seen:
        version = managed.describe_table_version("users", version=2).version

    assert [kind for kind, _ in seen] == ["put_new", "commit", "delete"]
    assert seen[0][1] == staged.final
    assert json.loads(managed.manifest_rows()["users$2"]["metadata"])["manifest_path"] == staged.final
    assert version.metadata == {"by": "me"}


def test_describe_table_version_managed_step_2_is_idempotent(managed_here: Client) -> None:
    managed_here.create("users")
    staged = stage(managed_here, "users")
    managed_here.storage.write(staged.final, managed_here.storage.read(staged.staged))
    commit_unfinished(managed_here, staged, {"manifest_path": staged.staged})

    for _ in range(2):
        version = managed_here.describe_table_version("users", version=2).version
        assert version.manifest_path.endswith(staged.final)

    assert managed_here.count_table_rows("users").count == 4


def test_describe_table_version_managed_step_2_also_when_the_staged_manifest_is_gone(managed_here: Client) -> None:
    managed_here.create("users")
    staged = stage(managed_here, "users")
    commit_unfinished(managed_here, staged, {"manifest_path": staged.staged})
    managed_here.storage.move(staged.staged, staged.final)

    managed_here.describe_table_version("users", version=2)

    assert json.loads(managed_here.manifest_rows()["users$2"]["metadata"])["manifest_path"] == staged.final


def test_describe_table_version_managed_step_2_in_the_older_naming_scheme(managed_here: Client) -> None:
    write_plainly(managed_here.place, "users.lance", enable_v2_manifest_paths=False)
    managed_here.register_table("users", location="users.lance")
    staged = stage(managed_here, "users")
    commit_unfinished(managed_here, staged, {"manifest_path": staged.staged})

    managed_here.describe_table_version("users", version=2)

    assert "users.lance/_versions/2.manifest" in managed_here.storage.files()
    assert managed_here.dataset("users").version == 2


def test_describe_table_version_managed_step_4_returns_the_final_path(managed_here: Client) -> None:
    managed_here.create("users")
    staged = stage(managed_here, "users")
    commit_unfinished(managed_here, staged, {"manifest_path": staged.staged})

    version = managed_here.describe_table_version("users").version

    assert (version.version, version.manifest_path.endswith(staged.final)) == (2, True)


def test_describe_table_version_managed_step_4_error_18_if_it_can_not_be_synchronised(managed_here: Client) -> None:
    managed_here.create("users")
    staged = stage(managed_here, "users")
    commit_unfinished(managed_here, staged, {"manifest_path": staged.staged})
    managed_here.storage.delete(staged.staged)

    with refused(InternalError, 18):
        managed_here.describe_table_version("users", version=2)


def test_describe_table_version_heals_when_pylance_reads_through_the_catalog(managed: Client) -> None:
    managed.create("users")
    staged = stage(managed, "users")
    commit_unfinished(managed, staged, {"manifest_path": staged.staged})

    through = lance.dataset(
        namespace_client=managed.namespace, table_id=["users"], storage_options=managed.place.storage_options
    )

    assert through.count_rows() == 4
    assert staged.final in managed.storage.files()
    assert managed.dataset("users").count_rows() == 4


def test_describe_table_version_error_4_if_the_table_does_not_exist(any_mode: Client) -> None:
    with refused(TableNotFoundError, 4):
        any_mode.describe_table_version("users", version=1)


@pytest.mark.parametrize("managed", [False, True])
def test_describe_table_version_error_11_if_the_version_does_not_exist(client: Client, managed: bool) -> None:
    if managed:
        client.manage_versions()
    client.create("users")
    client.declare_table("declared")

    with refused(TableVersionNotFoundError, 11):
        client.describe_table_version("users", version=2)
    with refused(TableVersionNotFoundError, 11):
        client.describe_table_version("declared")
