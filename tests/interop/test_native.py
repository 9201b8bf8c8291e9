"""pylance's own DirectoryNamespace and ours, over one root: each reads what the other wrote."""

from __future__ import annotations

from typing import Any

import lance
import lance.namespace
import pyarrow as pa
import pytest
from lance_namespace import (
    CountTableRowsRequest,
    CreateNamespaceRequest,
    CreateTableRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeNamespaceRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    DropTableRequest,
    InsertIntoTableRequest,
    LanceNamespace,
    ListNamespacesRequest,
    ListTablesRequest,
    NamespaceExistsRequest,
    RenameTableRequest,
    TableExistsRequest,
)

from lancepart.errors import InvalidTableStateError, TableNotFoundError
from lancepart.storage.manifest_rows import SCHEMA
from tests.support.catalogs import Place, ipc, rows

EXTENSION = pa.field("partition_year", pa.int32())


def native(place: Place) -> LanceNamespace:
    return lance.namespace.DirectoryNamespace(**place.properties)


def ours(place: Place) -> LanceNamespace:
    return place.catalog()


def manifest(place: Place) -> lance.LanceDataset:
    return lance.dataset(place.uri("__manifest"), storage_options=place.storage_options)


def furnish(catalog: LanceNamespace) -> None:
    """Namespaces within each other, with properties, and tables at each level."""
    catalog.create_namespace(CreateNamespaceRequest(id=["prod"], properties={"owner": "data", "note": "it's 50% 😀"}))
    catalog.create_namespace(CreateNamespaceRequest(id=["prod", "eu"]))
    catalog.create_namespace(CreateNamespaceRequest(id=["dev"]))
    catalog.create_table(CreateTableRequest(id=["plain"]), ipc(rows(1)))
    catalog.create_table(CreateTableRequest(id=["prod", "users"]), ipc(rows(1, 2)))
    catalog.create_table(CreateTableRequest(id=["prod", "eu", "orders"]), ipc(rows(1, 2, 3)))
    catalog.declare_table(DeclareTableRequest(id=["prod", "later"]))


def described(place: Place, catalog: LanceNamespace) -> dict[str, Any]:
    """What a client tells of all that is there."""
    seen: dict[str, Any] = {}
    for path in ([], ["prod"], ["prod", "eu"], ["dev"]):
        catalog.namespace_exists(NamespaceExistsRequest(id=path))
        seen["/".join(path)] = (
            sorted(catalog.list_namespaces(ListNamespacesRequest(id=path)).namespaces),
            sorted(catalog.list_tables(ListTablesRequest(id=path)).tables),
            catalog.describe_namespace(DescribeNamespaceRequest(id=path)).properties or {},
        )
    for path in (["plain"], ["prod", "users"], ["prod", "eu", "orders"]):
        catalog.table_exists(TableExistsRequest(id=path))
        answer = catalog.describe_table(DescribeTableRequest(id=path, load_detailed_metadata=True))
        seen["$".join(path)] = (
            catalog.count_table_rows(CountTableRowsRequest(id=path)).count,
            answer.version,
            answer.location.removeprefix("file://").removeprefix(place.root),
            [item.name for item in answer.var_schema.fields],
        )
    later = catalog.describe_table(DescribeTableRequest(id=["prod", "later"], check_declared=True))
    seen["later"] = later.is_only_declared
    return seen


@pytest.mark.parametrize(("writer", "reader"), [(ours, native), (native, ours)], ids=["ours-first", "native-first"])
def test_one_reads_all_that_the_other_wrote(place: Place, writer: Any, reader: Any) -> None:
    furnish(writer(place))

    assert described(place, reader(place)) == described(place, writer(place))


@pytest.mark.parametrize(("writer", "other"), [(ours, native), (native, ours)], ids=["ours-first", "native-first"])
def test_one_goes_on_where_the_other_stopped(local: Place, writer: Any, other: Any) -> None:
    furnish(writer(local))
    catalog = other(local)

    catalog.insert_into_table(InsertIntoTableRequest(id=["prod", "users"]), ipc(rows(3)))
    catalog.create_table(CreateTableRequest(id=["dev", "new"]), ipc(rows(4)))
    catalog.drop_table(DropTableRequest(id=["prod", "eu", "orders"]))
    catalog.drop_namespace(DropNamespaceRequest(id=["prod", "eu"]))
    catalog.deregister_table(DeregisterTableRequest(id=["prod", "later"]))

    first = writer(local)
    assert first.count_table_rows(CountTableRowsRequest(id=["prod", "users"])).count == 3
    assert first.count_table_rows(CountTableRowsRequest(id=["dev", "new"])).count == 1
    assert first.list_namespaces(ListNamespacesRequest(id=["prod"])).namespaces == []
    assert first.list_tables(ListTablesRequest(id=["prod"])).tables == ["users"]


def test_native_code_reads_a_table_that_we_renamed(place: Place) -> None:
    """Of the root, native code looks into the manifest only with its listing off."""
    furnish(ours(place))

    ours(place).rename_table(RenameTableRequest(id=["plain"], new_table_name="moved"))
    ours(place).rename_table(RenameTableRequest(id=["prod", "users"], new_table_name="people"))

    by_manifest = lance.namespace.DirectoryNamespace(**place.properties, dir_listing_enabled="false")
    assert by_manifest.list_tables(ListTablesRequest(id=[])).tables == ["moved"]
    assert by_manifest.count_table_rows(CountTableRowsRequest(id=["moved"])).count == 1
    assert native(place).list_tables(ListTablesRequest(id=[])).tables == []
    assert native(place).count_table_rows(CountTableRowsRequest(id=["prod", "people"])).count == 2


def test_a_table_that_only_the_listing_knows_is_the_same_table_to_both(place: Place) -> None:
    lance.write_dataset(rows(1, 2), place.uri("plain.lance"), storage_options=place.storage_options)

    for catalog in (ours(place), native(place)):
        assert catalog.list_tables(ListTablesRequest(id=[])).tables == ["plain"]
        assert catalog.count_table_rows(CountTableRowsRequest(id=["plain"])).count == 2


def test_both_agree_on_a_table_that_either_deregistered_without_a_manifest(local: Place) -> None:
    plain = {"manifest_enabled": "false"}
    for name, catalog in (
        ("a", local.catalog(**plain)),
        ("b", lance.namespace.DirectoryNamespace(**local.properties, **plain)),
    ):
        lance.write_dataset(rows(1), local.uri(f"{name}.lance"))
        catalog.deregister_table(DeregisterTableRequest(id=[name]))

    for catalog in (ours(local), native(local)):
        assert catalog.list_tables(ListTablesRequest(id=[])).tables == []
    with pytest.raises(TableNotFoundError):
        ours(local).describe_table(DescribeTableRequest(id=["b"]))


def test_a_native_write_takes_created_at_and_our_next_write_brings_it_back(local: Place) -> None:
    furnish(ours(local))
    native(local).create_namespace(CreateNamespaceRequest(id=["theirs"]))
    assert "created_at" not in manifest(local).schema.names

    assert "theirs" in ours(local).list_namespaces(ListNamespacesRequest(id=[])).namespaces
    ours(local).create_namespace(CreateNamespaceRequest(id=["mine"]))

    assert manifest(local).schema.names == SCHEMA.names
    stamps = {row["object_id"]: row["created_at"] for row in manifest(local).to_table().to_pylist()}
    assert stamps["mine"] is not None
    assert stamps["theirs"] is None


def test_root_properties_outlive_a_native_write(local: Place) -> None:
    local.catalog().set_root_properties({"owner": "data"})

    native(local).create_namespace(CreateNamespaceRequest(id=["theirs"]))

    assert ours(local).describe_namespace(DescribeNamespaceRequest(id=[])).properties == {"owner": "data"}


def test_extension_columns_that_a_native_write_dropped_are_missed_by_name(local: Place) -> None:
    catalog = local.catalog()
    catalog.create_namespace(CreateNamespaceRequest(id=["mine"]))
    catalog._catalog.manifest.add_columns([EXTENSION, pa.field("partition_country", pa.string())])
    assert native(local).list_namespaces(ListNamespacesRequest(id=[])).namespaces == ["mine"]

    native(local).create_namespace(CreateNamespaceRequest(id=["theirs"]))

    with pytest.raises(InvalidTableStateError, match="partition_year, partition_country"):
        ours(local).list_namespaces(ListNamespacesRequest(id=[]))
    with pytest.raises(InvalidTableStateError, match="partition_year"):
        ours(local).create_namespace(CreateNamespaceRequest(id=["next"]))


def test_extension_columns_and_their_values_outlive_our_own_writes(local: Place) -> None:
    catalog = local.catalog()
    catalog.create_namespace(CreateNamespaceRequest(id=["mine"]))
    catalog._catalog.manifest.add_columns([EXTENSION])
    manifest(local).update({"partition_year": "2025"}, where="object_id = 'mine'")

    catalog.create_namespace(CreateNamespaceRequest(id=["mine", "inner"]))

    kept = {row["object_id"]: row["partition_year"] for row in manifest(local).to_table().to_pylist()}
    assert kept == {"mine": 2025, "mine$inner": None}


def test_native_code_refuses_to_write_where_versions_stand_and_leaves_the_columns_alone(local: Place) -> None:
    catalog = local.catalog()
    catalog.set_root_properties({"table_version_management": "true"})
    catalog.create_table(CreateTableRequest(id=["t"]), ipc(rows(1, 2)))
    catalog._catalog.manifest.add_columns([EXTENSION])
    before = manifest(local)

    with pytest.raises(Exception, match="table_version"):
        native(local).create_namespace(CreateNamespaceRequest(id=["theirs"]))

    after = manifest(local)
    assert (after.version, after.schema) == (before.version, before.schema)
    assert ours(local).count_table_rows(CountTableRowsRequest(id=["t"])).count == 2
