"""001, «DescribeTable», and TableExists beside it."""

import lance
import pyarrow as pa
import pytest

from lancepart.errors import (
    InvalidInputError,
    InvalidTableStateError,
    NamespaceNotFoundError,
    TableNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)
from tests.conformance.catalog.client import Client, refused, write_plainly
from tests.support.catalogs import rows


def test_describe_table_step_1_in_v1_looks_for_the_directory(v1: Client) -> None:
    write_plainly(v1.place, "users.lance")

    assert v1.describe_table("users").location == f"{v1.place.root}/users.lance"


def test_describe_table_step_1_in_v2_asks_the_manifest_only(v2: Client) -> None:
    write_plainly(v2.place, "users.lance")
    with refused(TableNotFoundError, 4):
        v2.describe_table("users")

    write_plainly(v2.place, "somewhere/else")
    v2.register_table("users", location="somewhere/else")

    assert v2.describe_table("users").location == f"{v2.place.root}/somewhere/else"


def test_describe_table_step_1_with_both_ways_asks_the_manifest_then_the_directory(anywhere: Client) -> None:
    write_plainly(anywhere.place, "users.lance")
    assert anywhere.describe_table("users").location == f"{anywhere.place.root}/users.lance"

    anywhere.declare_table("tables", location="elsewhere")
    write_plainly(anywhere.place, "tables.lance")

    assert anywhere.describe_table("tables").location == f"{anywhere.place.root}/elsewhere"


def test_describe_table_step_2_and_3_opens_the_table_and_returns_name_schema_version_location(any_mode: Client) -> None:
    data = pa.table({"id": pa.array([1], pa.int64()), "at": pa.array([0], pa.timestamp("us", "UTC"))})
    any_mode.create("users", data=data)
    any_mode.insert_into_table("users", data=data)

    answer = any_mode.describe_table("users", load_detailed_metadata=True)

    assert (answer.table, answer.namespace, answer.version) == ("users", [], 2)
    assert [field.name for field in answer.var_schema.fields] == ["id", "at"]
    assert answer.var_schema.fields[0].type.type == "int64"
    assert lance.dataset(answer.location).count_rows() == 2
    assert (answer.stats.num_fragments, answer.stats.num_deleted_rows) == (2, 0)


def test_describe_table_step_3_in_a_child_namespace_on_either_storage(anywhere: Client) -> None:
    anywhere.create_namespace("prod")
    anywhere.create("prod", "users")

    answer = anywhere.describe_table("prod", "users", load_detailed_metadata=True)

    assert (answer.table, answer.namespace, answer.version) == ("users", ["prod"], 1)


def test_describe_table_without_details_does_not_open_the_table(any_mode: Client) -> None:
    any_mode.declare_table("users")

    answer = any_mode.describe_table("users")

    assert answer.location.startswith(any_mode.place.root)
    assert (answer.version, answer.var_schema) == (None, None)


def test_describe_table_error_1_if_the_parent_does_not_exist(any_mode: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        any_mode.describe_table("prod", "users")


def test_describe_table_error_4_if_the_table_does_not_exist(any_mode: Client) -> None:
    with refused(TableNotFoundError, 4):
        any_mode.describe_table("users")


def test_describe_table_error_4_for_a_namespace(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")

    with refused(TableNotFoundError, 4):
        with_manifest.describe_table("prod")


@pytest.mark.parametrize("version", [3, 99])
def test_describe_table_error_11_if_the_version_does_not_exist(any_mode: Client, version: int) -> None:
    any_mode.create("users")

    with refused(TableVersionNotFoundError, 11):
        any_mode.describe_table("users", version=version)


def test_describe_table_error_11_with_managed_versions(managed: Client) -> None:
    managed.create("users")

    with refused(TableVersionNotFoundError, 11):
        managed.describe_table("users", version=2)


def test_describe_table_at_a_version(any_mode: Client) -> None:
    any_mode.create("users")
    any_mode.create("users", mode="overwrite", data=pa.table({"other": [1]}))

    answer = any_mode.describe_table("users", version=1)

    assert answer.version == 1
    assert [field.name for field in answer.var_schema.fields] == ["id", "name"]


def test_describe_table_at_a_tag(any_mode: Client) -> None:
    any_mode.create("users")
    any_mode.insert_into_table("users", data=rows(3))
    any_mode.create_table_tag("users", tag="first", version=1)

    assert any_mode.describe_table("users", tag="first").version == 1
    with refused(TableTagNotFoundError, 8):
        any_mode.describe_table("users", tag="second")
    with refused(InvalidInputError, 13):
        any_mode.describe_table("users", tag="first", version=1)


def test_describe_table_check_declared_tells_declared_from_created(any_mode: Client) -> None:
    any_mode.declare_table("declared")
    any_mode.create("created")

    assert any_mode.describe_table("declared", check_declared=True).is_only_declared is True
    assert any_mode.describe_table("created", check_declared=True).is_only_declared is False
    assert any_mode.describe_table("declared").is_only_declared is None


def test_describe_table_details_of_a_declared_table_are_not_there_and_no_error(any_mode: Client) -> None:
    any_mode.declare_table("users")

    answer = any_mode.describe_table("users", load_detailed_metadata=True)

    assert (answer.is_only_declared, answer.version) == (True, None)
    with refused(InvalidTableStateError, 19):
        any_mode.describe_table("users", version=1)


def test_describe_table_with_table_uri_gives_a_complete_uri(anywhere: Client) -> None:
    anywhere.create_namespace("50% off")
    anywhere.create("50% off", "a b")

    answer = anywhere.describe_table("50% off", "a b", with_table_uri=True)

    assert answer.table_uri.startswith(("file:///", "s3://"))
    assert lance.dataset(answer.table_uri, storage_options=anywhere.place.storage_options).count_rows() == 2
    assert anywhere.describe_table("50% off", "a b").table_uri is None


def test_describe_table_credentials_are_vended_only_when_asked_for(s3_server) -> None:
    catalog = Client(s3_server.place())
    catalog.create("users")

    assert catalog.describe_table("users").storage_options is None
    assert catalog.describe_table("users", vend_credentials=True).storage_options == catalog.place.options


def test_describe_table_says_whether_versions_are_managed(client: Client) -> None:
    client.create("users")
    assert client.describe_table("users").managed_versioning is None

    client.manage_versions()

    assert client.describe_table("users").managed_versioning is True


def test_describe_table_of_a_branch_is_not_supported(client: Client) -> None:
    client.create("users")

    assert client.describe_table("users", branch="main").location is not None
    with refused(UnsupportedOperationError, 0):
        client.describe_table("users", branch="dev")


def test_table_exists_answers_for_declared_and_created_tables(any_mode: Client) -> None:
    any_mode.declare_table("declared")
    any_mode.create("created")

    assert any_mode.table_exists("declared") is not None
    assert any_mode.table_exists("created", version=1) is not None


def test_table_exists_error_4_if_the_table_does_not_exist(any_mode: Client) -> None:
    with refused(TableNotFoundError, 4):
        any_mode.table_exists("users")


def test_table_exists_error_1_if_the_parent_does_not_exist(any_mode: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        any_mode.table_exists("prod", "users")


def test_table_exists_error_11_if_the_version_does_not_exist(any_mode: Client) -> None:
    any_mode.create("users")

    with refused(TableVersionNotFoundError, 11):
        any_mode.table_exists("users", version=2)
