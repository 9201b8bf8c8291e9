"""Tables that statements make: without partitions, at a location, with vectors, and with properties for writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.spark import catalog_messages
from lancepart.spark.statements import respond
from lancepart.spark.types import spark_schema

SIZE = "arrow.fixed-size-list.size"
LONG, FLOATS = pa.field("id", pa.int64()), pa.field("e", pa.list_(pa.float32()))


def create(root: Path, *fields: pa.Field, by: tuple[str, ...] = (), **properties: str) -> Any:
    request = catalog_messages.CreateRequest(
        id=("t",), mode="create", schema=spark_schema(pa.schema(fields)).jsonValue(), by=by, properties=properties
    )
    return respond({"warehouse": str(root)}, "create", request)


def test_a_table_without_partitions_at_a_location(tmp_path: Path) -> None:
    made = create(tmp_path, LONG, location=f"file:{tmp_path}/dims/people")
    assert made.path == f"{tmp_path}/dims/people"
    assert lp.open_table(tmp_path / "dims" / "people").spec.fields == ()
    assert respond({"warehouse": str(tmp_path)}, "drop", catalog_messages.PathRequest(id=("t",))).dropped
    assert not (tmp_path / "dims" / "people").exists()
    assert create(tmp_path, LONG, location="dims/places").path == f"{tmp_path}/dims/places"


@pytest.mark.parametrize(
    ("place", "error", "said"),
    [
        ("/elsewhere/t", UnsupportedOperationError, "outside of the warehouse"),
        ("#/a/../../b", UnsupportedOperationError, "outside of the warehouse"),
        ("#", UnsupportedOperationError, "outside of the warehouse"),
        ("a/../../b", UnsupportedOperationError, "outside of the warehouse"),
        ("#/plain.lance", InvalidInputError, "reserved"),
        ("#/__manifest/x", InvalidInputError, "manifest"),
        ("#/other", InvalidInputError, "LOCATION.*already"),
    ],
)
def test_a_location_that_can_not_be_is_refused_and_what_is_there_stays(
    tmp_path: Path, place: str, error: type[Exception], said: str
) -> None:
    other = lp.create_table(tmp_path / "other", pa.schema([LONG]))
    other.append([{"id": 1}])
    with pytest.raises(error, match=said):
        create(tmp_path, LONG, location=place.replace("#", str(tmp_path)))
    assert lp.open_table(tmp_path / "other").scan().count() == 1


def test_vectors_have_the_length_that_a_property_or_their_column_says(tmp_path: Path) -> None:
    create(tmp_path, LONG, FLOATS, **{f"e.{SIZE}": "3"})
    loaded = respond({"warehouse": str(tmp_path)}, "load", catalog_messages.LoadRequest(id=("t",)))
    assert lp.open_table(loaded.path).schema.field("e").type.list_size == 3
    assert loaded.schema["fields"][1]["metadata"] == {SIZE: 3}
    inner = pa.field("s", pa.struct([pa.field("v", pa.list_(pa.float32(), 2))]))
    made = create(tmp_path / "second", LONG, pa.field("e", pa.list_(pa.float32(), 3)), inner)
    schema = lp.open_table(made.path).schema
    assert (schema.field("e").type.list_size, schema.field("s").type.field("v").type.list_size) == (3, 2)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({f"x.{SIZE}": "3"}, "no column 'x'"),
        ({f"id.{SIZE}": "3"}, "no ARRAY"),
        ({f"e.{SIZE}": "many"}, "length"),
        ({f"e.{SIZE}": "0"}, "length"),
        ({"write.distribution-mode": "sideways"}, "none, hash, range"),
        ({"write.target-file-size": "huge"}, "256m"),
        ({"write.order-by": "id DESC, nope"}, "no order of rows"),
        ({"write.order-by": "id SIDEWAYS"}, "no order of rows"),
        ({"write.distribution-mod": "hash"}, "did you mean"),
    ],
)
def test_properties_that_can_not_be_are_refused(tmp_path: Path, properties: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        create(tmp_path, LONG, FLOATS, **properties)
    assert not [each for each in tmp_path.iterdir() if each.name != "__manifest"]


def alter(root: Path, *changes: dict[str, Any]) -> None:
    respond({"warehouse": str(root)}, "alter", catalog_messages.AlterRequest(id=("t",), changes=changes))


def test_properties_are_checked_against_the_columns_of_a_table(tmp_path: Path) -> None:
    made = create(tmp_path, LONG, FLOATS)
    for key, value, said in (("write.order-by", "x", "no order of rows"), (f"e.{SIZE}", "3", "before ADD COLUMN")):
        with pytest.raises((InvalidInputError, UnsupportedOperationError), match=said):
            alter(tmp_path, {"change": "property", "key": key, "value": value})
    alter(tmp_path, {"change": "property", "key": f"v.{SIZE}", "value": "3"})
    array = {"type": "array", "elementType": "float", "containsNull": True}
    new = {"change": "add", "column": ["v"], "nullable": True, "comment": None, "positioned": False}
    with pytest.raises(InvalidInputError, match="no ARRAY"):
        alter(tmp_path, {**new, "type": '"long"'})
    alter(tmp_path, {**new, "type": json.dumps(array)})
    assert lp.open_table(made.path).schema.field("v").type.list_size == 3


VARIANT = {"name": "v", "type": "variant", "nullable": True, "metadata": {}}
COLLATED = {**VARIANT, "type": "string", "metadata": {"__COLLATIONS": {"v": "spark.UTF8_LCASE"}}}
PLACE = {**VARIANT, "type": "geometry(OGC:CRS84)"}
TEXTS = {**VARIANT, "type": {"type": "array", "elementType": "varchar(3)", "containsNull": True}}


@pytest.mark.parametrize(
    ("field", "said"),
    [(VARIANT, "parse_json"), (COLLATED, "by their bytes"), (TEXTS, "no length"), (PLACE, "use BINARY")],
)
def test_types_that_would_become_others_are_refused(tmp_path: Path, field: dict[str, Any], said: str) -> None:
    schema = {"type": "struct", "fields": [field]}
    request = catalog_messages.CreateRequest(id=("t",), mode="create", schema=schema, by=(), properties={})
    with pytest.raises(UnsupportedOperationError, match=f"column 'v' can't be .*{said}"):
        respond({"warehouse": str(tmp_path)}, "create", request)
    assert not [each for each in tmp_path.iterdir() if each.name != "__manifest"]
