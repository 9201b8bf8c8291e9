"""004, «V2: Manifest»: layout, schema, root properties, indexes, commits, directories."""

import re
from typing import Any

import lance
import pyarrow as pa
import pytest

from lancepart.errors import (
    InvalidInputError,
    NamespaceAlreadyExistsError,
    TableAlreadyExistsError,
    UnsupportedOperationError,
)
from tests.conformance.catalog.client import Client, interrupted_by, refused, stage
from tests.support.catalogs import Place, rows

PRIMARY_KEY = b"lance-schema:unenforced-primary-key:position"


def test_v2_layout_the_manifest_is_a_lance_table_in_the_namespace_directory(anywhere: Client) -> None:
    anywhere.create_namespace("ns1")

    assert any(path.startswith("__manifest/_versions/") for path in anywhere.storage.files())
    assert anywhere.manifest().count_rows() == 1


def test_v2_layout_root_tables_and_child_tables_stand_where_the_document_shows_them(local: Place) -> None:
    compatible, plain = Client(local), Client(local, dir_listing_enabled="false")
    compatible.create("table1")
    plain.create("table2")
    plain.create_namespace("ns1")
    plain.create("ns1", "table3")

    directories = sorted({path.split("/")[0] for path in plain.storage.files()}, key=lambda name: name[-6:])

    assert "__manifest" in directories
    assert "table1.lance" in directories
    assert any(re.fullmatch(r"[0-9a-f]{8}_table2", name) for name in directories)
    assert any(re.fullmatch(r"[0-9a-f]{8}_ns1\$table3", name) for name in directories)
    assert len(directories) == 4


def test_v2_supports_nested_namespaces_metadata_and_renames(with_manifest: Client) -> None:
    with_manifest.create_namespace("a", properties={"owner": "data"})
    with_manifest.create_namespace("a", "b")
    with_manifest.create("a", "b", "t")
    with_manifest.rename_table("a", "b", "t", new_table_name="u")

    assert with_manifest.list_all_tables().tables == ["a$b$u"]
    assert with_manifest.describe_namespace("a").properties == {"owner": "data"}


def test_v2_finds_tables_by_the_manifest_and_not_by_the_directory(v2: Client) -> None:
    v2.create("users")
    v2.storage.write("stranger.lance/.lance-reserved")

    assert v2.tables() == ["users"]


def test_manifest_schema_has_the_documents_columns_and_created_at(with_manifest: Client) -> None:
    with_manifest.create_namespace("ns1")
    schema = with_manifest.manifest().schema

    assert schema.names == ["object_id", "object_type", "location", "metadata", "base_objects", "created_at"]
    assert [schema.field(name).type for name in schema.names[:4]] == [pa.string()] * 4
    assert schema.field("base_objects").type.value_type == pa.string()
    assert [schema.field(name).nullable for name in schema.names] == [False, False, True, True, True, True]


def test_manifest_schema_object_id_is_the_unenforced_primary_key(anywhere: Client) -> None:
    anywhere.create_namespace("ns1")

    assert anywhere.manifest().schema.field("object_id").metadata[PRIMARY_KEY] == b"0"


def test_manifest_schema_object_id_is_the_name_or_the_path_joined_by_dollars(with_manifest: Client) -> None:
    with_manifest.create_namespace("ns1")
    with_manifest.create_namespace("ns1", "ns2")
    with_manifest.declare_table("ns1", "ns2", "table_name")
    with_manifest.declare_table("root_table")

    assert set(with_manifest.manifest_rows()) == {"ns1", "ns1$ns2", "ns1$ns2$table_name", "root_table"}


def test_manifest_schema_object_type_is_namespace_or_table(with_manifest: Client) -> None:
    with_manifest.create_namespace("ns1")
    with_manifest.declare_table("t")

    assert {key: row["object_type"] for key, row in with_manifest.manifest_rows().items()} == {
        "ns1": "namespace",
        "t": "table",
    }


def test_manifest_schema_location_is_relative_and_only_for_tables(with_manifest: Client) -> None:
    with_manifest.create_namespace("ns1")
    with_manifest.declare_table("ns1", "t")
    found = with_manifest.manifest_rows()

    assert found["ns1"]["location"] is None
    assert f"{found['ns1$t']['location']}/.lance-reserved" in with_manifest.storage.files()


def test_manifest_schema_metadata_is_json_or_null(with_manifest: Client) -> None:
    with_manifest.create_namespace("ns1", properties={"k": "v"})
    with_manifest.create_namespace("ns2")
    found = with_manifest.manifest_rows()

    assert (found["ns1"]["metadata"], found["ns2"]["metadata"]) == ('{"k":"v"}', None)


def test_manifest_schema_base_objects_stay_as_another_client_wrote_them(client: Client) -> None:
    client.create("a", properties={"k": "v"})
    changed = client.manifest().to_table(filter="object_id = 'a'")
    at = changed.schema.get_field_index("base_objects")
    changed = changed.set_column(at, changed.schema.field(at), [pa.array([["x", "y"]], changed.schema.field(at).type)])
    client.manifest().merge_insert("object_id").when_matched_update_all().use_index(False).execute(changed)

    client.rename_table("a", new_table_name="b")

    assert client.manifest_rows()["b"]["base_objects"] == ["x", "y"]


def mark(client: Client) -> None:
    """Let another client add a column of its own, with a value on each row that has none yet."""
    manifest = client.manifest()
    if "color" not in manifest.schema.names:
        manifest.add_columns({"color": "nullif(object_id || '!', '')"})
    else:
        manifest.update({"color": "object_id || '!'"}, where="color IS NULL")


def extend(client: Client) -> None:
    """All that stands in the catalog before a write under test."""
    for name in ("ns", "empty", "kept"):
        client.create_namespace(name, properties={"k": "v"})
    for path in ["ns", "t"], ["root"], ["other"], ["kept", "t"]:
        client.create(*path)
    mark(client)


WRITES: dict[str, tuple[Any, dict[str, str | None]]] = {
    "create_namespace": (lambda c: c.create_namespace("ns", "new"), {"ns$new": None}),
    "overwrite_namespace": (lambda c: c.create_namespace("empty", mode="overwrite", properties={"k": "w"}), {}),
    "drop_namespace": (lambda c: c.drop_namespace("empty"), {"empty": ""}),
    "drop_namespace_cascade": (lambda c: c.drop_namespace("ns", behavior="cascade"), {"ns": "", "ns$t": ""}),
    "declare_table": (lambda c: c.declare_table("ns", "new"), {"ns$new": None}),
    "create_table": (lambda c: c.create("ns", "new"), {"ns$new": None}),
    "overwrite_table": (lambda c: c.create("ns", "t", mode="overwrite", properties={"k": "w"}), {}),
    "register_table": (
        lambda c: (c.deregister_table("other"), c.register_table("ns", "o", location="other.lance")),
        {"other": "", "ns$o": None},
    ),
    "deregister_table": (lambda c: c.deregister_table("ns", "t"), {"ns$t": ""}),
    "drop_table": (lambda c: c.drop_table("root"), {"root": ""}),
    "rename_child": (lambda c: c.rename_table("ns", "t", new_table_name="u"), {"ns$t": "", "ns$u": "ns$t!"}),
    "rename_root": (lambda c: c.rename_table("root", new_table_name="r"), {"root": "", "r": "root!"}),
    "set_root_properties": (lambda c: c.namespace.set_root_properties({"k": "v"}), {}),
    "migrate": (lambda c: (c.storage.write("old.lance/.lance-reserved"), c.namespace.migrate()), {"old": None}),
}


@pytest.mark.parametrize("write", WRITES)
def test_manifest_schema_extensibility_every_write_preserves_unrecognised_columns(client: Client, write: str) -> None:
    extend(client)
    expected: dict[str, str | None] = {key: row["color"] for key, row in client.manifest_rows().items()}
    act, differences = WRITES[write]

    act(client)

    expected |= differences
    expected = {key: color for key, color in expected.items() if color != ""}
    assert {key: row["color"] for key, row in client.manifest_rows().items()} == expected


def test_manifest_schema_extensibility_also_when_versions_are_committed_and_deleted(managed: Client) -> None:
    managed.create("users")
    mark(managed)
    staged = stage(managed, "users")

    managed.create_table_version(**staged.fields)
    mark(managed)
    managed.insert_into_table("users", data=rows(5))
    managed.batch_delete_table_versions("users", ranges=[{"start_version": 1, "end_version": 2}])

    colors = {key: row["color"] for key, row in managed.manifest_rows().items()}
    assert colors == {"users": "users!", "users$2": "users$2!", "users$3": None}


def test_manifest_schema_extensibility_a_manifest_without_created_at_or_key_is_taken_over(local: Place) -> None:
    fields = [pa.field("object_id", pa.string(), nullable=False), pa.field("object_type", pa.string(), nullable=False)]
    fields += [pa.field(name, pa.string()) for name in ("location", "metadata", "color")]
    fields += [pa.field("base_objects", pa.list_(pa.string()))]
    old = {"object_id": "ns", "object_type": "namespace", "metadata": '{"k":"v"}', "color": "red"}
    lance.write_dataset(pa.Table.from_pylist([old], schema=pa.schema(fields)), local.uri("__manifest"))
    catalog = Client(local)

    catalog.create_namespace("ns", "child")

    assert catalog.describe_namespace("ns").properties == {"k": "v"}
    assert catalog.manifest_rows()["ns"]["color"] == "red"
    assert catalog.manifest().schema.field("object_id").metadata[PRIMARY_KEY] == b"0"


def test_root_properties_the_root_has_no_row(anywhere: Client) -> None:
    anywhere.namespace.set_root_properties({"owner": "data"})

    assert anywhere.manifest_rows() == {}


def test_root_properties_stand_in_the_manifests_metadata_map(anywhere: Client) -> None:
    answer = anywhere.namespace.set_root_properties({"owner": "it's 😀", "partition_spec_v1": '{"id":1}'})

    assert anywhere.manifest().metadata == {"owner": "it's 😀", "partition_spec_v1": '{"id":1}'}
    assert answer == anywhere.describe_namespace().properties == anywhere.manifest().metadata


def test_root_properties_that_another_client_wrote_are_read(with_manifest: Client) -> None:
    with_manifest.create_namespace("ns")
    with_manifest.manifest().update_metadata({"schema": "{}"})

    assert with_manifest.describe_namespace().properties == {"schema": "{}"}


def test_root_properties_are_set_one_by_one_and_removed_by_none(with_manifest: Client) -> None:
    with_manifest.namespace.set_root_properties({"a": "1", "b": "2"})
    with_manifest.namespace.set_root_properties({"a": None, "c": "3"})

    assert with_manifest.describe_namespace().properties == {"b": "2", "c": "3"}


def test_root_properties_survive_every_other_write(client: Client) -> None:
    client.namespace.set_root_properties({"owner": "data"})
    extend(client)
    client.drop_namespace("ns", behavior="cascade")

    assert client.describe_namespace().properties == {"owner": "data"}


def test_root_properties_are_strings(client: Client) -> None:
    for values in ({"a": 1}, {1: "a"}):
        with refused(InvalidInputError, 13):
            client.namespace.set_root_properties(values)


def test_root_properties_need_the_manifest(v1: Client) -> None:
    with refused(UnsupportedOperationError, 0):
        v1.namespace.set_root_properties({"a": "1"})


def kinds(client: Client) -> dict[str, str]:
    return {index.field_names[0]: index.index_type.upper() for index in client.manifest().describe_indices()}


def test_manifest_indexes_btree_bitmap_and_label_list_are_there_after_the_first_write(anywhere: Client) -> None:
    anywhere.create_namespace("ns")

    assert {column: kind.replace("_", "") for column, kind in kinds(anywhere).items()} == {
        "object_id": "BTREE",
        "object_type": "BITMAP",
        "base_objects": "LABELLIST",
    }


def test_manifest_indexes_are_made_on_a_manifest_of_another_writer(client: Client) -> None:
    keys = [pa.field(name, pa.string(), nullable=False) for name in ("object_id", "object_type")]
    bases = pa.list_(pa.field("object_id", pa.string()))
    schema = pa.schema([*keys, ("location", pa.string()), ("metadata", pa.string()), ("base_objects", bases)])
    lance.write_dataset(schema.empty_table(), client.place.uri("__manifest"))
    assert kinds(client) == {}

    client.create_namespace("ns")

    assert set(kinds(client)) == {"object_id", "object_type", "base_objects"}
    assert client.namespaces() == ["ns"]


@pytest.mark.slow
def test_manifest_indexes_and_fragments_stay_bounded_over_three_hundred_commits(client: Client) -> None:
    for number in range(150):
        client.create_namespace(f"n{number}")
        client.drop_namespace(f"n{number - 1}", mode="skip")
    for number in range(10):
        client.declare_table("n149", f"t{number}")

    manifest = client.manifest()
    assert manifest.version > 300
    assert len(manifest.get_fragments()) < 60
    assert set(kinds(client)) == {"object_id", "object_type", "base_objects"}
    assert client.namespaces() == ["n149"]
    assert len(client.tables("n149")) == 10


def test_manifest_commits_fail_if_the_entry_is_there(anywhere: Client) -> None:
    anywhere.create_namespace("ns")
    anywhere.declare_table("ns", "t")
    before = anywhere.manifest().version

    with refused(TableAlreadyExistsError, 5):
        anywhere.declare_table("ns", "t")

    assert anywhere.manifest().version == before


def test_manifest_commits_fail_if_a_concurrent_operation_writes_the_entry(client: Client) -> None:
    client.create_namespace("ns")
    rival = Client(client.place)

    with interrupted_by(client, lambda: rival.create_namespace("ns", "child")), refused(NamespaceAlreadyExistsError, 2):
        client.create_namespace("ns", "child")

    assert client.manifest().count_rows("object_id = 'ns$child'") == 1


def test_manifest_commits_of_different_entries_at_once_both_succeed(client: Client) -> None:
    client.create_namespace("ns")
    rival = Client(client.place)

    with interrupted_by(client, lambda: rival.create_namespace("ns", "theirs")):
        client.create_namespace("ns", "mine")

    assert client.namespaces("ns") == ["mine", "theirs"]


def test_manifest_commits_keep_object_ids_unique_with_the_index_there(client: Client) -> None:
    client.create_namespace("ns")
    for number in range(12):
        rival = Client(client.place)
        with interrupted_by(client, lambda rival=rival, name=f"n{number}": rival.create_namespace(name)):
            client.create_namespace(f"n{number}", mode="exist_ok")

    ids = client.manifest().to_table(columns=["object_id"])["object_id"].to_pylist()
    assert len(ids) == len(set(ids)) == 13


def test_manifest_directory_is_hash_and_object_id(v2: Client) -> None:
    v2.create_namespace("ns1")
    v2.declare_table("ns1", "my_table")

    assert re.fullmatch(r"[0-9a-f]{8}_ns1\$my_table", v2.location("ns1", "my_table"))


def test_manifest_directory_hashes_differ_for_throughput(v2: Client) -> None:
    for number in range(20):
        v2.declare_table(f"t{number}")

    assert len({row["location"][:8] for row in v2.manifest_rows().values()}) == 20


def test_manifest_directory_is_another_one_after_drop_and_create(v2: Client) -> None:
    v2.create("users")
    first = v2.location("users")
    v2.drop_table("users")
    v2.create("users")

    assert v2.location("users") != first


def test_manifest_directory_in_compatibility_mode_is_name_dot_lance_for_the_root(client: Client) -> None:
    client.create("users")

    assert client.location("users") == "users.lance"
