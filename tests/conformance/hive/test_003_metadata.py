"""Document 003, sections 2 and 3.1: what makes a namespace a partitioned table."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, DescribeNamespaceRequest

import lancepart as lp
from lancepart.errors import InvalidInputError, InvalidTableStateError, TableAlreadyExistsError, TableNotFoundError
from lancepart.model.transforms import Identity
from lancepart.model.transforms.hive import FloorBucket, FloorTruncate, Hash
from tests.conformance.hive import trees
from tests.support.catalogs import Place

SCHEMA = pa.schema([("id", pa.int64()), ("event_date", pa.date32()), ("tenant_id", pa.string())])


def test_a_tree_made_by_hand_opens_and_answers(local: Place) -> None:
    trees.write_events(local.root)

    table = lp.open_table(local.root)

    assert trees.ids(table) == [1, 2, 3, 4, 5, 6]
    assert table.schema == pa.schema([("id", pa.int64()), ("event_date", pa.date32()), ("country", pa.string())])
    assert table.scan("id = 5").to_arrow().to_pylist() == [{"id": 5, "event_date": date(2025, 12, 11), "country": "FR"}]


def test_the_properties_are_those_of_the_document(place: Place) -> None:
    lp.create_table(
        place.root,
        SCHEMA,
        ["event_date", "bucket(100, tenant_id)"],
        layout="hive",
        storage_options=place.storage_options,
    )

    given = place.catalog().describe_namespace(DescribeNamespaceRequest(id=[])).properties

    assert given["lance.partitioning.is_partitioned"] == "true"
    assert json.loads(given["lance.partitioning.partition_columns"]) == [
        {"name": "event_date", "function": "identity"},
        {"name": "tenant_id", "function": "bucket", "properties": {"num_buckets": "100"}},
    ]
    assert [field["name"] for field in json.loads(given["lance.partitioning.schema"])["fields"]] == SCHEMA.names


def test_the_documents_example_of_properties_is_read(local: Place) -> None:
    columns = [
        {"name": "event_date", "function": "identity"},
        {"name": "tenant_id", "function": "bucket", "properties": {"num_buckets": "100"}},
    ]
    schema = {
        "fields": [*trees.EVENTS["fields"][:2], {"name": "tenant_id", "nullable": True, "type": {"name": "utf8"}}]
    }
    trees.write_manifest(local.root, [], trees.properties(columns, schema))

    fields = lp.open_table(local.root).spec.fields

    assert [field.field_id for field in fields] == ["event_date", "tenant_id_bucket"]
    assert fields[1].transform.num_buckets == 100  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("column", "transform"),
    [
        ({"name": "country"}, Identity()),
        ({"name": "country", "function": "truncate(3)"}, FloorTruncate(3)),
        ({"name": "country", "function": "truncate", "properties": {"width": "3"}}, FloorTruncate(3)),
        ({"name": "country", "function": "truncate", "properties": {"width": 3}}, FloorTruncate(3)),
        ({"name": "country", "function": "bucket", "properties": {"num_buckets": 7}}, FloorBucket(7)),
        ({"name": "country", "function": "hash"}, Hash()),
    ],
)
def test_a_functions_spelling(local: Place, column: dict[str, Any], transform: Any) -> None:
    trees.write_manifest(local.root, [], trees.properties([column]))

    assert lp.open_table(local.root).spec.fields[0].transform == transform


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"name": "nobody"}, "'nobody' is not in the schema"),
        ({"name": "country", "function": "soundex"}, "unknown function 'soundex'"),
        ({"name": "country", "function": "bucket"}, "needs num_buckets"),
        ({"name": "country", "function": "bucket", "properties": {"num_buckets": "0"}}, "positive integer"),
        ({"name": "country", "function": "truncate", "properties": {"width": -3}}, "positive integer"),
        ({"name": "country", "function": "truncate", "properties": {"width": "wide"}}, "not a whole number"),
        ({"name": "country", "function": "truncate(3)", "properties": {"width": "4"}}, "disagree"),
        ({"name": "country", "function": "year"}, "year is not defined for column 'country'"),
        ({"function": "identity"}, "an object with a name"),
    ],
)
def test_invalid_partition_columns_are_named(local: Place, column: dict[str, Any], said: str) -> None:
    trees.write_manifest(local.root, [], trees.properties([column]))

    with pytest.raises(InvalidTableStateError, match="partition_columns") as caught:
        lp.open_table(local.root)

    assert said in str(caught.value)


def test_the_schema_may_be_a_json_arrow_schema(local: Place) -> None:
    schema = {
        "fields": [
            {"name": "id", "nullable": True, "type": {"type": "int64"}},
            {"name": "event_date", "nullable": True, "type": {"type": "date32"}},
            {"name": "country", "nullable": True, "type": {"type": "utf8"}},
        ]
    }
    trees.write_tree(local.root, trees.event_rows())
    trees.write_manifest(
        local.root,
        list(trees.EVENT_LEAVES),
        trees.properties([{"name": "event_date"}, {"name": "country"}], schema),
    )

    assert trees.ids(lp.open_table(local.root), "country = 'FR'") == [5, 6]


@pytest.mark.parametrize("text", ["{", '{"fields": 3}', '{"fields": [{"name": "a", "type": {"name": "quux"}}]}'])
def test_an_invalid_schema_is_named(local: Place, text: str) -> None:
    trees.write_manifest(local.root, [], {**trees.EVENT_PROPERTIES, "lance.partitioning.schema": text})

    with pytest.raises(InvalidTableStateError, match=r"lance\.partitioning\.schema"):
        lp.open_table(local.root)


@pytest.mark.parametrize("mark", ["false", "True", "TRUE", " true ", "1", "yes", ""])
def test_a_namespace_without_the_mark_is_no_table(local: Place, mark: str) -> None:
    given = {**trees.EVENT_PROPERTIES, "lance.partitioning.is_partitioned": mark}
    trees.write_manifest(local.root, [], given)

    with pytest.raises(TableNotFoundError):
        lp.open_table(local.root)


def test_a_table_may_live_inside_a_larger_catalog(local: Place) -> None:
    trees.write_events(local.root, namespace=("sales", "my_partitioned_table"))
    local.catalog().create_namespace(CreateNamespaceRequest(id=["other"]))

    table = lp.open_table(local.root, namespace=("sales", "my_partitioned_table"))
    table.append([{"id": 7, "event_date": date(2025, 12, 12), "country": "US"}])

    assert trees.ids(table, "country = 'US'") == [1, 2, 4, 7]
    assert trees.paths(table, "id = 7 AND event_date = DATE '2025-12-12'") == [
        "sales$my_partitioned_table$event_date=2025-12-12$country=US"
    ]
    with pytest.raises(TableNotFoundError):
        lp.open_table(local.root, namespace=("other",))


@pytest.mark.parametrize(
    ("partition_by", "said"),
    [
        (["nobody"], "no column"),
        (["year(tenant_id)"], "year is not defined"),
        (["truncate(tenant_id, 0)"], "between 1 and"),
        (["multi_bucket(4, id, tenant_id)"], "no such function"),
        (["expr(id % 3)"], "no such function"),
        (["event_date", "event_date"], "both be called 'event_date'"),
        (["year(event_date) AS y"], "calls it 'event_date_year' itself"),
        (["id", "event_date", "tenant_id"], "keep at least one"),
        ([], "no partition columns"),
    ],
)
def test_what_can_not_be_made_is_refused_and_nothing_is_there(local: Place, partition_by: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        lp.create_table(local.root, SCHEMA, partition_by, layout="hive")

    with pytest.raises(TableNotFoundError):
        lp.open_table(local.root)


def test_a_root_with_a_table_is_taken(local: Place) -> None:
    lp.create_table(local.root, SCHEMA, ["event_date"], layout="hive")

    for layout in ("hive", "manifest"):
        with pytest.raises(TableAlreadyExistsError):
            lp.create_table(local.root, SCHEMA, ["event_date"], layout=layout)


def test_the_number_of_buckets_can_not_be_changed(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["bucket(100, tenant_id)"], layout="hive")

    with pytest.raises(lp.errors.UnsupportedOperationError, match="upgrade"):
        table.update_spec(["bucket(50, tenant_id)"])
    with pytest.raises(lp.errors.UnsupportedOperationError, match="upgrade"):
        table.add_column(pa.field("x", pa.int8()))

    assert lp.open_table(local.root).spec.fields[0].transform.num_buckets == 100  # type: ignore[union-attr]


def test_a_bucket_beyond_their_number_is_an_invalid_state(local: Place) -> None:
    columns = [{"name": "country", "function": "bucket", "properties": {"num_buckets": "4"}}]
    trees.write_manifest(local.root, ["country_bucket=5"], trees.properties(columns))

    with pytest.raises(InvalidTableStateError, match="country_bucket=5"):
        lp.open_table(local.root)
