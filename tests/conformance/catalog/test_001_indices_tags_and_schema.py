"""Indices, tags, schema changes and statistics of one table."""

import pyarrow as pa
import pytest
from lance_namespace_urllib3_client.models import AddColumnsEntry, AlterColumnsEntry, UpdateFieldMetadataEntry

from lancepart.errors import (
    InvalidInputError,
    TableColumnNotFoundError,
    TableIndexAlreadyExistsError,
    TableIndexNotFoundError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)
from tests.conformance.catalog.client import Client, refused
from tests.support.catalogs import rows


@pytest.fixture
def users(client: Client) -> Client:
    client.create("users")
    return client


def names(client: Client, **fields: object) -> list[str]:
    return [index.index_name for index in client.list_table_indices("users", **fields).indexes]


@pytest.mark.parametrize(
    ("kind", "column"),
    [("BTREE", "id"), ("bitmap", "id"), ("ZONEMAP", "id"), ("BLOOMFILTER", "id"), ("NGRAM", "name"), ("FTS", "name")],
)
def test_create_table_index_of_every_scalar_kind(users: Client, kind: str, column: str) -> None:
    users.create_table_index("users", column=column, index_type=kind)

    (index,) = users.list_table_indices("users").indexes
    assert (index.index_name, index.columns, index.status) == (f"{column}_idx", [column], "SUCCEEDED")
    assert users.count_table_rows("users", predicate="id = 1").count == 1


def test_create_table_index_of_a_list_column(client: Client) -> None:
    client.create("users", data=pa.table({"labels": [["a"], ["b", "c"]]}))

    client.create_table_scalar_index("users", column="labels", index_type="LABEL_LIST", name="mine")

    assert names(client) == ["mine"]


@pytest.mark.parametrize(
    ("fields", "error", "code"),
    [
        ({"column": "other", "index_type": "BTREE"}, TableColumnNotFoundError, 12),
        ({"column": "id", "index_type": "MAGIC"}, InvalidInputError, 13),
        ({"column": "id", "index_type": "BTREE", "name": "taken"}, TableIndexAlreadyExistsError, 7),
        ({"column": "name", "index_type": "IVF_PQ"}, InvalidInputError, 13),
    ],
)
def test_create_table_index_what_can_not_be_built_is_refused(
    users: Client, fields: dict[str, str], error: type, code: int
) -> None:
    users.create_table_index("users", column="id", index_type="BTREE", name="taken")

    with refused(error, code):
        users.create_table_index("users", **fields)

    assert names(users) == ["taken"]


def test_create_table_scalar_index_refuses_a_vector_index(users: Client) -> None:
    with refused(InvalidInputError, 13):
        users.create_table_scalar_index("users", column="id", index_type="IVF_PQ")


def test_list_table_indices_pages_by_token_and_limit(users: Client) -> None:
    for name in ("c", "a", "b"):
        users.create_table_index("users", column="id", index_type="BTREE", name=name)

    first = users.list_table_indices("users", limit=2)

    assert [index.index_name for index in first.indexes] == ["a", "b"]
    assert names(users, limit=2, page_token=first.page_token) == ["c"]
    with refused(InvalidInputError, 13):
        users.list_table_indices("users", limit=0)


def test_describe_table_index_stats_says_what_is_covered(users: Client) -> None:
    users.create_table_index("users", column="id", index_type="BTREE")
    users.insert_into_table("users", data=rows(3))

    stats = users.describe_table_index_stats("users", index_name="id_idx")

    assert (stats.num_indexed_rows, stats.num_unindexed_rows, stats.index_type) == (2, 1, "BTree")
    with refused(TableIndexNotFoundError, 6):
        users.describe_table_index_stats("users", index_name="other")


def test_drop_table_index_removes_it(users: Client) -> None:
    users.create_table_index("users", column="id", index_type="BTREE")

    users.drop_table_index("users", index_name="id_idx")

    assert names(users) == []
    with refused(TableIndexNotFoundError, 6):
        users.drop_table_index("users", index_name="id_idx")


def test_table_tags_are_created_moved_and_deleted(anywhere: Client) -> None:
    anywhere.create("users")
    anywhere.insert_into_table("users", data=rows(3))
    anywhere.create_table_tag("users", tag="live", version=1)
    assert anywhere.get_table_tag_version("users", tag="live").version == 1

    anywhere.update_table_tag("users", tag="live", version=2)
    assert anywhere.get_table_tag_version("users", tag="live").version == 2

    anywhere.delete_table_tag("users", tag="live")
    assert anywhere.list_table_tags("users").tags == {}


def test_table_tags_with_managed_versions(managed_here: Client) -> None:
    managed_here.create("users")
    managed_here.insert_into_table("users", data=rows(3))

    managed_here.create_table_tag("users", tag="first", version=1)

    assert managed_here.describe_table("users", tag="first").version == 1


def test_list_table_tags_pages_by_token_and_limit(users: Client) -> None:
    for tag in ("c", "a", "b"):
        users.create_table_tag("users", tag=tag, version=1)

    first = users.list_table_tags("users", limit=2)
    second = users.list_table_tags("users", limit=2, page_token=first.page_token)

    assert (sorted(first.tags), sorted(second.tags), second.page_token) == (["a", "b"], ["c"], None)
    assert first.tags["a"].version == 1


def test_table_tags_errors(users: Client) -> None:
    users.create_table_tag("users", tag="live", version=1)

    with refused(TableTagAlreadyExistsError, 9):
        users.create_table_tag("users", tag="live", version=1)
    with refused(TableVersionNotFoundError, 11):
        users.create_table_tag("users", tag="next", version=2)
    with refused(TableVersionNotFoundError, 11):
        users.update_table_tag("users", tag="live", version=2)
    for operation, fields in (
        ("get_table_tag_version", {}),
        ("update_table_tag", {"version": 1}),
        ("delete_table_tag", {}),
    ):
        with refused(TableTagNotFoundError, 8):
            getattr(users, operation)("users", tag="next", **fields)

    assert list(users.list_table_tags("users").tags) == ["live"]


def test_alter_table_add_columns_computes_them(users: Client) -> None:
    answer = users.alter_table_add_columns("users", new_columns=[AddColumnsEntry(name="twice", expression="id * 2")])

    assert answer.version == 2
    assert users.dataset("users").to_table()["twice"].to_pylist() == [2, 4]


def test_alter_table_add_columns_what_can_not_be_added_is_refused(users: Client) -> None:
    for entry, error, code in (
        (AddColumnsEntry(name="name", expression="'x'"), InvalidInputError, 13),
        (AddColumnsEntry(name="bad", expression="no such"), InvalidInputError, 13),
        (AddColumnsEntry(name="virtual"), UnsupportedOperationError, 0),
    ):
        with refused(error, code):
            users.alter_table_add_columns("users", new_columns=[entry])

    assert users.dataset("users").schema.names == ["id", "name"]


def test_alter_table_alter_columns_renames_retypes_and_allows_null(client: Client) -> None:
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), pa.field("name", pa.string())])
    client.create("users", data=pa.table({"id": [1], "name": ["a"]}, schema=schema))

    client.alter_table_alter_columns(
        "users",
        alterations=[
            AlterColumnsEntry(path="id", data_type={"type": "int64"}, nullable=True),
            AlterColumnsEntry(path="name", rename="title"),
        ],
    )

    after = client.dataset("users").schema
    assert after.names == ["id", "title"]
    assert (after.field("id").type, after.field("id").nullable) == (pa.int64(), True)
    with refused(TableColumnNotFoundError, 12):
        client.alter_table_alter_columns("users", alterations=[AlterColumnsEntry(path="name", rename="x")])


def test_alter_table_drop_columns_removes_them(users: Client) -> None:
    users.alter_table_drop_columns("users", columns=["name"])

    assert users.dataset("users").schema.names == ["id"]
    with refused(TableColumnNotFoundError, 12):
        users.alter_table_drop_columns("users", columns=["name"])


def test_update_table_schema_metadata_sets_entries(users: Client) -> None:
    users.update_table_schema_metadata("users", metadata={"owner": "data"})
    answer = users.update_table_schema_metadata("users", metadata={"team": "x"})

    assert answer.metadata == {"owner": "data", "team": "x"}
    assert users.dataset("users").schema.metadata == {b"owner": b"data", b"team": b"x"}


def test_update_field_metadata_sets_merges_replaces_and_reaches_nested_fields(client: Client) -> None:
    client.create("users", data=pa.table({"id": [1], "home": [{"city": "x"}]}))
    set_one = UpdateFieldMetadataEntry(path="home.city", metadata={"unit": "name"})
    merged = UpdateFieldMetadataEntry(path="home.city", metadata={"lang": "en"})
    replaced = UpdateFieldMetadataEntry(path="home.city", metadata={"only": "this"}, replace=True)

    client.update_field_metadata("users", updates=[set_one])
    both = client.update_field_metadata("users", updates=[merged])
    last = client.update_field_metadata("users", updates=[replaced])

    assert both.fields == {"home.city": {"unit": "name", "lang": "en"}}
    assert last.fields == {"home.city": {"only": "this"}}
    with refused(TableColumnNotFoundError, 12):
        client.update_field_metadata("users", updates=[UpdateFieldMetadataEntry(path="home.street", metadata={})])


def test_get_table_stats_counts_rows_bytes_fragments_and_indices(users: Client) -> None:
    users.insert_into_table("users", data=rows(3))
    users.create_table_index("users", column="id", index_type="BTREE")

    stats = users.get_table_stats("users")

    assert (stats.num_rows, stats.num_indices, stats.fragment_stats.num_fragments) == (3, 1, 2)
    assert stats.total_bytes > 0
    assert (stats.fragment_stats.lengths.min, stats.fragment_stats.lengths.max) == (1, 2)
