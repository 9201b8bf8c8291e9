"""001, «DropTable»."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest

from lancepart.errors import InternalError, NamespaceNotFoundError, PermissionDeniedError, TableNotFoundError
from tests.conformance.catalog.client import Client, refused, watched, write_plainly
from tests.support.catalogs import Place, rows

_DROP_AS_NOBODY = """
import json, os, sys
from lance_namespace import DropTableRequest, TableExistsRequest
from lancepart import DirectoryNamespace
path, properties = json.loads(sys.argv[1])
catalog = DirectoryNamespace(**properties)
catalog.table_exists(TableExistsRequest(id=path))
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    catalog.drop_table(DropTableRequest(id=path))
except Exception as error:
    print(json.dumps([type(error).__name__, int(error.code)]))
"""


@pytest.fixture
def readable_by_all() -> Iterator[Place]:
    """A root that other users reach too; pytest's own directories are closed to them."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        yield Place(f"{directory}/root")


def drop_as_nobody(client: Client, *path: str, **properties: str) -> list[object]:
    """Drop a table in a process that may read all and write nothing; the error that it gets."""
    root = Path(client.place.root)
    inside = [root, *root.rglob("*")]
    for item in inside:
        item.chmod(0o555 if item.is_dir() else 0o444)
    argument = json.dumps([path, {"root": str(root), **properties}])
    done = subprocess.run([sys.executable, "-c", _DROP_AS_NOBODY, argument], stdout=subprocess.PIPE, check=True)
    for item in inside:
        item.chmod(0o755)
    return json.loads(done.stdout)


def test_drop_table_v1_step_1_looks_for_the_directory(v1: Client) -> None:
    write_plainly(v1.place, "users.lance")

    assert v1.drop_table("users").location == f"{v1.place.root}/users.lance"


def test_drop_table_v1_step_2_deletes_the_directory_and_all_in_it(place: Place) -> None:
    v1 = Client(place, manifest_enabled="false")
    v1.create("users")
    v1.create("other")
    v1.storage.write("users.lance/deep/down/notes.txt")

    v1.drop_table("users")

    assert {path.split("/")[0] for path in v1.storage.files()} == {"other.lance"}


def test_drop_table_v1_step_3_a_drop_that_failed_midway_is_retried(v1: Client) -> None:
    v1.create("users")
    loop = f"{v1.place.root}/users.lance/data/loop"
    os.symlink("loop", loop)
    with refused(InternalError, 18):
        v1.drop_table("users")
    assert v1.storage.files("users.lance")

    os.unlink(loop)
    v1.drop_table("users")

    assert v1.storage.files() == set()


def test_drop_table_v2_step_1_the_manifest_says_where_the_table_is(v2: Client) -> None:
    write_plainly(v2.place, "users.lance")
    write_plainly(v2.place, "elsewhere")
    v2.register_table("users", location="elsewhere")

    assert v2.drop_table("users").location == f"{v2.place.root}/elsewhere"
    assert any(path.startswith("users.lance/") for path in v2.storage.files())


@pytest.mark.quick
def test_drop_table_v2_step_2_then_3_the_row_goes_before_the_directory(anywhere: Client) -> None:
    anywhere.create_namespace("prod")
    anywhere.create("prod", "users")
    location = anywhere.location("prod", "users")

    with watched(anywhere) as seen:
        anywhere.drop_table("prod", "users")

    steps = [(kind, what) for kind, what in seen if kind in ("commit", "delete_directory")]
    assert [kind for kind, _ in steps] == ["commit", "delete_directory"]
    assert steps[0][1].deletes == ("prod$users",)
    assert steps[1][1] == location
    assert seen[0][0] == "commit"
    assert {path.split("/")[0] for path in anywhere.storage.files()} == {"__manifest"}


def test_drop_table_v2_step_2_takes_the_rows_of_its_versions(managed: Client) -> None:
    managed.create("users")
    managed.insert_into_table("users", data=rows(3))

    managed.drop_table("users")

    assert managed.manifest_rows() == {}


def test_drop_table_v2_step_3_a_failure_to_delete_does_not_fail_the_drop(v2: Client) -> None:
    v2.create("users")
    location = v2.location("users")
    os.symlink("loop", f"{v2.place.root}/{location}/data/loop")

    v2.drop_table("users")

    assert v2.tables() == []
    assert v2.storage.files(location)
    v2.create("users")
    assert v2.count_table_rows("users").count == 2


def test_drop_table_with_both_ways_remains_of_a_failed_deletion_are_no_table(client: Client) -> None:
    client.create("users")
    os.symlink("loop", f"{client.place.root}/users.lance/data/loop")

    client.drop_table("users")

    assert client.tables() == []
    with refused(TableNotFoundError, 4):
        client.describe_table("users")
    client.create("users")
    assert client.count_table_rows("users").count == 2


def test_drop_table_with_both_ways_a_table_of_the_manifest_follows_v2(client: Client) -> None:
    client.create("users")

    with watched(client) as seen:
        client.drop_table("users")

    kinds = [kind for kind, _ in seen]
    assert kinds.index("commit") < kinds.index("delete_directory")
    assert client.tables() == []


def test_drop_table_with_both_ways_a_table_of_the_listing_follows_v1(anywhere: Client) -> None:
    write_plainly(anywhere.place, "users.lance")

    anywhere.drop_table("users")

    assert anywhere.storage.files() == set()


def test_drop_table_a_declared_table(any_mode: Client) -> None:
    any_mode.declare_table("users")

    any_mode.drop_table("users")

    assert any_mode.tables() == []
    assert not any(".lance-reserved" in path for path in any_mode.storage.files())


def test_drop_table_a_deregistered_table_of_the_root(with_listing: Client) -> None:
    with_listing.create("users")
    with_listing.deregister_table("users")

    with_listing.drop_table("users")

    assert not any(path.startswith("users.lance") for path in with_listing.storage.files())


def test_drop_table_returns_id_location_and_properties(with_manifest: Client) -> None:
    with_manifest.create("users", properties={"owner": "data"})
    location = with_manifest.describe_table("users").location

    answer = with_manifest.drop_table("users")

    assert (answer.id, answer.location, answer.properties) == (["users"], location, {"owner": "data"})


def test_drop_table_error_1_if_the_parent_does_not_exist(any_mode: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        any_mode.drop_table("prod", "users")


def test_drop_table_error_4_if_the_table_does_not_exist(any_mode: Client) -> None:
    with refused(TableNotFoundError, 4):
        any_mode.drop_table("users")
    any_mode.create("users")
    any_mode.drop_table("users")

    with refused(TableNotFoundError, 4):
        any_mode.drop_table("users")


def test_drop_table_error_4_for_a_namespace(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")

    with refused(TableNotFoundError, 4):
        with_manifest.drop_table("prod")

    assert with_manifest.namespaces() == ["prod"]


@pytest.mark.slow
@pytest.mark.parametrize("manifest_enabled", ["false", "true"])
def test_drop_table_error_15_if_the_file_system_denies_it(readable_by_all: Place, manifest_enabled: str) -> None:
    catalog = Client(readable_by_all, manifest_enabled=manifest_enabled)
    catalog.create("users")

    error = drop_as_nobody(catalog, "users", manifest_enabled=manifest_enabled)

    assert error == ["PermissionDeniedError", 15]
    assert catalog.count_table_rows("users").count == 2


def test_drop_table_error_15_if_the_operation_is_not_permitted(v1: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    v1.create("users")

    def denied(*arguments: object) -> None:
        raise OSError("Generic LocalFileSystem error: Unable to delete file: Operation not permitted (os error 1)")

    monkeypatch.setattr(obstore, "delete", denied)
    with refused(PermissionDeniedError, 15):
        v1.drop_table("users")


def test_drop_table_error_18_if_the_file_system_fails_otherwise(v1: Client) -> None:
    v1.create("users")
    os.symlink("loop", f"{v1.place.root}/users.lance/data/loop")

    with refused(InternalError, 18) as caught:
        v1.drop_table("users")

    assert "users.lance" in str(caught.value)
