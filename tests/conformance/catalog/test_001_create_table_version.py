"""001, «CreateTableVersion», with and without table version management."""

import json
from urllib.parse import quote

import lance
import pytest

from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    NamespaceNotFoundError,
    TableNotFoundError,
    TableVersionAlreadyExistsError,
    UnsupportedOperationError,
)
from tests.conformance.catalog.client import Client, interrupted_by, refused, stage, watched, write_plainly
from tests.support.catalogs import Place, rows


def test_create_table_version_puts_only_if_the_version_does_not_exist(place: Place) -> None:
    v1 = Client(place, manifest_enabled="false")
    v1.create("users")
    first = stage(v1, "users")
    v1.create_table_version(**first.fields)
    content = v1.storage.read(first.final)
    v1.storage.write(first.staged, b"another manifest")

    with refused(TableVersionAlreadyExistsError, 12):
        v1.create_table_version(**first.fields)

    assert v1.storage.read(first.final) == content


def test_create_table_version_unmanaged_step_1_resolves_the_location(any_mode: Client) -> None:
    any_mode.create("users")
    staged = stage(any_mode, "users")

    any_mode.create_table_version(**staged.fields)

    assert any_mode.dataset("users").version == 2
    assert any_mode.count_table_rows("users").count == 4


@pytest.mark.parametrize("spelling", ["relative", "absolute", "no leading slash", "uri"])
def test_create_table_version_unmanaged_step_2_parses_the_staging_path(client: Client, spelling: str) -> None:
    client.create("50% off")
    staged = stage(client, "50% off")
    root = client.place.root
    path = {
        "relative": staged.staged,
        "absolute": f"{root}/{staged.staged}",
        "no leading slash": f"{root}/{staged.staged}".lstrip("/"),
        "uri": "file://" + quote(f"{root}/{staged.staged}"),
    }[spelling]

    client.create_table_version("50% off", version=2, manifest_path=path)

    assert client.count_table_rows("50% off").count == 4


@pytest.mark.parametrize(
    "path",
    [
        "users.lance/_versions/missing.manifest-1",
        "other.lance/_versions/2.manifest-1",
        "users.lance/data/2.manifest-1",
        "users.lance/_versions/../../secret",
        "users.lance/_versions/",
        "/etc/passwd",
        "",
    ],
)
def test_create_table_version_unmanaged_step_2_a_path_elsewhere_is_refused(client: Client, path: str) -> None:
    client.create("users")
    client.storage.write("other.lance/_versions/2.manifest-1", b"x")
    client.storage.write("users.lance/data/2.manifest-1", b"x")

    with refused(InvalidInputError, 13):
        client.create_table_version("users", version=2, manifest_path=path)

    assert client.dataset("users").version == 1


@pytest.mark.parametrize(
    ("v2_names", "asked", "name"),
    [
        (True, None, "18446744073709551613.manifest"),
        (False, None, "2.manifest"),
        (True, "V2", "18446744073709551613.manifest"),
        (False, "v1", "2.manifest"),
    ],
)
def test_create_table_version_unmanaged_step_3_the_final_path_follows_the_naming_scheme(
    client: Client, v2_names: bool, asked: str | None, name: str
) -> None:
    write_plainly(client.place, "users.lance", enable_v2_manifest_paths=v2_names)
    staged = stage(client, "users")

    answer = client.create_table_version(**staged.fields, naming_scheme=asked)

    assert staged.final == f"users.lance/_versions/{name}"
    assert answer.version.manifest_path.endswith(f"users.lance/_versions/{name}")
    assert client.dataset("users").version == 2


def test_create_table_version_unmanaged_step_3_a_staged_name_without_a_scheme_follows_the_table(client: Client) -> None:
    for v2_names in (True, False):
        name = f"table_{v2_names}"
        write_plainly(client.place, f"{name}.lance", enable_v2_manifest_paths=v2_names)
        staged = stage(client, name)
        anonymous = f"{name}.lance/_versions/staged-somehow"
        client.storage.move(staged.staged, anonymous)

        client.create_table_version(name, version=2, manifest_path=anonymous)

        assert staged.final in client.storage.files()


def test_create_table_version_an_unknown_naming_scheme_is_refused(client: Client) -> None:
    client.create("users")

    with refused(InvalidInputError, 13):
        client.create_table_version(**stage(client, "users").fields, naming_scheme="V3")


def test_create_table_version_unmanaged_step_4_then_5_copies_and_then_deletes_the_staged_manifest(
    anywhere: Client,
) -> None:
    anywhere.create("users")
    staged = stage(anywhere, "users")
    content = anywhere.storage.read(staged.staged)

    with watched(anywhere) as seen:
        anywhere.create_table_version(**staged.fields)

    assert seen == [("put_new", staged.final), ("delete", staged.staged)]
    assert anywhere.storage.read(staged.final) == content
    assert staged.staged not in anywhere.storage.files()


def test_create_table_version_unmanaged_step_6_returns_the_version_and_its_final_path(anywhere: Client) -> None:
    anywhere.create("users")
    staged = stage(anywhere, "users")

    version = anywhere.create_table_version(**staged.fields, metadata={"by": "me"}).version

    assert version.version == 2
    assert version.manifest_path.endswith(staged.final)
    assert version.manifest_size == len(anywhere.storage.read(staged.final))
    assert version.metadata == {"by": "me"}


def test_create_table_version_managed_step_1_a_staged_manifest_is_not_visible(managed: Client) -> None:
    managed.create("users")

    staged = stage(managed, "users")

    assert staged.staged in managed.storage.files()
    assert managed.count_table_rows("users").count == 2
    assert [version.version for version in managed.list_table_versions("users").versions] == [1]


def test_create_table_version_managed_steps_2_to_4_come_in_order(managed: Client) -> None:
    managed.create_namespace("prod")
    managed.create("prod", "users")
    staged = stage(managed, "prod", "users")

    with watched(managed) as seen:
        managed.create_table_version(**staged.fields)

    commit, finalize, point, discard = seen
    assert commit[0] == "commit"
    assert [row.object_id for row in commit[1].inserts] == ["prod$users$2"]
    assert finalize == ("put_new", staged.final)
    assert point[0] == "commit"
    assert [update.object_id for update in point[1].updates] == ["prod$users$2"]
    assert discard == ("delete", staged.staged)


def test_create_table_version_managed_step_2_the_row_points_at_the_staged_manifest(managed_here: Client) -> None:
    managed_here.create("users")
    staged = stage(managed_here, "users")

    with watched(managed_here) as seen:
        managed_here.create_table_version(**staged.fields, metadata={"by": "me"})

    row = seen[0][1].inserts[0]
    assert row.object_type == "table_version"
    assert row.metadata["manifest_path"] == staged.staged
    assert row.metadata["metadata"] == {"by": "me"}


def test_create_table_version_managed_step_2_the_key_is_not_inserted_twice(managed: Client) -> None:
    managed.create("users")
    staged = stage(managed, "users")
    managed.create_table_version(**staged.fields)
    managed.storage.write(staged.staged, b"another manifest")

    with refused(TableVersionAlreadyExistsError, 12):
        managed.create_table_version(**staged.fields)

    assert sorted(managed.manifest().to_table()["object_id"].to_pylist()) == ["users", "users$1", "users$2"]
    assert managed.count_table_rows("users").count == 4


def test_create_table_version_managed_step_2_completes_the_commit(managed_here: Client) -> None:
    managed_here.create("users")
    staged = stage(managed_here, "users")
    files = managed_here.inside.files

    def fail(path: str, content: bytes = b"") -> bool:
        raise OSError("the process dies here")

    files.put_new = fail
    with pytest.raises(OSError, match="dies here"):
        managed_here.create_table_version(**staged.fields)
    del files.put_new

    assert managed_here.describe_table("users", load_detailed_metadata=True).version == 2
    assert managed_here.count_table_rows("users").count == 4


@pytest.mark.parametrize("v2_names", [True, False])
def test_create_table_version_managed_step_3_readers_without_the_catalog_find_it(
    managed_here: Client, v2_names: bool
) -> None:
    write_plainly(managed_here.place, "users.lance", enable_v2_manifest_paths=v2_names)
    managed_here.register_table("users", location="users.lance")
    staged = stage(managed_here, "users")

    managed_here.create_table_version(**staged.fields)

    assert lance.dataset(f"{managed_here.place.root}/users.lance").version == 2
    assert staged.final in managed_here.storage.files()
    assert ("18446744073709551613.manifest" in staged.final) == v2_names


def test_create_table_version_managed_step_4_the_row_points_at_the_final_manifest(managed: Client) -> None:
    managed.create("users")
    staged = stage(managed, "users")

    answer = managed.create_table_version(**staged.fields)

    stored = json.loads(managed.manifest_rows()["users$2"]["metadata"])
    assert stored["manifest_path"] == staged.final
    assert stored["manifest_size"] == len(managed.storage.read(staged.final))
    assert answer.version.manifest_path.endswith(staged.final)


def test_create_table_version_management_is_a_root_property_of_v2(v1: Client, v2: Client) -> None:
    v2.manage_versions()
    assert v2.manifest().metadata["table_version_management"] == "true"
    v1.create("users")

    v1.create_table_version(**stage(v1, "users").fields)

    assert v2.manifest_rows() == {}


@pytest.mark.quick
def test_create_table_version_is_what_pylance_calls_to_commit(managed: Client) -> None:
    options = {"namespace_client": managed.namespace, "table_id": ["users"]}
    options["storage_options"] = managed.place.storage_options
    lance.write_dataset(rows(1), mode="create", **options)
    lance.write_dataset(rows(2), mode="append", **options)

    assert sorted(managed.manifest_rows()) == ["users", "users$1", "users$2"]
    assert managed.count_table_rows("users").count == 2


def test_create_table_version_of_a_table_from_before_management_keeps_its_history(managed_here: Client) -> None:
    catalog = Client(Place(managed_here.place.root + "/old"))
    catalog.create("users")
    catalog.insert_into_table("users", data=rows(3))
    catalog.manage_versions()

    catalog.insert_into_table("users", data=rows(4))

    assert [version.version for version in catalog.list_table_versions("users").versions] == [1, 2, 3]
    assert catalog.count_table_rows("users", version=1).count == 2
    assert catalog.count_table_rows("users").count == 4


def test_create_table_version_of_a_table_from_before_management_does_not_repeat_a_version(client: Client) -> None:
    client.create("users")
    client.insert_into_table("users", data=rows(3))
    staged = stage(client, "users")
    client.manage_versions()
    client.storage.move(staged.staged, "users.lance/_versions/2.manifest-again")

    with refused(TableVersionAlreadyExistsError, 12):
        client.create_table_version("users", version=2, manifest_path="users.lance/_versions/2.manifest-again")

    assert client.count_table_rows("users").count == 3


def test_create_table_version_error_4_if_the_table_does_not_exist(any_mode: Client) -> None:
    with refused(TableNotFoundError, 4):
        any_mode.create_table_version("users", version=1, manifest_path="users.lance/_versions/1.manifest-x")


def test_create_table_version_error_1_if_the_namespace_does_not_exist(any_mode: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        any_mode.create_table_version("prod", "users", version=1, manifest_path="x/_versions/1.manifest-x")


def test_create_table_version_error_12_is_of_our_own_class(managed_here: Client) -> None:
    managed_here.create("users")
    staged = stage(managed_here, "users")
    managed_here.storage.move(staged.staged, "users.lance/_versions/1.manifest-again")

    with refused(TableVersionAlreadyExistsError, 12):
        managed_here.create_table_version("users", version=1, manifest_path="users.lance/_versions/1.manifest-again")


def test_create_table_version_error_14_if_another_writer_commits_it_at_once(managed_here: Client) -> None:
    managed_here.create("users")
    mine = stage(managed_here, "users")
    theirs = f"{mine.final}-theirs"
    managed_here.storage.write(theirs, managed_here.storage.read(mine.staged))
    rival = Client(managed_here.place)

    def commit() -> None:
        rival.create_table_version("users", version=2, manifest_path=theirs, metadata={"by": "rival"})

    with interrupted_by(managed_here, commit), refused(ConcurrentModificationError, 14):
        managed_here.create_table_version(**mine.fields)

    assert managed_here.describe_table_version("users", version=2).version.metadata == {"by": "rival"}
    assert sorted(managed_here.manifest().to_table()["object_id"].to_pylist()) == ["users", "users$1", "users$2"]


def test_create_table_version_versions_start_at_1(client: Client) -> None:
    client.create("users")
    staged = stage(client, "users")

    with refused(InvalidInputError, 13):
        client.create_table_version("users", version=0, manifest_path=staged.staged)


def test_create_table_version_of_a_branch_is_not_supported(client: Client) -> None:
    client.create("users")

    with refused(UnsupportedOperationError, 0):
        client.create_table_version(**stage(client, "users").fields, branch="dev")
