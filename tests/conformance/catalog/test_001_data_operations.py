"""The data operations of the interface that Lance gives for one table: rows in, changed, out."""

import pyarrow as pa
import pytest
from lance_namespace_urllib3_client.models import QueryTableRequestVector

from lancepart.errors import (
    InvalidInputError,
    InvalidTableStateError,
    NamespaceNotFoundError,
    TableColumnNotFoundError,
    TableNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)
from tests.conformance.catalog.client import Client, refused
from tests.support.catalogs import ipc, rows

NO_VECTOR = QueryTableRequestVector()

CALLS = {
    "count_table_rows": {},
    "insert_into_table": {"data": ipc(rows(3))},
    "merge_insert_into_table": {"on": ["id"], "when_not_matched_insert_all": True, "data": ipc(rows(3))},
    "update_table": {"updates": [["name", "'x'"]]},
    "delete_from_table": {"predicate": "id = 1"},
    "query_table": {"k": 10, "vector": NO_VECTOR},
    "analyze_table_query_plan": {"k": 10, "vector": NO_VECTOR},
    "create_table_index": {"column": "id", "index_type": "BTREE"},
    "create_table_scalar_index": {"column": "id", "index_type": "BTREE"},
    "list_table_indices": {},
    "get_table_stats": {},
    "restore_table": {"version": 1},
    "alter_table_drop_columns": {"columns": ["name"]},
    "list_table_tags": {},
    "create_table_tag": {"tag": "first", "version": 1},
    "update_table_schema_metadata": {"metadata": {"k": "v"}},
}


def ids(client: Client, *path: str) -> list[int]:
    return sorted(client.dataset(*path).to_table()["id"].to_pylist())


@pytest.mark.parametrize("operation", CALLS)
def test_data_operations_error_4_if_the_table_does_not_exist(any_mode: Client, operation: str) -> None:
    with refused(TableNotFoundError, 4):
        getattr(any_mode, operation)("users", **CALLS[operation])


@pytest.mark.parametrize("operation", CALLS)
def test_data_operations_error_1_if_the_namespace_does_not_exist(client: Client, operation: str) -> None:
    with refused(NamespaceNotFoundError, 1):
        getattr(client, operation)("prod", "users", **CALLS[operation])


@pytest.mark.parametrize("operation", CALLS)
def test_data_operations_error_13_if_the_id_is_invalid(client: Client, operation: str) -> None:
    for path in ([], ["a$b"], ["..", "users"]):
        with refused(InvalidInputError, 13):
            getattr(client, operation)(*path, **CALLS[operation])


@pytest.mark.parametrize("operation", CALLS)
def test_data_operations_a_declared_table_has_no_data_yet(client: Client, operation: str) -> None:
    client.declare_table("users")

    with refused(InvalidTableStateError, 19):
        getattr(client, operation)("users", **CALLS[operation])


def test_count_table_rows_all_of_them_those_that_match_and_those_of_a_version(any_mode: Client) -> None:
    any_mode.create("users")
    any_mode.insert_into_table("users", data=rows(3))

    assert any_mode.count_table_rows("users").count == 3
    assert any_mode.count_table_rows("users", predicate="id > 1").count == 2
    assert any_mode.count_table_rows("users", version=1).count == 2
    with refused(TableVersionNotFoundError, 11):
        any_mode.count_table_rows("users", version=9)
    with refused(InvalidInputError, 13):
        any_mode.count_table_rows("users", predicate="no such column")


@pytest.mark.parametrize("mode", [None, "append", "Append", "APPEND"])
def test_insert_into_table_appends(any_mode: Client, mode: str | None) -> None:
    any_mode.create("users")

    answer = any_mode.insert_into_table("users", mode=mode, data=rows(3, 4))

    assert (answer.num_inserted_rows, answer.version) == (2, 2)
    assert ids(any_mode, "users") == [1, 2, 3, 4]


@pytest.mark.parametrize("mode", ["overwrite", "Overwrite", "OVERWRITE"])
def test_insert_into_table_overwrites(any_mode: Client, mode: str) -> None:
    any_mode.create("users")

    any_mode.insert_into_table("users", mode=mode, data=rows(3))

    assert ids(any_mode, "users") == [3]
    assert any_mode.count_table_rows("users", version=1).count == 2


def test_insert_into_table_on_either_storage_with_managed_versions(managed: Client) -> None:
    managed.create("users")

    managed.insert_into_table("users", data=rows(3))
    managed.insert_into_table("users", data=rows(4))

    assert ids(managed, "users") == [1, 2, 3, 4]
    assert set(managed.manifest_rows()) == {"users", "users$1", "users$2", "users$3"}


@pytest.mark.parametrize("body", [b"", b"not arrow", ipc(pa.table({"s": ["x" * 10_000] * 100}))[:5000]])
def test_insert_into_table_error_13_for_a_broken_body(client: Client, body: bytes) -> None:
    client.create("users")

    with refused(InvalidInputError, 13):
        client.insert_into_table("users", data=body)


def test_insert_into_table_error_13_for_another_schema_or_an_unknown_mode(client: Client) -> None:
    client.create("users")

    with refused(InvalidInputError, 13):
        client.insert_into_table("users", data=pa.table({"other": ["x"]}))
    with refused(InvalidInputError, 13):
        client.insert_into_table("users", mode="upsert", data=rows(3))

    assert ids(client, "users") == [1, 2]


def test_merge_insert_into_table_updates_inserts_and_deletes(anywhere: Client) -> None:
    anywhere.create("users", data=rows(1, 2, 3))
    incoming = pa.table({"id": pa.array([2, 4], pa.int64()), "name": ["new", "new"]})

    answer = anywhere.merge_insert_into_table(
        "users",
        on=["id"],
        when_matched_update_all=True,
        when_not_matched_insert_all=True,
        when_not_matched_by_source_delete=True,
        timeout="30s",
        data=incoming,
    )

    assert (answer.num_updated_rows, answer.num_inserted_rows, answer.num_deleted_rows) == (1, 1, 2)
    assert anywhere.dataset("users").to_table().sort_by("id").to_pydict() == {"id": [2, 4], "name": ["new", "new"]}


def test_merge_insert_into_table_only_as_far_as_asked(client: Client) -> None:
    client.create("users", data=rows(1, 2))
    incoming = pa.table({"id": pa.array([2, 4], pa.int64()), "name": ["new", "new"]})

    client.merge_insert_into_table("users", on=["id"], when_not_matched_insert_all=True, data=incoming)

    assert client.dataset("users").to_table().sort_by("id")["name"].to_pylist() == ["n1", "n2", "new"]


def test_merge_insert_into_table_filters(client: Client) -> None:
    client.create("users", data=rows(1, 2, 3))
    incoming = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["new", "new"]})

    client.merge_insert_into_table(
        "users",
        on=["id"],
        when_matched_update_all=True,
        when_matched_update_all_filt="target.id > 1",
        when_not_matched_by_source_delete=True,
        when_not_matched_by_source_delete_filt="id > 2",
        data=incoming,
    )

    assert client.dataset("users").to_table().sort_by("id")["name"].to_pylist() == ["n1", "new"]


@pytest.mark.parametrize(
    ("fields", "error", "code"),
    [
        ({"on": ["other"], "when_not_matched_insert_all": True}, TableColumnNotFoundError, 12),
        ({"on": ["id"], "when_not_matched_insert_all": True, "timeout": "soon"}, InvalidInputError, 13),
        ({"on": ["id"]}, InvalidInputError, 13),
    ],
)
def test_merge_insert_into_table_what_can_not_be_meant_is_refused(
    client: Client, fields: dict[str, object], error: type, code: int
) -> None:
    client.create("users")

    with refused(error, code):
        client.merge_insert_into_table("users", data=rows(3), **fields)

    assert ids(client, "users") == [1, 2]


def test_update_table_sets_columns_by_expression(anywhere: Client) -> None:
    anywhere.create("users")

    answer = anywhere.update_table("users", predicate="id = 2", updates=[["name", "name || '!'"]])

    assert answer.updated_rows == 1
    assert anywhere.dataset("users").to_table().sort_by("id")["name"].to_pylist() == ["n1", "n2!"]


@pytest.mark.parametrize(
    ("fields", "error", "code"),
    [
        ({"updates": []}, InvalidInputError, 13),
        ({"updates": [["other", "1"]]}, TableColumnNotFoundError, 12),
        ({"updates": [["name", "'a'"], ["name", "'b'"]]}, InvalidInputError, 13),
        ({"updates": [["name", "no such"]]}, InvalidInputError, 13),
        ({"updates": [["name", "'a'"]], "properties": {"owner": "x"}}, UnsupportedOperationError, 0),
    ],
)
def test_update_table_what_can_not_be_meant_is_refused(
    client: Client, fields: dict[str, object], error: type, code: int
) -> None:
    client.create("users")

    with refused(error, code):
        client.update_table("users", **fields)

    assert client.dataset("users").to_table() == rows(1, 2)


def test_delete_from_table_deletes_what_matches(anywhere: Client) -> None:
    anywhere.create("users")

    answer = anywhere.delete_from_table("users", predicate="id = 1")

    assert answer.version == 2
    assert ids(anywhere, "users") == [2]
    assert anywhere.describe_table("users", load_detailed_metadata=True).stats.num_deleted_rows == 1


@pytest.mark.parametrize("predicate", ["", "  ", "no such column", "id = "])
def test_delete_from_table_error_13_for_a_bad_predicate(client: Client, predicate: str) -> None:
    client.create("users")

    with refused(InvalidInputError, 13):
        client.delete_from_table("users", predicate=predicate)

    assert ids(client, "users") == [1, 2]


@pytest.mark.parametrize("managed", [False, True])
def test_restore_table_makes_an_older_version_the_latest(client: Client, managed: bool) -> None:
    if managed:
        client.manage_versions()
    client.create("users")
    client.delete_from_table("users", predicate="true")

    client.restore_table("users", version=1)

    assert ids(client, "users") == [1, 2]
    assert client.describe_table("users", load_detailed_metadata=True).version == 3
    with refused(TableVersionNotFoundError, 11):
        client.restore_table("users", version=9)


@pytest.mark.parametrize("name", ["it's", 'say "hi"', "two words", "50% off", "😀", "a#b?c*", "select"])
def test_columns_with_any_name_work_in_filters_updates_and_projections(client: Client, name: str) -> None:
    client.create("users", data=pa.table({name: pa.array([1, 2, 3], pa.int64()), "other": ["a", "b", "c"]}))

    assert client.count_table_rows("users", predicate=f"`{name}` > 1").count == 2
    client.update_table("users", predicate=f"`{name}` = 2", updates=[["other", "'it''s'"]])
    client.delete_from_table("users", predicate=f"`{name}` = 1")

    assert client.dataset("users").to_table().sort_by(name).to_pydict() == {name: [2, 3], "other": ["it's", "c"]}
