"""004, «Compatibility Mode» and «Migration from V1 to V2»."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from lancepart.errors import NamespaceNotFoundError, TableNotFoundError, UnsupportedOperationError
from tests.conformance.catalog.client import Client, refused, write_plainly
from tests.support.catalogs import Place, rows


@pytest.mark.quick
def test_compatibility_is_the_default_and_serves_v1_and_v2_tables_at_once(anywhere: Client) -> None:
    write_plainly(anywhere.place, "old.lance")
    anywhere.create_namespace("ns")
    anywhere.create("ns", "new")

    assert anywhere.count_table_rows("old").count == 2
    assert anywhere.count_table_rows("ns", "new").count == 2


def test_compatibility_rule_1_the_manifest_is_checked_before_the_directory(anywhere: Client) -> None:
    write_plainly(anywhere.place, "elsewhere", rows(1, 2, 3))
    anywhere.register_table("users", location="elsewhere")
    write_plainly(anywhere.place, "users.lance")

    assert anywhere.count_table_rows("users").count == 3
    assert anywhere.location("users") == "elsewhere"


def test_compatibility_rule_1_then_the_directory_is_checked(anywhere: Client) -> None:
    with refused(TableNotFoundError, 4):
        anywhere.table_exists("users")
    write_plainly(anywhere.place, "users.lance")

    assert anywhere.table_exists("users") is not None


def test_compatibility_rule_1_a_directory_with_only_data_files_is_a_table_as_in_v1(anywhere: Client) -> None:
    anywhere.create("other")
    anywhere.storage.write("users.lance/data/a.lance")
    v1 = Client(anywhere.place, manifest_enabled="false")

    assert anywhere.tables() == v1.tables() == ["other", "users"]
    assert anywhere.describe_table("users", check_declared=True).is_only_declared is True
    assert anywhere.namespace.migrate() == 1
    assert anywhere.create("users").version == 1
    anywhere.drop_table("users")
    assert anywhere.tables() == ["other"]


def _drop(client: Client) -> None:
    client.drop_table("users")


def _rename(client: Client) -> None:
    client.rename_table("users", new_table_name="people")


def _deregister(client: Client) -> None:
    client.deregister_table("users")


def _drop_beside_the_listing(client: Client) -> None:
    Client(client.place, dir_listing_enabled="false").drop_table("users")


def _drop_with_its_namespace(client: Client) -> None:
    client.create_namespace("ns")
    client.deregister_table("users")
    client.register_table("ns", "users", location="users.lance")
    client.drop_namespace("ns", behavior="cascade")


@pytest.mark.parametrize("remove", [_drop, _rename, _deregister, _drop_beside_the_listing, _drop_with_its_namespace])
@pytest.mark.parametrize("made", ["by the catalog", "plainly"])
def test_compatibility_rule_1_data_files_that_a_late_writer_leaves_bring_no_table_back(
    client: Client, remove: Callable[[Client], None], made: str
) -> None:
    if made == "plainly":
        write_plainly(client.place, "users.lance")
        client.namespace.migrate()
    else:
        client.create("users")
    remove(client)

    client.storage.write("users.lance/data/late.lance")

    assert "users" not in client.tables()
    assert client.namespace.migrate() == 0
    with refused(TableNotFoundError, 4):
        client.describe_table("users")
    client.create("users", data=rows(7))
    assert client.count_table_rows("users").count == 1


def test_compatibility_rule_1_a_version_that_a_late_writer_finishes_brings_no_table_back(anywhere: Client) -> None:
    anywhere.create("users")
    manifest = next(path for path in anywhere.storage.files("users.lance/_versions") if path.endswith(".manifest"))
    late = anywhere.storage.read(manifest)
    anywhere.rename_table("users", new_table_name="people")

    anywhere.storage.write(manifest, late)

    assert anywhere.tables() == ["people"]
    with refused(TableNotFoundError, 4):
        anywhere.describe_table("users")


def test_compatibility_rule_1_a_table_that_is_written_anew_where_one_was_dropped_is_seen(anywhere: Client) -> None:
    anywhere.create("users")
    anywhere.drop_table("users")

    write_plainly(anywhere.place, "users.lance", rows(1, 2, 3))

    assert anywhere.count_table_rows("users").count == 3


def test_the_remains_of_a_drop_are_not_swept_while_a_row_names_their_directory(client: Client) -> None:
    client.create("users")
    client.storage.write("users.lance/.lance-deregistered", b"dropped by lancepart\n")
    os.utime(Path(client.place.root) / "users.lance/.lance-deregistered", (0, 0))
    Client(client.place, dir_listing_enabled="false").rename_table("users", new_table_name="people")

    client.create("users", data=rows(7))

    assert client.count_table_rows("people").count == 2


def test_compatibility_rule_2_listings_are_merged_and_manifest_entries_win(anywhere: Client) -> None:
    write_plainly(anywhere.place, "both.lance")
    write_plainly(anywhere.place, "disk.lance")
    anywhere.register_table("both", location="both.lance")
    anywhere.declare_table("manifest")

    assert anywhere.tables() == ["both", "disk", "manifest"]


def test_compatibility_rule_2_a_directory_is_listed_once_under_the_manifests_name(client: Client) -> None:
    write_plainly(client.place, "old_name.lance")
    client.register_table("new_name", location="old_name.lance")

    assert client.tables() == ["new_name"]
    with refused(TableNotFoundError, 4):
        client.describe_table("old_name")


def test_compatibility_rule_3_a_new_root_table_is_in_the_manifest_and_in_name_dot_lance(anywhere: Client) -> None:
    anywhere.create("users")
    v1 = Client(anywhere.place, manifest_enabled="false")

    assert anywhere.manifest_rows()["users"]["location"] == "users.lance"
    assert v1.tables() == ["users"]
    assert v1.count_table_rows("users").count == 2


def test_compatibility_rule_3_where_a_deregistered_table_stands_the_new_one_goes_elsewhere(client: Client) -> None:
    client.create("users")
    client.deregister_table("users")

    client.create("users", data=rows(7))

    assert re.fullmatch(r"[0-9a-f]{8}_users", client.location("users"))
    assert client.count_table_rows("users").count == 1
    assert any(path.startswith("users.lance/data/") for path in client.storage.files())


def test_compatibility_rule_4_a_renamed_root_table_moves_to_a_hashed_path(anywhere: Client) -> None:
    anywhere.create("users")
    anywhere.rename_table("users", new_table_name="people")
    v1 = Client(anywhere.place, manifest_enabled="false")

    assert re.fullmatch(r"[0-9a-f]{8}_people", anywhere.location("people"))
    assert anywhere.count_table_rows("people").count == 2
    assert v1.tables() == []


def test_compatibility_rule_4_also_if_it_is_renamed_within_the_manifest_only(client: Client) -> None:
    write_plainly(client.place, "users.lance")
    client.rename_table("users", new_table_name="people")

    assert client.tables() == ["people"]
    assert not any(path.startswith("users.lance/") for path in client.storage.files())


def test_compatibility_rule_5_child_namespaces_are_v2_only(client: Client) -> None:
    client.create_namespace("ns")
    write_plainly(client.place, "ns/users.lance")
    write_plainly(client.place, "ns$users.lance")

    assert client.tables("ns") == []
    with refused(TableNotFoundError, 4):
        client.describe_table("ns", "users")
    with refused(NamespaceNotFoundError, 1):
        client.declare_table("other", "users")


def test_migration_adds_every_v1_table_to_the_manifest(place: Place) -> None:
    v1 = Client(place, manifest_enabled="false")
    v1.create("created")
    v1.create("50% off 😀")
    v1.declare_table("declared")
    v1.create("hidden")
    v1.deregister_table("hidden")
    catalog = Client(place)

    assert catalog.namespace.migrate() == 3

    found = {key: row["location"] for key, row in catalog.manifest_rows().items()}
    assert found == {name: f"{name}.lance" for name in ("created", "50% off 😀", "declared")}


def test_migration_then_compatibility_can_be_turned_off(anywhere: Client) -> None:
    write_plainly(anywhere.place, "users.lance")
    anywhere.namespace.migrate()
    v2 = Client(anywhere.place, dir_listing_enabled="false")

    assert v2.tables() == ["users"]
    assert v2.count_table_rows("users").count == 2
    assert v2.location("users") == "users.lance"


def test_migration_moves_no_data_and_done_twice_does_nothing(client: Client) -> None:
    write_plainly(client.place, "users.lance")
    client.create("known")
    before = client.storage.files("users.lance")

    assert client.namespace.migrate() == 1
    assert client.namespace.migrate() == 0

    assert client.storage.files("users.lance") == before
    assert sorted(client.manifest_rows()) == ["known", "users"]


def test_migration_leaves_a_directory_that_another_name_has(client: Client) -> None:
    write_plainly(client.place, "users.lance")
    client.register_table("people", location="users.lance")

    assert client.namespace.migrate() == 0
    assert client.tables() == ["people"]


def test_migration_works_from_a_catalog_that_does_not_list(v2: Client) -> None:
    write_plainly(v2.place, "users.lance")

    assert v2.namespace.migrate() == 1
    assert v2.tables() == ["users"]


def test_migration_needs_the_manifest(v1: Client) -> None:
    with refused(UnsupportedOperationError, 0):
        v1.namespace.migrate()
