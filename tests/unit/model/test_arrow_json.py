"""Schemas in Arrow's own JSON."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancepart.errors import InvalidInputError, TableSchemaValidationError
from lancepart.model.arrow_json import dump_schema, parse_schema
from tests.property import strategies as some

FLAT = some.TYPES | st.sampled_from([pa.duration("ms"), pa.uuid(), pa.time32("ms"), pa.binary(16)])
TYPES = st.recursive(
    FLAT,
    lambda inner: (
        st.builds(lambda kind: pa.list_(pa.field("item", kind)), inner)
        | st.builds(pa.large_list, inner)
        | st.builds(lambda kind: pa.list_(kind, 3), inner)
        | st.builds(lambda kind: pa.map_(pa.string(), kind), inner)
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: pa.struct([pa.field(str(at), kind, nullable=at % 2 == 0) for at, kind in enumerate(kinds)])
        )
    ),
    max_leaves=5,
)


@pytest.mark.slow
@given(kinds=st.lists(TYPES, min_size=1, max_size=4))
def test_every_schema_comes_back(kinds: list[Any]) -> None:
    fields = [pa.field(f"c{at}", kind, at % 2 == 0, {"key": "é"} if at else None) for at, kind in enumerate(kinds)]
    schema = pa.schema(fields, metadata={"owner": "us"})

    assert parse_schema(dump_schema(schema)).equals(schema, check_metadata=True)


def test_the_spelling_is_arrows() -> None:
    schema = pa.schema([pa.field("ts", pa.timestamp("us", "UTC"), nullable=False), ("tags", pa.list_(pa.string()))])

    assert json.loads(dump_schema(schema)) == {
        "fields": [
            {
                "name": "ts",
                "nullable": False,
                "type": {"name": "timestamp", "unit": "MICROSECOND", "timezone": "UTC"},
                "children": [],
            },
            {
                "name": "tags",
                "nullable": True,
                "type": {"name": "list"},
                "children": [{"name": "item", "nullable": True, "type": {"name": "utf8"}, "children": []}],
            },
        ]
    }


def test_a_whole_integration_file_and_plain_metadata_are_understood() -> None:
    field = {"name": "id", "type": {"name": "int", "bitWidth": 16, "isSigned": False}, "metadata": {"a": "b"}}

    found = parse_schema(json.dumps({"schema": {"fields": [field], "metadata": []}, "batches": []}))

    assert found.equals(pa.schema([pa.field("id", pa.uint16(), metadata={"a": "b"})]), check_metadata=True)


@pytest.mark.parametrize("text", ["", "[]", "3", "null", '{"fields": [{}]}', '{"fields": [{"name": "a", "type": {}}]}'])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_schema(text)


def test_a_name_that_stands_twice_is_refused() -> None:
    field = {"name": "a", "nullable": True, "type": {"name": "utf8"}, "children": []}

    with pytest.raises(TableSchemaValidationError):
        parse_schema(json.dumps({"fields": [field, field]}))
