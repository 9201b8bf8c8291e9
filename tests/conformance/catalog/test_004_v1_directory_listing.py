"""004, «V1: Directory Listing»."""

import os

from lancepart.errors import TableNotFoundError
from tests.conformance.catalog.client import Client, refused, write_plainly
from tests.support.catalogs import Place


def example(client: Client) -> Client:
    """The namespace directory that the document shows."""
    write_plainly(client.place, "table1.lance")
    write_plainly(client.place, "table2.lance")
    write_plainly(client.place, "table3.lance")
    client.storage.write("table3.lance/.lance-deregistered")
    client.storage.write("table4.lance/.lance-reserved")
    return client


def test_v1_each_table_is_a_subdirectory_named_table_dot_lance(v1: Client) -> None:
    v1.create("table1")

    assert {path.split("/")[0] for path in v1.storage.files()} == {"table1.lance"}


def test_v1_directory_layout_of_the_example_is_read_as_the_document_says(place: Place) -> None:
    v1 = example(Client(place, manifest_enabled="false"))

    assert v1.tables() == ["table1", "table2", "table4"]
    assert v1.list_tables(include_declared=False).tables == ["table1", "table2"]
    assert v1.count_table_rows("table1").count == 2
    assert v1.describe_table("table4", check_declared=True).is_only_declared is True
    with refused(TableNotFoundError, 4):
        v1.describe_table("table3")


def test_v1_directory_layout_table_directories_hold_data_and_versions(v1: Client) -> None:
    v1.create("table1")

    inside = {path.split("/")[1] for path in v1.storage.files("table1.lance")}

    assert {"data", "_versions"} <= inside


def test_v1_table_existence_needs_one_file_in_the_directory(v1: Client) -> None:
    os.makedirs(f"{v1.place.root}/empty.lance/_versions")
    v1.storage.write("one.lance/data/deep/file")

    assert v1.tables() == ["one"]
    assert v1.table_exists("one") is not None
    with refused(TableNotFoundError, 4):
        v1.table_exists("empty")


def test_v1_table_existence_needs_the_deregistered_marker_to_be_absent(place: Place) -> None:
    v1 = Client(place, manifest_enabled="false")
    v1.storage.write("users.lance/data/file")
    assert v1.tables() == ["users"]

    v1.storage.write("users.lance/.lance-deregistered")

    assert v1.tables() == []


def test_v1_table_existence_does_not_match_a_longer_name(v1: Client) -> None:
    v1.create("users2")

    with refused(TableNotFoundError, 4):
        v1.table_exists("users")


def test_v1_marker_reserved_means_reserved_and_not_created(v1: Client) -> None:
    v1.declare_table("users")
    assert v1.storage.files() == {"users.lance/.lance-reserved"}

    v1.create("users")

    assert "users.lance/.lance-reserved" not in v1.storage.files()
    assert v1.describe_table("users", check_declared=True).is_only_declared is False


def test_v1_marker_deregistered_hides_the_table_and_preserves_its_data(v1: Client) -> None:
    v1.create("users")
    v1.deregister_table("users")

    assert "users.lance/.lance-deregistered" in v1.storage.files()
    assert v1.tables() == []
    for operation in ("describe_table", "table_exists"):
        with refused(TableNotFoundError, 4):
            getattr(v1, operation)("users")
    v1.register_table("users", location="users.lance")
    assert v1.count_table_rows("users").count == 2


def test_v1_writes_no_manifest(v1: Client) -> None:
    v1.create("a")
    v1.declare_table("b")
    v1.deregister_table("a")
    v1.drop_table("b")

    assert not any(path.startswith("__manifest") for path in v1.storage.files())


def test_v1_does_not_look_at_a_manifest_that_stands_there(v1: Client) -> None:
    v2 = Client(v1.place)
    v2.create_namespace("ns")
    v2.create("ns", "child")
    v2.create("root")

    assert v1.tables() == ["root"]
    assert v1.namespaces() == []
