"""BatchCommitTables: several operations on several tables, all of them or none."""

import pytest
from lance_namespace import (
    BatchDeleteTableVersionsRequest,
    CreateTableVersionRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
)
from lance_namespace_urllib3_client.models import CommitTableOperation, VersionRange

from lancepart.errors import (
    InvalidInputError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableVersionAlreadyExistsError,
    UnsupportedOperationError,
)
from tests.conformance.catalog.client import Client, refused, stage, watched
from tests.support.catalogs import rows


def declare(*path: str) -> CommitTableOperation:
    return CommitTableOperation(declare_table=DeclareTableRequest(id=list(path)))


def deregister(*path: str) -> CommitTableOperation:
    return CommitTableOperation(deregister_table=DeregisterTableRequest(id=list(path)))


def create_version(**fields: object) -> CommitTableOperation:
    return CommitTableOperation(create_table_version=CreateTableVersionRequest(**fields))


def delete_versions(*path: str, start: int, end: int, **fields: object) -> CommitTableOperation:
    chosen = [VersionRange(start_version=start, end_version=end)]
    request = BatchDeleteTableVersionsRequest(id=list(path), ranges=chosen, **fields)
    return CommitTableOperation(delete_table_versions=request)


def test_batch_commit_tables_does_all_in_one_commit(managed: Client) -> None:
    for name in ("a", "b", "gone"):
        managed.create(name)
    managed.insert_into_table("b", data=rows(3))
    staged = stage(managed, "a")
    operations = [declare("new"), create_version(**staged.fields), delete_versions("b", start=1, end=2)]

    with watched(managed) as seen:
        answer = managed.batch_commit_tables(operations=[*operations, deregister("gone")])

    first = next(what for kind, what in seen if kind == "commit")
    assert {row.object_id for row in first.inserts} == {"new", "a$2"}
    assert set(first.deletes) == {"b$1", "gone", "gone$1"}
    assert set(managed.manifest_rows()) == {"a", "a$1", "a$2", "b", "b$2", "new"}
    assert managed.tables() == ["a", "b", "new"]
    assert managed.count_table_rows("a").count == 4
    declared, created, deleted, deregistered = answer.results
    assert declared.declare_table.location.endswith("/new.lance")
    assert created.create_table_version.version.version == 2
    assert deleted.delete_table_versions.deleted_count == 1
    assert deregistered.deregister_table.location.endswith("/gone.lance")


@pytest.mark.parametrize(
    ("failing", "error", "code"),
    [
        (declare("a"), TableAlreadyExistsError, 5),
        (declare("no", "such"), NamespaceNotFoundError, 1),
        (declare("a/b"), InvalidInputError, 13),
        (deregister("missing"), TableNotFoundError, 4),
        (create_version(id=["a"], version=1, manifest_path="a.lance/_versions/x"), TableVersionAlreadyExistsError, 12),
        (CommitTableOperation(), InvalidInputError, 13),
        (declare("new"), TableAlreadyExistsError, 5),
    ],
)
def test_batch_commit_tables_does_nothing_if_one_fails(
    managed_here: Client, failing: CommitTableOperation, error: type, code: int
) -> None:
    for name in ("a", "kept"):
        managed_here.create(name)
    managed_here.storage.write("a.lance/_versions/x", b"x")
    before = managed_here.manifest_rows()
    files = {path for path in managed_here.storage.files() if not path.startswith("__manifest")}

    with refused(error, code):
        managed_here.batch_commit_tables(operations=[declare("new"), deregister("kept"), failing])

    assert managed_here.manifest_rows() == before
    assert managed_here.tables() == ["a", "kept"]
    assert {path for path in managed_here.storage.files() if not path.startswith("__manifest")} == files


def test_batch_commit_tables_needs_the_manifest(v1: Client) -> None:
    with refused(UnsupportedOperationError, 0):
        v1.batch_commit_tables(operations=[declare("new")])


def test_batch_commit_tables_versions_need_management(client: Client) -> None:
    client.create("a")

    for operation in (create_version(**stage(client, "a").fields), delete_versions("a", start=1, end=2)):
        with refused(UnsupportedOperationError, 0):
            client.batch_commit_tables(operations=[declare("new"), operation])

    assert client.tables() == ["a"]


def test_batch_commit_tables_of_nothing_is_nothing(client: Client) -> None:
    assert client.batch_commit_tables(operations=[]).results == []
