"""CreateTable: an Arrow IPC body, and the modes; it locates and registers as 001 says for DeclareTable."""

import pyarrow as pa
import pytest

from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
)
from tests.conformance.catalog.client import Client, interrupted_by, refused, watched, write_plainly
from tests.support.catalogs import ipc, rows


def test_create_table_writes_the_rows_of_its_body(anywhere: Client) -> None:
    answer = anywhere.create_table("users", data=rows(1, 2))

    assert answer.version == 1
    assert answer.location == f"{anywhere.place.root}/users.lance"
    assert anywhere.dataset("users").to_table() == rows(1, 2)


def test_create_table_takes_an_ipc_file_too(client: Client) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows(1).schema) as writer:
        writer.write_table(rows(1))

    client.create_table("users", data=sink.getvalue().to_pybytes())

    assert client.dataset("users").to_table() == rows(1)


def test_create_table_with_no_rows_keeps_the_schema(any_mode: Client) -> None:
    any_mode.create_table("users", data=rows())

    assert any_mode.dataset("users").schema == rows().schema
    assert any_mode.count_table_rows("users").count == 0


def test_create_table_the_row_comes_when_the_data_is_there(client: Client) -> None:
    client.create_namespace("prod")

    with watched(client) as seen:
        client.create("prod", "users")

    (commit,) = [what for kind, what in seen if kind == "commit"]
    assert [row.object_id for row in commit.inserts] == ["prod$users"]
    assert seen[0] == ("commit", commit)
    assert client.count_table_rows("prod", "users").count == 2


def test_create_table_keeps_its_properties(any_mode: Client) -> None:
    any_mode.create("users", properties={"owner": "data"})

    assert any_mode.describe_table("users").properties == {"owner": "data"}


@pytest.mark.parametrize("managed", [False, True])
def test_create_table_over_a_table_sets_its_properties(client: Client, managed: bool) -> None:
    if managed:
        client.manage_versions()
    client.create("users", properties={"owner": "data", "team": "a"})

    answer = client.create("users", data=rows(7), mode="overwrite", properties={"owner": "other"})

    assert client.dataset("users").metadata["owner"] == "other"
    assert client.describe_table("users", load_detailed_metadata=True).version == answer.version


def test_create_table_refuses_a_root_that_is_something_else(any_mode: Client) -> None:
    write_plainly(any_mode.place, ".")
    before = any_mode.storage.files()

    for act in (lambda: any_mode.create("users"), lambda: any_mode.declare_table("users")):
        with refused(InvalidInputError, 13) as caught:
            act()
        assert "_versions" in str(caught.value)

    assert any_mode.storage.files() == before


def test_create_table_refuses_a_root_with_files_of_others_and_no_table(any_mode: Client) -> None:
    any_mode.storage.write("part-0.parquet")

    with refused(InvalidInputError, 13):
        any_mode.create("users")

    assert any_mode.storage.files() == {"part-0.parquet"}


def test_create_table_takes_a_root_that_is_a_catalog_with_notes_in_it(any_mode: Client) -> None:
    any_mode.create("first")
    any_mode.storage.write("README.md")

    any_mode.create("users")

    assert any_mode.tables() == ["first", "users"]


@pytest.mark.parametrize("managed", [False, True])
@pytest.mark.parametrize("body", [b"", b"not arrow", ipc(pa.table({"s": ["x" * 10_000] * 100}))[:5000]])
def test_create_table_error_13_for_a_broken_body_and_nothing_remains(
    client: Client, body: bytes, managed: bool
) -> None:
    if managed:
        client.manage_versions()

    with refused(InvalidInputError, 13):
        client.create_table("users", data=body)

    assert client.tables() == []
    assert not any(path.startswith("users.lance") for path in client.storage.files())


def test_create_table_error_1_if_the_parent_does_not_exist(any_mode: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        any_mode.create("prod", "users")

    assert not any("users" in path for path in any_mode.storage.files())


@pytest.mark.parametrize("mode", [None, "create", "Create", "CREATE"])
def test_create_table_mode_create_error_5_if_it_exists(any_mode: Client, mode: str | None) -> None:
    any_mode.create("users", mode=mode)

    with refused(TableAlreadyExistsError, 5):
        any_mode.create("users", mode=mode, data=rows(9))

    assert any_mode.count_table_rows("users").count == 2


@pytest.mark.parametrize("mode", ["exist_ok", "ExistOk", "EXIST_OK"])
def test_create_table_mode_exist_ok_keeps_the_table(any_mode: Client, mode: str) -> None:
    any_mode.create("users", mode=mode)
    answer = any_mode.create("users", mode=mode, data=rows(9))

    assert answer.location == any_mode.describe_table("users").location
    assert any_mode.dataset("users").to_table() == rows(1, 2)


@pytest.mark.parametrize("mode", ["overwrite", "Overwrite", "OVERWRITE"])
def test_create_table_mode_overwrite_is_a_new_version_in_the_same_place(any_mode: Client, mode: str) -> None:
    any_mode.create("users", mode=mode)
    place = any_mode.location("users")
    answer = any_mode.create("users", mode=mode, data=pa.table({"other": [1]}))

    assert answer.version == 2
    assert any_mode.location("users") == place
    assert any_mode.dataset("users").to_table() == pa.table({"other": [1]})
    assert any_mode.dataset("users", version=1).count_rows() == 2


def test_create_table_mode_overwrite_on_either_storage_and_with_managed_versions(managed: Client) -> None:
    managed.create("users")
    managed.create("users", mode="overwrite", data=rows(9))

    assert managed.count_table_rows("users").count == 1
    assert [version.version for version in managed.list_table_versions("users").versions] == [1, 2]


def test_create_table_an_unknown_mode_is_refused(client: Client) -> None:
    with refused(InvalidInputError, 13):
        client.create("users", mode="append")

    assert client.tables() == []


@pytest.mark.parametrize("mode", ["create", "exist_ok", "overwrite"])
def test_create_table_fills_a_declared_table_in_every_mode(any_mode: Client, mode: str) -> None:
    declared = any_mode.declare_table("users").location
    answer = any_mode.create("users", mode=mode)

    assert answer.location == declared
    assert any_mode.count_table_rows("users").count == 2
    assert not any(".lance-reserved" in path for path in any_mode.storage.files())


def test_create_table_error_14_if_another_writer_creates_it_at_once(v2: Client) -> None:
    v2.create_namespace("prod")
    rival = Client(v2.place)

    meanwhile = interrupted_by(v2, lambda: rival.create("prod", "users", data=rows(7)))
    with meanwhile, refused(ConcurrentModificationError, 14):
        v2.create("prod", "users")

    location = v2.location("prod", "users")
    assert v2.dataset("prod", "users").to_table() == rows(7)
    assert {path.split("/")[0] for path in v2.storage.files()} == {"__manifest", location}


def test_create_table_error_5_if_a_namespace_has_the_name(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")

    for mode in ("create", "exist_ok", "overwrite"):
        with refused(TableAlreadyExistsError, 5):
            with_manifest.create("prod", mode=mode)
