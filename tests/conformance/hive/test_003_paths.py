"""Document 003, sections 2.3, 3.2 and 3.3: names, what leaves hold, and how they are discovered."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DescribeTableRequest,
    ListNamespacesRequest,
    ListTablesRequest,
)
from lance_namespace import connect as connect_namespace

import lancepart as lp
from lancepart.errors import InvalidTableStateError, UnsupportedOperationError
from tests.conformance.hive import trees
from tests.support.catalogs import Place

SCHEMA = pa.schema([("id", pa.int64()), ("event_date", pa.date32()), ("country", pa.string())])
DAY, NEXT = date(2025, 12, 10), date(2025, 12, 11)


def events(*rows: tuple[int, date | None, str | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def leaf_directories(root: str) -> list[str]:
    found = []
    for directory, names, _ in os.walk(root):
        for name in list(names):
            if name.endswith(".lance"):
                found.append(os.path.relpath(os.path.join(directory, name), root))
                names.remove(name)
    return sorted(found)


def test_the_tree_is_the_documents(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["event_date", "country"], layout="hive")
    table.append(events((1, DAY, "US"), (2, DAY, "CN"), (3, NEXT, "US"), (4, NEXT, "FR")))

    assert leaf_directories(local.root) == [
        "event_date=2025-12-10/country=CN.lance",
        "event_date=2025-12-10/country=US.lance",
        "event_date=2025-12-11/country=FR.lance",
        "event_date=2025-12-11/country=US.lance",
    ]


def test_partition_columns_are_not_in_the_leaves_and_come_back_with_their_types(place: Place) -> None:
    table = lp.create_table(
        place.root, SCHEMA, ["event_date", "country"], layout="hive", storage_options=place.storage_options
    )
    rows = events((1, DAY, "US"), (2, NEXT, None))
    assert table.append(rows) is None

    table = lp.open_table(place.root, storage_options=place.storage_options)
    leaf = table.scan("id = 1").plan().leaves[0]
    plain = lance.dataset(table._manifest.root.uri_of(leaf.location), storage_options=place.storage_options)

    assert plain.schema.names == ["id"]
    assert table.scan().to_arrow().sort_by("id") == rows


def test_the_source_of_a_function_stays_in_the_leaf(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["year(event_date)", "country"], layout="hive")
    table.append(events((1, DAY, "US")))

    leaf = table.scan().plan().leaves[0]

    assert leaf.object_id == "event_date_year=2025$country=US"
    assert lance.dataset(f"{local.root}/{leaf.location}").schema.names == ["id", "event_date"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "__HIVE_DEFAULT_PARTITION__",
        "null",
        "a/b",
        "a=b",
        "a$b",
        "50%",
        "%2F",
        "..",
        ".",
        "x.lance",
        'it\'s "quoted"',
        "back\\slash",
        "tab\tnew\nline",
        "é😀",
        "a:b?c#d*e",
        " lead and trail ",
        "x" * 300,
    ],
)
@pytest.mark.parametrize("levels", [["country"], ["country", "event_date"]])
def test_any_text_comes_back(local: Place, value: str | None, levels: list[str]) -> None:
    table = lp.create_table(local.root, SCHEMA, levels, layout="hive")
    table.append(events((1, DAY, value), (2, DAY, "other")))
    table.append(events((3, DAY, value)))

    again = lp.open_table(local.root)
    test = "country IS NULL" if value is None else "country = '" + value.replace("'", "''") + "'"

    assert [row["country"] for row in again.scan("id <> 2").to_arrow().to_pylist()] == [value, value]
    assert trees.ids(again, test) == [1, 3]
    assert len(again.scan(test).plan().leaves) == 1


def test_names_of_columns_are_escaped_too(local: Place) -> None:
    schema = pa.schema([("id", pa.int64()), ("a/b=c$d.e`f", pa.string()), ("😀 x", pa.int32())])
    table = lp.create_table(local.root, schema, ["a/b=c$d.e`f", 'truncate("😀 x", 10)'], layout="hive")
    rows = pa.table({"id": [1], "a/b=c$d.e`f": ["v"], "😀 x": [17]}, schema=schema)
    table.append(rows)

    assert trees.paths(table) == ["a%2Fb%3Dc%24d.e`f=v$😀 x_trunc=10"]
    assert lp.open_table(local.root).scan().to_arrow() == rows


def test_names_that_differ_only_once_they_are_escaped_are_told_apart(local: Place) -> None:
    schema = pa.schema([("id", pa.int64()), ("a.b", pa.string()), ("a%2Eb", pa.string())])
    table = lp.create_table(local.root, schema, ["a.b"], layout="hive")
    rows = pa.table({"id": [1], "a.b": ["x"], "a%2Eb": ["y"]}, schema=schema)
    table.append(rows)
    table.append(rows)

    assert table.scan().to_arrow() == pa.concat_tables([rows, rows])


@pytest.mark.parametrize(
    ("kind", "value", "name"),
    [
        (pa.int8(), -5, "p=-5"),
        (pa.uint64(), 2**64 - 1, "p=18446744073709551615"),
        (pa.bool_(), True, "p=true"),
        (pa.float64(), 0.1, "p=0.1"),
        (pa.decimal128(10, 2), Decimal("1.50"), "p=1.50"),
        (pa.date32(), DAY, "p=2025-12-10"),
        (pa.time64("us"), time(10, 5, 0, 7), "p=10%3A05%3A00.000007"),
        (pa.timestamp("s"), datetime(2025, 12, 10, 10), "p=2025-12-10 10%3A00%3A00"),
        (pa.timestamp("us", "Asia/Tokyo"), datetime(2025, 12, 10, 10, tzinfo=UTC), "p=2025-12-10 10%3A00%3A00.000000"),
        (pa.dictionary(pa.int8(), pa.string()), "US", "p=US"),
    ],
)
def test_atomic_types_in_names(local: Place, kind: Any, value: Any, name: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("p", kind)])
    table = lp.create_table(local.root, schema, ["p"], layout="hive")
    values = pa.array([value]).cast(kind) if pa.types.is_dictionary(kind) else pa.array([value], kind)
    rows = pa.table([pa.array([1]), values], schema=schema)
    table.append(rows)

    assert trees.paths(table) == [name]
    assert lp.open_table(local.root).scan().to_arrow() == rows


@pytest.mark.parametrize("kind", [pa.binary(), pa.list_(pa.int8()), pa.struct([("x", pa.int8())]), pa.duration("s")])
def test_types_that_have_no_reliable_text_are_refused_for_identity(local: Place, kind: Any) -> None:
    with pytest.raises(lp.errors.InvalidInputError, match="identity is not defined"):
        lp.create_table(local.root, pa.schema([("id", pa.int64()), ("p", kind)]), ["p"], layout="hive")


def test_discovery_follows_what_other_clients_add(local: Place) -> None:
    trees.write_events(local.root)
    table = lp.open_table(local.root)
    assert len(table.scan().plan().leaves) == 4

    catalog = local.catalog()
    catalog.create_namespace(CreateNamespaceRequest(id=["event_date=2025-12-12"]))
    location = catalog.declare_table(DeclareTableRequest(id=["event_date=2025-12-12", "country=DE"])).location
    lance.write_dataset(pa.table({"id": [7]}), location)

    assert trees.ids(table, "event_date > DATE '2025-12-11'") == [7]
    assert table.scan("id = 7").to_arrow()["country"].to_pylist() == ["DE"]


def test_a_leaf_that_was_only_declared_has_no_rows_yet(local: Place) -> None:
    trees.write_events(local.root)
    catalog = local.catalog()
    for country in ("DE", "IT"):
        catalog.declare_table(DeclareTableRequest(id=["event_date=2025-12-11", f"country={country}"]))
    table = lp.open_table(local.root)

    assert trees.ids(table) == [1, 2, 3, 4, 5, 6]
    assert table.scan().count() == 6
    assert sorted(table.inspect.partitions().column("rows").to_pylist())[:2] == [0, 0]
    assert sum(table.inspect.fragments().column("rows").to_pylist()) == 6
    assert table.inspect.indices().num_rows == 0
    table.append(events((7, NEXT, "DE")))
    table.delete("country = 'IT'")
    assert trees.ids(table, "country = 'DE'") == [7]
    assert trees.ids(lp.upgrade(local.root)) == [1, 2, 3, 4, 5, 6, 7]


def test_discovery_is_kept_while_the_manifest_stands_still(local: Place) -> None:
    trees.write_events(local.root)
    manifest = lp.open_table(local.root)._manifest

    first, second = manifest.snapshot().tree, manifest.snapshot().tree  # type: ignore[attr-defined]

    assert first is second


def test_recursive_listing_through_the_catalog_finds_what_we_wrote(place: Place) -> None:
    table = lp.create_table(
        place.root, SCHEMA, ["event_date", "country"], layout="hive", storage_options=place.storage_options
    )
    table.append(events((1, DAY, "US"), (2, NEXT, "FR")))
    catalog = place.catalog()

    levels = catalog.list_namespaces(ListNamespacesRequest(id=[])).namespaces
    below = [catalog.list_tables(ListTablesRequest(id=[level])).tables for level in levels]

    assert levels == ["event_date=2025-12-10", "event_date=2025-12-11"]
    assert below == [["country=US"], ["country=FR"]]


def test_a_client_that_knows_nothing_of_it_sees_an_ordinary_tree(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["event_date", "country"], layout="hive")
    table.append(events((1, DAY, "US")))
    native = connect_namespace("dir", {"root": local.root, "manifest_enabled": "true"})

    assert native.list_namespaces(ListNamespacesRequest(id=[])).namespaces == ["event_date=2025-12-10"]
    assert native.list_tables(ListTablesRequest(id=["event_date=2025-12-10"])).tables == ["country=US"]
    location = native.describe_table(DescribeTableRequest(id=["event_date=2025-12-10", "country=US"])).location
    assert lance.dataset(location).to_table().to_pydict() == {"id": [1]}


def test_ordinary_tables_beside_the_tree_are_left_alone(local: Place) -> None:
    trees.write_events(local.root)
    lance.write_dataset(pa.table({"x": [1]}), f"{local.root}/users.lance")
    local.catalog().migrate()

    assert trees.ids(lp.open_table(local.root)) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "path", ["event_date=2025-12-10", "event_date=2025-12-10/city=Rome", "event_date=soon/country=US", "a=1/b=2/c=3"]
)
def test_a_leaf_that_does_not_fit_is_an_invalid_state(local: Place, path: str) -> None:
    trees.write_manifest(local.root, [path], trees.EVENT_PROPERTIES)

    with pytest.raises(InvalidTableStateError):
        lp.open_table(local.root)


def test_levels_are_known_by_their_keys_not_their_order(local: Place) -> None:
    trees.write_tree(local.root, {"country=US/event_date=2025-12-10": pa.table({"id": [1]})})
    trees.write_manifest(local.root, ["country=US/event_date=2025-12-10"], trees.EVENT_PROPERTIES)

    assert lp.open_table(local.root).scan().to_arrow() == events((1, DAY, "US"))


def test_a_bare_tree_opens_for_reading(local: Place) -> None:
    trees.write_tree(local.root, trees.event_rows())

    table = lp.open_table(local.root)

    assert table.schema == SCHEMA
    assert trees.paths(table, "event_date = '2025-12-11' AND country != 'FR'") == ["event_date=2025-12-11$country=US"]
    assert trees.ids(table) == [1, 2, 3, 4, 5, 6]
    assert table.inspect.partitions().num_rows == 4
    assert table.inspect.snapshots().num_rows == 0
    for write in (
        lambda: table.append(events((9, DAY, "US"))),
        lambda: table.delete("true"),
        lambda: lp.upgrade(local.root),
    ):
        with pytest.raises(UnsupportedOperationError, match="no __manifest"):
            write()
    assert not os.path.exists(f"{local.root}/__manifest")


def test_a_bare_tree_of_functions_is_understood_by_its_names(local: Place) -> None:
    stamps = pa.array([datetime(2025, 12, 10, 10)], pa.timestamp("us"))
    trees.write_tree(
        local.root,
        {
            "ts_year=2025/ts_month=12/id_bucket=3": pa.table({"id": [1], "ts": stamps}),
            "ts_year=2024/ts_month=01/id_bucket=3": pa.table({"id": [2], "ts": stamps}),
        },
    )
    table = lp.open_table(local.root)

    assert table.schema.names == ["id", "ts"]
    assert trees.paths(table, "ts >= '2025-12-01' AND id = 5") == ["ts_year=2025$ts_month=12$id_bucket=3"]


def test_a_bare_tree_inside_a_larger_one(local: Place) -> None:
    trees.write_tree(local.root, trees.event_rows(), "db/events")

    assert trees.ids(lp.open_table(local.root, namespace=("db", "events")), "country = 'FR'") == [5, 6]


def test_a_tree_has_no_snapshots(local: Place) -> None:
    trees.write_events(local.root)

    with pytest.raises(UnsupportedOperationError, match="no snapshots"):
        lp.open_table(local.root, version=1)
    table = lp.open_table(local.root)
    for ask in (lambda: table.tags, table.transaction, lambda: table.changes(1), lambda: table.maintenance):
        with pytest.raises(UnsupportedOperationError, match="upgrade"):
            ask()
