"""002, "Metadata Definition", "Schema" and Appendix A."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client.models import JsonArrowSchema
from lance_namespace_urllib3_client.models import PartitionSpec as PartitionSpecModel

import lancepart as lp
from lancepart.errors import InvalidTableStateError, TableNotFoundError, UnsupportedOperationError
from lancepart.model.transforms import Identity, Year
from tests.conformance.partitioned import appendix
from tests.conformance.partitioned.appendix import METADATA, SCHEMA
from tests.support.catalogs import Place

Properties = Callable[..., Place]


def _stored(table: lp.PartitionedTable) -> dict[str, str]:
    return dict(lance.dataset(f"{table.root}/__manifest").metadata)


def test_appendix_a_is_read_as_it_stands(properties: Properties) -> None:
    table = lp.open_table(properties().root)

    assert table.schema == SCHEMA
    assert [spec.id for spec in table.specs] == [1, 2]
    assert [(f.field_id, f.source_ids, f.transform, f.result_type) for spec in table.specs for f in spec.fields] == [
        ("event_date", (1,), Identity(), pa.date32()),
        ("event_year", (1,), Year(), pa.int32()),
        ("country", (2,), Identity(), pa.string()),
    ]


def test_what_we_write_is_appendix_a_to_the_letter(ours: lp.PartitionedTable) -> None:
    stored = _stored(ours)

    assert {key: json.loads(stored[key]) for key in METADATA} == METADATA


def test_the_properties_are_the_models_of_lance_namespace(ours: lp.PartitionedTable) -> None:
    stored = _stored(ours)

    assert PartitionSpecModel.from_json(stored["partition_spec_v2"]).fields[0].field_id == "event_year"
    assert [field.name for field in JsonArrowSchema.from_json(stored["schema"]).fields] == SCHEMA.names


def test_everything_of_our_own_has_our_prefix(ours: lp.PartitionedTable) -> None:
    assert all(key in METADATA or key.startswith("lancepart.") for key in _stored(ours))


def test_a_catalog_without_a_spec_is_no_partitioned_table(local: Place) -> None:
    appendix.write_manifest(local.root, [], {"schema": METADATA["schema"]})

    with pytest.raises(TableNotFoundError, match="no partitioned table"):
        lp.open_table(local.root)


def test_one_spec_version_makes_a_catalog_a_partitioned_table(properties: Properties) -> None:
    place = properties(partition_spec_v1=None)

    assert [spec.id for spec in lp.open_table(place.root).specs] == [2]


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("s"),
        pa.timestamp("ms", "Europe/Berlin"),
        pa.timestamp("us", "UTC"),
        pa.timestamp("ns"),
        pa.decimal128(20, 4),
        pa.decimal256(60, 10),
        pa.time32("s"),
        pa.time64("ns"),
        pa.duration("ms"),
        pa.binary(5),
        pa.large_string(),
        pa.float16(),
        pa.list_(pa.float32(), 8),
        pa.struct([("a", pa.list_(pa.int8())), ("b", pa.struct([("c", pa.date64())]))]),
        pa.map_(pa.string(), pa.timestamp("ms", "UTC")),
        pa.dictionary(pa.int16(), pa.string()),
        pa.uuid(),
    ],
    ids=str,
)
def test_a_schema_of_any_type_that_lance_stores_comes_back(tmp_path: Any, kind: Any) -> None:
    schema = pa.schema([("id", pa.int64()), ("value", kind)], metadata={"owner": "data"})

    table = lp.create_table(tmp_path, schema, ["id"])

    assert table.schema.equals(schema, check_metadata=True)


def test_timestamps_and_decimals_are_spelled_as_pylances_own_describe_table_does(local: Place, tmp_path: Any) -> None:
    from lance.namespace import DirectoryNamespace
    from lance_namespace import CreateTableRequest, DescribeTableRequest

    from tests.support.catalogs import ipc

    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("price", pa.decimal128(10, 2)), ("id", pa.int64())])
    native = DirectoryNamespace(root=str(tmp_path / "native"))
    native.create_table(CreateTableRequest(id=["t"]), ipc(pa.Table.from_pylist([{"id": 1}], schema=schema)))
    described = native.describe_table(DescribeTableRequest(id=["t"], load_detailed_metadata=True)).var_schema

    table = lp.create_table(local.root, schema, ["id"])

    ours = json.loads(_stored(table)["schema"])
    assert [field["type"] for field in ours["fields"]] == [field.type.to_dict() for field in described.fields]


def test_each_field_has_a_unique_id_nested_ones_too(local: Place) -> None:
    schema = pa.schema([("id", pa.int64()), ("place", pa.struct([("city", pa.string()), ("zip", pa.string())]))])

    lp.create_table(local.root, schema, ["id"])

    fields = json.loads(lance.dataset(f"{local.root}/__manifest").metadata["schema"])["fields"]
    inner = fields[1]["type"]["fields"]
    found = [int(field["metadata"]["lance:field_id"]) for field in [*fields, *inner]]
    assert sorted(found) == [0, 1, 2, 3]


def test_field_ids_are_consistent_across_partition_tables(ours: lp.PartitionedTable) -> None:
    seen = []
    for leaf in ours.scan().plan().leaves:
        schema = lance.dataset(f"{ours.root}/{leaf.location}").lance_schema
        seen.append([(field.name(), field.id()) for field in schema.fields()])

    assert seen == [[("id", 0), ("event_date", 1), ("country", 2)]] * 2


def test_field_ids_are_never_used_again(ours: lp.PartitionedTable) -> None:
    ours.add_column(pa.field("note", pa.string()))
    ours.drop_column("note")
    ours.add_column(pa.field("note", pa.string()))

    fields = json.loads(_stored(ours)["schema"])["fields"]
    assert fields[-1]["metadata"]["lance:field_id"] == "4"


def _changed(key: str, **values: Any) -> dict[str, Any]:
    spec = copy.deepcopy(METADATA[key])
    spec["fields"][0].update(values)
    spec["fields"][0] = {name: value for name, value in spec["fields"][0].items() if value is not None}
    return {key: spec}


SAME = {**METADATA["partition_spec_v2"]["fields"][0]}
UNNUMBERED = [{"name": "id", "nullable": False, "type": {"type": "int64"}}]
ODD = [{"name": "id", "nullable": False, "type": {"type": "int63"}, "metadata": {"lance:field_id": "0"}}]
DOUBLED = [
    {"name": name, "nullable": True, "type": {"type": "int64"}, "metadata": {"lance:field_id": "0"}} for name in "ab"
]
INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "no schema": ({"schema": None}, "no 'schema' property"),
    "schema that is no schema": ({"schema": ["id"]}, "property 'schema'"),
    "schema without ids": ({"schema": {"fields": UNNUMBERED}}, "'schema'.*'id' has no lance:field_id"),
    "unknown type": ({"schema": {"fields": ODD}}, "'schema'.*'id'.*int63"),
    "an id twice": ({"schema": {"fields": DOUBLED}}, "'schema'.*0"),
    "spec that is a number": ({"partition_spec_v1": 1}, "'partition_spec_v1'.*object with an id and fields"),
    "wrong id": ({"partition_spec_v2": METADATA["partition_spec_v1"]}, "partition_spec_v2 holds a spec with id 1"),
    "no id": ({"partition_spec_v1": {"fields": []}}, "'partition_spec_v1'.*id counts from 1"),
    "unknown transform": (
        _changed("partition_spec_v1", transform={"type": "decade"}),
        "'partition_spec_v1'.*'event_date'.*decade",
    ),
    "transform without its number": (
        _changed("partition_spec_v1", transform={"type": "bucket"}, result_type={"type": "int32"}),
        "'partition_spec_v1'.*'event_date'.*num_buckets",
    ),
    "transform with another's number": (
        _changed("partition_spec_v1", transform={"type": "identity", "width": 3}),
        "'partition_spec_v1'.*'event_date'",
    ),
    "neither transform nor expression": (_changed("partition_spec_v1", transform=None), "either a transform or an"),
    "both": (_changed("partition_spec_v1", expression="col0"), "'event_date'.*either a transform or an expression"),
    "a field id twice": (
        {"partition_spec_v2": {"id": 2, "fields": [SAME, {**SAME, "transform": {"type": "month"}}]}},
        "'partition_spec_v2'.*'event_year' more than once",
    ),
    "no sources": (_changed("partition_spec_v1", source_ids=[]), "'partition_spec_v1'.*'event_date'.*source_ids"),
    "result type that it does not give": (
        _changed("partition_spec_v1", result_type={"type": "utf8"}),
        "'partition_spec_v1'.*'event_date'.*date32.*string",
    ),
    "no result type": (_changed("partition_spec_v1", result_type=None), "'partition_spec_v1'.*'event_date'"),
    "hour of a date": (
        _changed("partition_spec_v2", transform={"type": "hour"}),
        "'partition_spec_v2'.*'event_year'.*hour is not defined",
    ),
    "expression over a column that it has not": (
        _changed("partition_spec_v1", transform=None, expression="col1"),
        "'partition_spec_v1'.*'event_date'.*col1",
    ),
    "expression of the time": (
        _changed("partition_spec_v1", transform=None, expression="now()"),
        "'partition_spec_v1'.*'event_date'.*now",
    ),
}


@pytest.mark.parametrize(("changed", "reason"), INVALID.values(), ids=INVALID.keys())
def test_invalid_metadata_says_which_property_and_why(
    properties: Properties, changed: dict[str, Any], reason: str
) -> None:
    place = properties(**changed)

    with pytest.raises(InvalidTableStateError, match=reason):
        lp.open_table(place.root)


@pytest.mark.parametrize("key", ["schema", "partition_spec_v1"])
def test_text_that_is_not_json_is_named(properties: Properties, key: str) -> None:
    place = properties()
    lance.dataset(f"{place.root}/__manifest").update_metadata({key: "{not json"})

    with pytest.raises(InvalidTableStateError, match=f"'{key}'"):
        lp.open_table(place.root)


def test_a_source_that_is_gone_reads_as_null_and_the_table_opens(properties: Properties) -> None:
    place = properties(**_changed("partition_spec_v1", source_ids=[7]))

    assert lp.open_table(place.root).specs[0].fields[0].source_ids == (7,)


@pytest.mark.parametrize(
    ("spelled", "reason"),
    [
        ('{"version": 2, "features": []}', "format 2"),
        ('{"version": 1, "features": ["leaf-field-ids", "time-machine"]}', "time-machine"),
    ],
)
def test_a_newer_format_is_refused(properties: Properties, spelled: str, reason: str) -> None:
    place = properties()
    lance.dataset(f"{place.root}/__manifest").update_metadata({"lancepart.format": spelled})

    with pytest.raises(UnsupportedOperationError, match=reason):
        lp.open_table(place.root)


def test_a_format_that_can_not_be_read_is_an_invalid_state(properties: Properties) -> None:
    place = properties()
    lance.dataset(f"{place.root}/__manifest").update_metadata({"lancepart.format": "two"})

    with pytest.raises(InvalidTableStateError, match=r"lancepart\.format"):
        lp.open_table(place.root)


def test_a_format_that_came_while_the_table_was_open_stops_a_write(ours: lp.PartitionedTable) -> None:
    newer = '{"version": 2, "features": []}'
    lance.dataset(f"{ours.root}/__manifest").update_metadata({"lancepart.format": newer})

    with pytest.raises(UnsupportedOperationError, match="format 2"):
        ours.append(appendix.events((6, appendix.DAY, "US")))
