"""pylance's own functions working through the catalog: namespace_client= and table_id=."""

from __future__ import annotations

from typing import Any

import lance
import lance.fragment
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    DescribeTableRequest,
    DescribeTableVersionRequest,
    ListTablesRequest,
    ListTableVersionsRequest,
)

from lancepart import DirectoryNamespace
from tests.support.catalogs import Place, rows
from tests.support.tiers import slow


@pytest.fixture(params=["local-root", "local-child", slow("s3-child")])
def spot(request: Any) -> str:
    """Where a table is: on the disk in the root or in a namespace, or in a namespace on the S3 protocol."""
    return request.param


@pytest.fixture
def place(request: Any, spot: str) -> Place:
    return request.getfixturevalue("s3_server").place() if spot.startswith("s3") else request.getfixturevalue("local")


@pytest.fixture
def path(spot: str) -> list[str]:
    return ["t"] if spot.endswith("root") else ["ns", "t"]


@pytest.fixture(params=[False, True], ids=["files", "managed"])
def catalog(request: Any, place: Place) -> DirectoryNamespace:
    """A catalog with a namespace, once with and once without versions in its manifest."""
    catalog = place.catalog()
    catalog.set_root_properties({"table_version_management": str(request.param).lower()})
    catalog.create_namespace(CreateNamespaceRequest(id=["ns"]))
    return catalog


def write(place: Place, catalog: DirectoryNamespace, path: list[str], mode: str, *ids: int) -> lance.LanceDataset:
    return lance.write_dataset(
        rows(*ids), namespace_client=catalog, table_id=path, mode=mode, storage_options=place.storage_options
    )


def read(
    place: Place, catalog: DirectoryNamespace, path: list[str], version: int | str | None = None
) -> tuple[int, list[int]]:
    table = lance.dataset(
        namespace_client=catalog, table_id=path, version=version, storage_options=place.storage_options
    )
    return table.version, sorted(table.to_table()["id"].to_pylist())


def managed(catalog: DirectoryNamespace) -> bool:
    return catalog.set_root_properties({})["table_version_management"] == "true"


def test_a_table_is_created_appended_to_overwritten_and_travelled_through(
    place: Place, catalog: DirectoryNamespace, path: list[str]
) -> None:
    write(place, catalog, path, "create", 1)
    write(place, catalog, path, "append", 2)
    write(place, catalog, path, "overwrite", 3)

    assert read(place, catalog, path) == (3, [3])
    assert read(place, catalog, path, 2) == (2, [1, 2])
    assert read(place, place.catalog(), path, 1) == (1, [1])
    listed = catalog.list_table_versions(ListTableVersionsRequest(id=path)).versions
    assert [item.version for item in listed] == [1, 2, 3]
    assert path[-1] in catalog.list_tables(ListTablesRequest(id=path[:-1])).tables


def test_versions_are_rows_of_the_manifest_exactly_when_it_manages_them(
    place: Place, catalog: DirectoryNamespace, path: list[str]
) -> None:
    write(place, catalog, path, "create", 1)
    write(place, catalog, path, "append", 2)

    stored = lance.dataset(place.uri("__manifest"), storage_options=place.storage_options).to_table(
        filter="object_type = 'table_version'"
    )

    name = "$".join(path)
    assert sorted(stored["object_id"].to_pylist()) == ([f"{name}$1", f"{name}$2"] if managed(catalog) else [])
    described = catalog.describe_table(DescribeTableRequest(id=path))
    assert bool(described.managed_versioning) == managed(catalog)
    plain = lance.dataset(described.location, storage_options=place.storage_options)
    assert (plain.version, plain.count_rows()) == (2, 2)


def test_tags_point_at_versions(place: Place, catalog: DirectoryNamespace, path: list[str]) -> None:
    table = write(place, catalog, path, "create", 1)
    table.tags.create("first", 1)
    write(place, catalog, path, "append", 2)

    assert read(place, catalog, path, "first") == (1, [1])
    answer = catalog.describe_table(DescribeTableRequest(id=path, tag="first", load_detailed_metadata=True))
    assert answer.version == 1


@pytest.mark.quick
def test_rows_are_changed_through_a_handle_that_the_catalog_gave(
    place: Place, catalog: DirectoryNamespace, path: list[str]
) -> None:
    table = write(place, catalog, path, "create", 1, 2, 3)

    table.delete("id = 1")
    table.update({"name": "'new'"}, where="id = 2")
    table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(3, 4))

    assert read(place, catalog, path)[1] == [2, 3, 4]
    numbers = [item.version for item in catalog.list_table_versions(ListTableVersionsRequest(id=path)).versions]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 4


def test_a_commit_of_fragments_that_were_written_apart_goes_through_the_catalog(
    place: Place, catalog: DirectoryNamespace, path: list[str]
) -> None:
    table = write(place, catalog, path, "create", 1)
    fragments = lance.fragment.write_fragments(rows(2), table, storage_options=place.storage_options)

    committed = lance.LanceDataset.commit(
        table,
        lance.LanceOperation.Append(fragments),
        read_version=table.version,
        storage_options=place.storage_options,
        namespace_client=catalog,
        table_id=path,
        namespace_client_managed_versioning=managed(catalog),
    )

    assert committed.version == 2
    assert read(place, catalog, path) == (2, [1, 2])
    described = catalog.describe_table_version(DescribeTableVersionRequest(id=path, version=2)).version
    assert described.manifest_path.endswith("18446744073709551613.manifest")


def test_a_stale_handle_meets_a_conflict_that_it_can_rebase_over(
    place: Place, catalog: DirectoryNamespace, path: list[str]
) -> None:
    write(place, catalog, path, "create", 1, 2)
    stale = lance.dataset(namespace_client=catalog, table_id=path, storage_options=place.storage_options)
    write(place, catalog, path, "append", 3)

    stale.delete("id = 1")

    assert read(place, catalog, path) == (3, [2, 3])
