"""Making a table: what is refused, and that only one of many makers wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, CreateTableRequest

import lancepart as lp
from lancepart.errors import (
    InvalidInputError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableSchemaValidationError,
    UnsupportedOperationError,
)
from tests.support.catalogs import Place, ipc, rows

SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string())])


def test_a_new_table_is_empty_and_says_what_it_is(place: Place) -> None:
    table = lp.create_table(place.root, SCHEMA, ["country"], storage_options=place.storage_options)

    again = lp.open_table(place.root, storage_options=place.storage_options)

    for each in (table, again):
        assert each.schema == SCHEMA
        assert [field.field_id for field in each.spec.fields] == ["country"]
        assert each.scan().count() == 0
        assert each.scan().to_arrow() == SCHEMA.empty_table()
        assert each.root == place.root
        assert each.inspect.partitions().num_rows == 0


def test_there_is_no_table_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="create_table"):
        lp.open_table(tmp_path / "nothing")

    assert not (tmp_path / "nothing").exists()


def test_a_table_is_made_once(local: Place) -> None:
    lp.create_table(local.root, SCHEMA, ["country"])

    with pytest.raises(TableAlreadyExistsError, match="open it"):
        lp.create_table(local.root, SCHEMA, ["id"])

    assert lp.open_table(local.root).spec.fields[0].field_id == "country"


def test_a_catalog_with_other_objects_is_left_alone(local: Place) -> None:
    catalog = local.catalog(dir_listing_enabled="false")
    catalog.create_namespace(CreateNamespaceRequest(id=["prod"]))
    catalog.create_table(CreateTableRequest(id=["prod", "users"]), ipc(rows(1)))

    with pytest.raises(TableAlreadyExistsError, match="root of its own"):
        lp.create_table(local.root, SCHEMA, ["country"])
    with pytest.raises(TableNotFoundError):
        lp.open_table(local.root)


BAD: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "no schema": ({"id": "int64"}, ["id"], InvalidInputError, "not a pyarrow.Schema"),
    "no columns": (pa.schema([]), ["id"], InvalidInputError, "no columns"),
    "a column twice": (pa.schema([("a", pa.int8()), ("a", pa.int8())]), ["a"], TableSchemaValidationError, "'a'"),
    "a string": (SCHEMA, "country", InvalidInputError, "list"),
    "unknown column": (SCHEMA, ["land"], InvalidInputError, "'land'"),
    "unknown transform": (SCHEMA, ["century(id)"], InvalidInputError, "century"),
    "a field twice": (SCHEMA, ["country", "country"], InvalidInputError, "country"),
    "intervals": (
        pa.schema([("id", pa.int64()), ("v", pa.month_day_nano_interval())]),
        ["id"],
        InvalidInputError,
        "does not store",
    ),
    "small decimals": (
        pa.schema([("id", pa.int64()), ("v", pa.struct([("d", pa.decimal64(10, 2))]))]),
        ["id"],
        InvalidInputError,
        "use decimal128",
    ),
}


@pytest.mark.parametrize(("schema", "partition_by", "error", "reason"), BAD.values(), ids=BAD.keys())
def test_a_definition_that_can_not_be_is_refused_before_anything_is_written(
    tmp_path: Path, schema: Any, partition_by: Any, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        lp.create_table(tmp_path / "bad", schema, partition_by)

    assert not (tmp_path / "bad").exists()


def test_views_are_what_lance_stores_them_as(local: Place) -> None:
    given = pa.schema([("id", pa.int64()), ("t", pa.string_view()), ("s", pa.struct([("b", pa.binary_view())]))])

    table = lp.create_table(local.root, given, ["t"])
    table.append(pa.table({"id": [1], "t": pa.array(["x"], pa.string_view())}))

    assert table.schema.field("t").type == pa.string()
    assert table.schema.field("s").type.field("b").type == pa.binary()
    assert table.scan("t = 'x'").count() == 1


def test_layouts_and_paths_of_later_are_refused_clearly(local: Place) -> None:
    with pytest.raises((UnsupportedOperationError, InvalidInputError), match="layout"):
        lp.create_table(local.root, SCHEMA, ["country"], layout="tree")


def test_a_partition_value_that_lance_could_not_filter_is_refused_when_the_table_is_made(local: Place) -> None:
    schema = pa.schema([("price", pa.decimal128(5, -2))])

    with pytest.raises(InvalidInputError, match="negative scale"):
        lp.create_table(local.root, schema, ["price"])
