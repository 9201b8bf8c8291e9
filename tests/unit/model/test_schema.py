from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lance.namespace import DirectoryNamespace
from lance_namespace_urllib3_client.models import CreateTableRequest, DescribeTableRequest

from lancepart.errors import InvalidInputError, InvalidTableStateError, TableSchemaValidationError
from lancepart.model.schema import (
    assign_field_ids,
    check_column_names,
    dumps,
    field_by_id,
    field_ids,
    max_field_id,
    require_field_ids,
    schema_from_json,
    schema_to_json,
    source_by_id,
    type_from_json,
    type_to_json,
)

UNITS = ("s", "ms", "us", "ns")
SCALARS = [
    *(pa.null(), pa.bool_(), pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64()),
    *(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(5)),
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "UTC", "Europe/Berlin", "+02:00")),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), *(pa.duration(unit) for unit in UNITS)),
    *(pa.decimal128(10, 2), pa.decimal128(10, -2), pa.decimal128(38, 38), pa.decimal256(70, 10), pa.decimal256(76, -3)),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.timestamp("s", "UTC"), ordered=True)),
]
EXTENSIONS = [pa.uuid(), pa.bool8(), pa.json_(), pa.fixed_shape_tensor(pa.float32(), [2, 3], permutation=[1, 0])]


def described(arrow_type: Any) -> dict[str, Any]:
    return schema_to_json(pa.schema([pa.field("c", arrow_type)])).to_dict()["fields"][0]


def round_trip(schema: pa.Schema) -> pa.Schema:
    return schema_from_json(dumps(schema_to_json(schema)))


NAMES = st.text(min_size=1, max_size=5)
METADATA = st.none() | st.dictionaries(NAMES, st.text(max_size=5), min_size=1, max_size=2)


def fields_of(types: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda name, kind, nullable, metadata: pa.field(
            name, kind, nullable=nullable or kind == pa.null(), metadata=metadata
        ),
        NAMES,
        types,
        st.booleans(),
        METADATA,
    )


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    children = fields_of(inner)
    keys = st.sampled_from([pa.string(), pa.int32()]).map(lambda kind: pa.field("key", kind, nullable=False))
    structs = st.lists(children, max_size=3, unique_by=lambda field: field.name).map(pa.struct)
    fixed = st.builds(pa.list_, children, st.integers(1, 9))
    return structs | children.map(pa.list_) | children.map(pa.large_list) | fixed | st.builds(pa.map_, keys, children)


TYPES = st.recursive(st.sampled_from(SCALARS + EXTENSIONS), nested, max_leaves=5)
SCHEMAS = st.builds(
    lambda fields, metadata: pa.schema(fields, metadata=metadata),
    st.lists(fields_of(TYPES), max_size=4, unique_by=lambda field: field.name),
    METADATA,
)


@settings(max_examples=100, deadline=None)
@given(SCHEMAS)
def test_every_schema_survives_its_spelling(schema: pa.Schema) -> None:
    assert round_trip(schema).equals(schema, check_metadata=True)


@settings(max_examples=50, deadline=None)
@given(SCHEMAS, st.integers(0, 50))
def test_ids_survive_too_and_each_is_given_once(schema: pa.Schema, start: int) -> None:
    numbered = assign_field_ids(schema, start)

    assert round_trip(numbered).equals(numbered, check_metadata=True)
    assert list(field_ids(numbered)) == list(range(start, start + len(field_ids(numbered))))
    assert assign_field_ids(numbered).equals(numbered, check_metadata=True)


@pytest.mark.parametrize("arrow_type", SCALARS, ids=str)
def test_a_type_alone_survives_its_spelling(arrow_type: pa.DataType) -> None:
    assert type_from_json(type_to_json(arrow_type)) == arrow_type
    assert type_from_json(dumps(type_to_json(pa.list_(arrow_type)))) == pa.list_(arrow_type)


NATIVE: list[tuple[Any, dict[str, Any]]] = [
    (pa.float16(), {"type": "float16"}),
    (pa.string(), {"type": "utf8"}),
    (pa.large_string(), {"type": "large_utf8"}),
    (pa.large_binary(), {"type": "large_binary"}),
    (pa.binary(5), {"length": 5, "type": "fixed_size_binary"}),
    (pa.date32(), {"type": "date32"}),
    (pa.timestamp("us"), {"type": "timestamp"}),
    (pa.time64("us"), {"type": "time64"}),
    (pa.duration("us"), {"type": "duration"}),
    (pa.decimal128(10, 2), {"length": 10002, "type": "decimal128"}),
    (pa.decimal128(10, -2), {"length": 9998, "type": "decimal128"}),
    (pa.decimal256(76, -3), {"length": 75997, "type": "decimal256"}),
    (
        pa.list_(pa.float32(), 8),
        {
            "fields": [{"name": "item", "nullable": True, "type": {"type": "float32"}}],
            "length": 8,
            "type": "fixed_size_list",
        },
    ),
    (
        pa.large_list(pa.field("element", pa.int8(), nullable=False)),
        {"fields": [{"name": "element", "nullable": False, "type": {"type": "int8"}}], "type": "large_list"},
    ),
    (pa.struct([]), {"fields": [], "type": "struct"}),
]


@pytest.mark.parametrize(("arrow_type", "spelling"), NATIVE, ids=lambda value: str(value)[:30])
def test_types_are_spelled_as_describe_table_spells_them(arrow_type: pa.DataType, spelling: dict[str, Any]) -> None:
    assert described(arrow_type) == {"name": "c", "nullable": True, "type": spelling}


def test_lance_itself_describes_a_table_so(tmp_path: Path) -> None:
    schema = pa.schema([(f"c{number}", arrow_type) for number, (arrow_type, _) in enumerate(NATIVE)])
    catalog = DirectoryNamespace(root=str(tmp_path))
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist([], schema=schema))
    catalog.create_table(CreateTableRequest(id=["t"]), stream.getvalue())

    native = catalog.describe_table(DescribeTableRequest(id=["t"], load_detailed_metadata=True)).var_schema

    assert dumps(native) == dumps(schema_to_json(schema))
    assert schema_from_json(native).equals(schema)


def test_what_the_spelling_loses_stands_in_the_metadata() -> None:
    assert described(pa.timestamp("ns", "UTC")) == {
        "metadata": {"lancepart:type": "timestamp[ns, tz=UTC]"},
        "name": "c",
        "nullable": True,
        "type": {"type": "timestamp"},
    }
    assert described(pa.dictionary(pa.int8(), pa.string()))["type"] == {"type": "utf8"}
    assert type_to_json(pa.timestamp("ns", "UTC")).to_dict() == {"type": "timestamp[ns, tz=UTC]"}


def test_a_map_is_spelled_with_its_entries() -> None:
    spelled = described(pa.map_(pa.string(), pa.int32()))["type"]
    assert spelled["type"] == "map"
    assert [field["name"] for field in spelled["fields"][0]["type"]["fields"]] == ["key", "value"]


def test_a_blob_and_a_bfloat16_keep_their_extension() -> None:
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    bfloat = pa.field("h", pa.binary(2), metadata={"ARROW:extension:name": "somebody.bfloat16"})
    schema = pa.schema([blob, bfloat])
    assert round_trip(schema).equals(schema, check_metadata=True)


def test_other_spellings_are_read() -> None:
    assert type_from_json({"type": "string"}) == pa.string()
    assert type_from_json({"type": "timestamp[ms, UTC]"}) == pa.timestamp("ms", "UTC")
    assert type_from_json({"type": "decimal128(10, 2)"}) == pa.decimal128(10, 2)


@pytest.mark.parametrize(
    ("spelled", "reason"),
    [
        ({"type": "integer"}, "unknown Arrow type 'integer'"),
        ({"type": "decimal128", "length": 99002}, "decimal128"),
        ({"type": "list"}, "exactly one field"),
        ({"type": "map", "fields": [{"name": "x", "nullable": True, "type": {"type": "int8"}}]}, "map"),
        ({"type": "time32[us]"}, "time32"),
        ({"type": "struct", "fields": [{"name": "n", "nullable": False, "type": {"type": "null"}}]}, "field 'n'"),
        ({}, "not a valid type"),
        ("{", "not a valid type"),
    ],
)
def test_a_type_that_is_none_says_why(spelled: Any, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        type_from_json(spelled)


def test_a_bad_type_names_its_field() -> None:
    spelled = {"fields": [{"name": "price", "nullable": True, "type": {"type": "money"}}]}
    with pytest.raises(InvalidInputError, match="field 'price': unknown Arrow type 'money'"):
        schema_from_json(json.dumps(spelled))


@pytest.mark.parametrize("arrow_type", [pa.month_day_nano_interval(), pa.list_view(pa.int8())], ids=str)
def test_types_that_lance_does_not_store_are_refused(arrow_type: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match="Lance does not store"):
        described(arrow_type)


def test_the_appendix_reads_as_it_stands() -> None:
    appendix = """{"fields": [
        {"name": "id", "nullable": false, "type": {"type": "int64"}, "metadata": {"lance:field_id": "0"}},
        {"name": "event_date", "nullable": true, "type": {"type": "date32"}, "metadata": {"lance:field_id": "1"}}]}"""
    schema = schema_from_json(appendix)

    assert schema.field("id").type == pa.int64()
    assert not schema.field("id").nullable
    assert list(field_ids(schema)) == [0, 1]
    require_field_ids(schema)


def test_a_column_name_may_stand_only_once() -> None:
    for schema in (
        pa.schema([("a", pa.int8()), ("a", pa.int8())]),
        pa.schema([("s", pa.struct([("a", pa.int8())] * 2))]),
    ):
        with pytest.raises(TableSchemaValidationError, match="'a' more than once"):
            check_column_names(schema)
        with pytest.raises(TableSchemaValidationError):
            assign_field_ids(schema)


def identified(name: str, number: str) -> pa.Field:
    return pa.field(name, pa.int8(), metadata={"lance:field_id": number})


def test_new_ids_lie_above_every_id_ever_used() -> None:
    schema = pa.schema([identified("old", "4"), pa.field("new", pa.struct([("inner", pa.int8())]))])
    numbered = assign_field_ids(schema)

    assert list(field_ids(numbered)) == [4, 5, 6]
    assert max_field_id(numbered) == 6
    assert max_field_id(assign_field_ids(schema, start=20)) == 21
    assert max_field_id(pa.schema([])) == -1


def test_a_field_is_found_by_its_id() -> None:
    schema = assign_field_ids(pa.schema([("s", pa.struct([("inner", pa.int8())])), ("b", pa.int8())]))

    assert field_by_id(schema, 1).name == "inner"
    assert source_by_id(schema, 1).name == "s.inner"
    assert source_by_id(schema, 2).name == "b"
    assert source_by_id(schema, 9) is None
    assert field_by_id(schema, 9) is None


def test_bad_ids_name_their_fields() -> None:
    with pytest.raises(InvalidTableStateError, match="'a' and 'b' share the lance:field_id 1"):
        field_ids(pa.schema([identified("a", "1"), identified("b", "1")]))
    for malformed in ("-1", "x", "", "1.5", "99999999999"):
        with pytest.raises(InvalidTableStateError, match="'a' has the malformed"):
            field_ids(pa.schema([identified("a", malformed)]))
    with pytest.raises(InvalidTableStateError, match="'a' has no lance:field_id"):
        require_field_ids(pa.schema([("a", pa.int8())]))


def test_metadata_that_is_not_text_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="not UTF-8"):
        schema_to_json(pa.schema([pa.field("a", pa.int8(), metadata={b"k": b"\xff"})]))
