"""LanceDB connected to a root through its namespace client, and ours over the same root."""

from __future__ import annotations

import lancedb
import pytest
from lance_namespace import (
    CountTableRowsRequest,
    CreateNamespaceRequest,
    CreateTableRequest,
    DescribeNamespaceRequest,
    ListNamespacesRequest,
    ListTablesRequest,
    RenameTableRequest,
)

from tests.support.catalogs import Place, ipc, rows


@pytest.fixture
def database(place: Place) -> lancedb.LanceNamespaceDBConnection:
    return lancedb.connect_namespace("dir", place.properties, storage_options=place.storage_options)


def ids(table: lancedb.table.Table) -> list[int]:
    return sorted(table.to_arrow()["id"].to_pylist())


@pytest.mark.quick
def test_lancedb_reads_and_extends_what_we_wrote(place: Place, database: lancedb.LanceNamespaceDBConnection) -> None:
    catalog = place.catalog()
    catalog.create_namespace(CreateNamespaceRequest(id=["prod"]))
    catalog.create_namespace(CreateNamespaceRequest(id=["prod", "eu"]))
    catalog.create_table(CreateTableRequest(id=["plain"]), ipc(rows(1)))
    catalog.create_table(CreateTableRequest(id=["prod", "eu", "users"]), ipc(rows(1, 2)))

    assert database.list_namespaces().namespaces == ["prod"]
    assert database.list_namespaces(namespace_path=["prod"]).namespaces == ["eu"]
    assert database.list_tables().tables == ["plain"]
    assert database.list_tables(namespace_path=["prod", "eu"]).tables == ["users"]
    assert ids(database.open_table("plain", storage_options=place.storage_options)) == [1]
    users = database.open_table("users", namespace_path=["prod", "eu"], storage_options=place.storage_options)
    users.add(rows(3))
    assert ids(users) == [1, 2, 3]
    assert catalog.count_table_rows(CountTableRowsRequest(id=["prod", "eu", "users"])).count == 3


def test_we_read_and_extend_what_lancedb_wrote(place: Place, database: lancedb.LanceNamespaceDBConnection) -> None:
    database.create_namespace(["prod"], properties={"owner": "data"})
    database.create_namespace(["prod", "eu"])
    database.create_table("plain", rows(1))
    database.create_table("users", rows(1, 2), namespace_path=["prod", "eu"])

    catalog = place.catalog()

    assert catalog.list_namespaces(ListNamespacesRequest(id=[])).namespaces == ["prod"]
    assert catalog.list_namespaces(ListNamespacesRequest(id=["prod"])).namespaces == ["eu"]
    assert catalog.list_tables(ListTablesRequest(id=[])).tables == ["plain"]
    assert catalog.list_tables(ListTablesRequest(id=["prod", "eu"])).tables == ["users"]
    assert catalog.describe_namespace(DescribeNamespaceRequest(id=["prod"])).properties == {"owner": "data"}
    assert catalog.count_table_rows(CountTableRowsRequest(id=["plain"])).count == 1
    assert catalog.count_table_rows(CountTableRowsRequest(id=["prod", "eu", "users"])).count == 2
    catalog.create_table(CreateTableRequest(id=["prod", "eu", "ours"]), ipc(rows(9)))
    assert database.list_tables(namespace_path=["prod", "eu"]).tables == ["ours", "users"]


def test_lancedb_follows_a_rename_of_ours(local: Place) -> None:
    database = lancedb.connect_namespace("dir", {**local.properties, "dir_listing_enabled": "false"})
    database.create_table("plain", rows(1, 2))

    local.catalog().rename_table(RenameTableRequest(id=["plain"], new_table_name="moved"))

    assert database.list_tables().tables == ["moved"]
    assert ids(database.open_table("moved")) == [1, 2]


def test_lancedb_runs_on_our_catalog_itself(local: Place) -> None:
    database = lancedb.connect_namespace("lancepart.DirectoryNamespace", local.properties)
    database.create_namespace(["prod"])
    table = database.create_table("users", rows(1, 2), namespace_path=["prod"])
    table.add(rows(3))

    assert ids(database.open_table("users", namespace_path=["prod"])) == [1, 2, 3]
    assert local.catalog().list_tables(ListTablesRequest(id=["prod"])).tables == ["users"]
