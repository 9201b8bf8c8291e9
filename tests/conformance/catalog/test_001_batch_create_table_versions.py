"""001, «BatchCreateTableVersions»."""

import json
from typing import Any

import pytest
from lance_namespace_urllib3_client.models import CreateTableVersionEntry

from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableNotFoundError,
    TableVersionAlreadyExistsError,
    UnsupportedOperationError,
)
from tests.conformance.catalog.client import (
    Client,
    StagedVersion,
    interrupted_by,
    refused,
    stage,
    watched,
    write_plainly,
)


def entries(*staged: StagedVersion) -> list[Any]:
    return [CreateTableVersionEntry(**item.fields) for item in staged]


def test_batch_create_table_versions_unmanaged_creates_each_in_turn(any_mode: Client) -> None:
    for name in ("a", "b"):
        any_mode.create(name)
    first, second = stage(any_mode, "a"), stage(any_mode, "b")

    with watched(any_mode) as seen:
        answer = any_mode.batch_create_table_versions(entries=entries(first, second))

    assert [path for kind, path in seen if kind == "put_new"] == [first.final, second.final]
    assert [version.version for version in answer.versions] == [2, 2]
    assert [any_mode.count_table_rows(name).count for name in ("a", "b")] == [4, 4]


def test_batch_create_table_versions_unmanaged_is_not_atomic(client: Client) -> None:
    for name in ("a", "b"):
        client.create(name)
    first, second = stage(client, "a"), stage(client, "b")
    client.storage.write(second.final, client.storage.read(second.staged))

    with refused(TableVersionAlreadyExistsError, 12):
        client.batch_create_table_versions(entries=entries(first, second))

    assert first.final in client.storage.files()


def test_batch_create_table_versions_managed_step_1_staged_manifests_are_not_visible(managed_here: Client) -> None:
    for name in ("a", "b"):
        managed_here.create(name)
        stage(managed_here, name)

    assert [managed_here.count_table_rows(name).count for name in ("a", "b")] == [2, 2]


def test_batch_create_table_versions_managed_steps_2_to_4_come_in_order(managed: Client) -> None:
    for name in ("a", "b"):
        managed.create(name)
    first, second = stage(managed, "a"), stage(managed, "b")

    with watched(managed) as seen:
        managed.batch_create_table_versions(entries=entries(first, second))

    assert [kind for kind, _ in seen] == ["commit", "put_new", "put_new", "commit", "delete", "delete"]
    assert [row.object_id for row in seen[0][1].inserts] == ["a$2", "b$2"]
    assert [path for _, path in seen[1:3]] == [first.final, second.final]
    assert [update.object_id for update in seen[3][1].updates] == ["a$2", "b$2"]
    assert [path for _, path in seen[4:]] == [first.staged, second.staged]
    assert managed.count_table_rows("a").count == managed.count_table_rows("b").count == 4


def test_batch_create_table_versions_managed_step_2_rows_point_at_the_staged_manifests(managed_here: Client) -> None:
    for name in ("a", "b"):
        managed_here.create(name)
    first, second = stage(managed_here, "a"), stage(managed_here, "b")

    with watched(managed_here) as seen:
        managed_here.batch_create_table_versions(entries=entries(first, second))

    rows = seen[0][1].inserts
    assert {row.object_type for row in rows} == {"table_version"}
    assert [row.metadata["manifest_path"] for row in rows] == [first.staged, second.staged]


def test_batch_create_table_versions_managed_step_2_if_any_exists_the_whole_batch_fails(managed: Client) -> None:
    for name in ("a", "b"):
        managed.create(name)
    first, second = stage(managed, "a"), stage(managed, "b")
    managed.create_table_version(**second.fields)
    managed.storage.write(second.staged, b"again")

    with refused(TableVersionAlreadyExistsError, 12):
        managed.batch_create_table_versions(entries=entries(first, second))

    assert "a$2" not in managed.manifest_rows()
    assert managed.count_table_rows("a").count == 2
    assert first.staged in managed.storage.files()


def test_batch_create_table_versions_managed_step_3_and_4_final_files_and_pointers(managed_here: Client) -> None:
    for name in ("a", "b"):
        managed_here.create(name)
    first, second = stage(managed_here, "a"), stage(managed_here, "b")

    managed_here.batch_create_table_versions(entries=entries(first, second))

    rows = managed_here.manifest_rows()
    for item, row in ((first, rows["a$2"]), (second, rows["b$2"])):
        assert json.loads(row["metadata"])["manifest_path"] == item.final
        assert item.final in managed_here.storage.files()
        assert item.staged not in managed_here.storage.files()


@pytest.mark.parametrize("managed", [False, True])
def test_batch_create_table_versions_error_4_if_any_table_does_not_exist(client: Client, managed: bool) -> None:
    client.create("a")
    staged = stage(client, "a")
    if managed:
        client.manage_versions()
    missing = CreateTableVersionEntry(id=["b"], version=1, manifest_path="b.lance/_versions/1.manifest-x")

    with refused(TableNotFoundError, 4):
        client.batch_create_table_versions(entries=[*entries(staged), missing])

    assert client.count_table_rows("a").count == 2


@pytest.mark.parametrize("managed", [False, True])
def test_batch_create_table_versions_error_12_if_any_version_exists(client: Client, managed: bool) -> None:
    if managed:
        client.manage_versions()
    client.create("a")
    staged = stage(client, "a")
    client.create_table_version(**staged.fields)
    client.storage.write(staged.staged, b"again")

    with refused(TableVersionAlreadyExistsError, 12):
        client.batch_create_table_versions(entries=entries(staged))


def test_batch_create_table_versions_error_14_if_another_writer_commits_at_once(managed_here: Client) -> None:
    for name in ("a", "b"):
        managed_here.create(name)
    first, second = stage(managed_here, "a"), stage(managed_here, "b")
    theirs = f"{second.final}-theirs"
    managed_here.storage.write(theirs, managed_here.storage.read(second.staged))
    rival = Client(managed_here.place)

    def commit() -> None:
        rival.create_table_version("b", version=2, manifest_path=theirs)

    with interrupted_by(managed_here, commit), refused(ConcurrentModificationError, 14):
        managed_here.batch_create_table_versions(entries=entries(first, second))

    assert "a$2" not in managed_here.manifest_rows()
    assert managed_here.count_table_rows("b").count == 4


def test_batch_create_table_versions_a_version_named_twice_is_refused(managed_here: Client) -> None:
    managed_here.create("a")
    staged = stage(managed_here, "a")

    with refused(InvalidInputError, 13):
        managed_here.batch_create_table_versions(entries=entries(staged, staged))

    assert "a$2" not in managed_here.manifest_rows()


def test_batch_create_table_versions_of_managed_and_unmanaged_tables_is_refused(managed_here: Client) -> None:
    managed_here.create("managed")
    write_plainly(managed_here.place, "listed.lance")
    batch = entries(stage(managed_here, "managed"), stage(managed_here, "listed"))

    with refused(UnsupportedOperationError, 0):
        managed_here.batch_create_table_versions(entries=batch)

    assert "managed$2" not in managed_here.manifest_rows()
    managed_here.namespace.migrate()
    managed_here.batch_create_table_versions(entries=batch)
    assert {"managed$2", "listed$2"} <= set(managed_here.manifest_rows())
