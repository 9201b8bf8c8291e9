"""001, «Object Mapping» and «Lance Table Identification»."""

import json
import os
import re

from lancepart.errors import InvalidTableStateError, NamespaceNotFoundError, TableNotFoundError
from tests.conformance.catalog.client import Client, refused, write_plainly
from tests.support.catalogs import rows


def test_mapping_the_root_namespace_is_the_root_directory(any_mode: Client) -> None:
    any_mode.create("t")

    assert any_mode.namespace_exists() is not None
    assert any_mode.describe_table("t").location.startswith(any_mode.place.root + "/")


def test_mapping_a_child_namespace_is_no_directory(anywhere: Client) -> None:
    anywhere.create_namespace("prod")
    anywhere.create_namespace("prod", "analytics")

    assert {path.split("/")[0] for path in anywhere.storage.files()} == {"__manifest"}


def test_mapping_v1_has_no_child_namespaces(v1: Client) -> None:
    with refused(NamespaceNotFoundError, 1):
        v1.namespace_exists("prod")


def test_mapping_a_namespace_id_is_joined_by_dollars_in_object_id(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")
    with_manifest.create_namespace("prod", "analytics")

    assert set(with_manifest.manifest_rows()) == {"prod", "prod$analytics"}


def test_mapping_namespace_properties_are_json_in_the_metadata_column(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod", properties={"owner": 'it\'s "me" 😀'})

    assert json.loads(with_manifest.manifest_rows()["prod"]["metadata"]) == {"owner": 'it\'s "me" 😀'}


def test_mapping_a_table_id_is_joined_by_dollars_in_object_id(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")
    with_manifest.create_namespace("prod", "analytics")
    with_manifest.create("prod", "analytics", "users")

    assert with_manifest.manifest_rows()["prod$analytics$users"]["object_type"] == "table"


def test_mapping_location_in_v1_is_name_dot_lance(v1: Client) -> None:
    v1.create("users")

    assert v1.location("users") == "users.lance"


def test_mapping_location_in_v2_at_the_root_with_listing_is_name_dot_lance(client: Client) -> None:
    client.create("users")

    assert client.manifest_rows()["users"]["location"] == "users.lance"


def test_mapping_location_in_v2_in_a_child_namespace_is_hashed(with_manifest: Client) -> None:
    with_manifest.create_namespace("prod")
    with_manifest.create("prod", "users")

    assert re.fullmatch(r"[0-9a-f]{8}_prod\$users", with_manifest.manifest_rows()["prod$users"]["location"])


def test_mapping_location_in_v2_without_listing_is_hashed(v2: Client) -> None:
    v2.create("users")

    assert re.fullmatch(r"[0-9a-f]{8}_users", v2.manifest_rows()["users"]["location"])


def test_mapping_table_properties_are_stored_in_lance_table_metadata(any_mode: Client) -> None:
    any_mode.create("users", properties={"owner": "data"})

    assert any_mode.dataset("users").metadata == {"owner": "data"}
    any_mode.dataset("users").update_metadata({"team": "a"})
    described = any_mode.describe_table("users", load_detailed_metadata=True)
    assert described.properties == {"owner": "data", "team": "a"}


def test_mapping_properties_of_a_declared_table_get_there_with_its_data(managed: Client) -> None:
    managed.declare_table("users", properties={"owner": "data"})

    managed.create("users")

    assert managed.dataset("users").metadata == {"owner": "data"}


def test_mapping_schema_metadata_is_read_by_the_sdk_and_by_describe(any_mode: Client) -> None:
    any_mode.create("users", data=rows(1).replace_schema_metadata({"owner": "data"}))

    assert any_mode.dataset("users").schema.metadata == {b"owner": b"data"}
    assert any_mode.describe_table("users", load_detailed_metadata=True).metadata == {"owner": "data"}


def test_identification_in_v1_a_table_is_a_directory_with_the_lance_suffix(v1: Client) -> None:
    write_plainly(v1.place, "users.lance")
    write_plainly(v1.place, "users.other")
    v1.storage.write("notes.txt")

    assert v1.tables() == ["users"]


def test_identification_in_v1_the_directory_must_hold_table_data_to_be_usable(v1: Client) -> None:
    v1.storage.write("broken.lance/readme.txt")

    assert v1.tables() == ["broken"]
    with refused(InvalidTableStateError, 19):
        v1.count_table_rows("broken")


def test_identification_in_v1_only_single_level_ids_are_supported(v1: Client) -> None:
    for operation in ("describe_table", "table_exists", "drop_table", "deregister_table", "declare_table"):
        with refused(NamespaceNotFoundError, 1):
            getattr(v1, operation)("prod", "users")


def test_identification_in_v2_a_table_is_a_row_of_type_table_and_its_location(v2: Client) -> None:
    v2.create_namespace("prod")
    v2.create("prod", "users")
    row = v2.manifest_rows()["prod$users"]

    assert row["object_type"] == "table"
    assert v2.dataset("prod", "users").uri.endswith(row["location"])
    assert "prod" not in v2.tables()


def test_identification_in_v2_multi_level_ids_are_supported(with_manifest: Client) -> None:
    path = ("a", "b", "c", "d")
    for depth in range(1, len(path)):
        with_manifest.create_namespace(*path[:depth])
    with_manifest.create(*path)

    assert with_manifest.count_table_rows(*path).count == 2


def test_identification_a_table_directory_must_be_non_empty(v1: Client) -> None:
    os.makedirs(f"{v1.place.root}/empty.lance/data")

    assert v1.tables() == []
    with refused(TableNotFoundError, 4):
        v1.describe_table("empty")
