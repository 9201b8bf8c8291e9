"""Upserts of some columns against a dict of rows: whatever is named changes, whatever is not stays."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancepart as lp
from lancepart.errors import InvalidInputError, TableSchemaValidationError
from tests.support import layouts
from tests.support.catalogs import Place

UTC = ZoneInfo("UTC")
EXAMPLES = 300 if os.environ.get("LANCEPART_TORTURE") else 12
KEYS: dict[str, tuple[Any, Any]] = {
    "int64": (pa.int64(), st.integers(0, 5)),
    "string": (pa.string(), st.sampled_from(["", "a", "A", "é", "it's"])),
    "float64": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf])),
    "float16": (pa.float16(), st.sampled_from([0.5, 1.5, math.nan])),
    "decimal": (pa.decimal128(10, 2), st.sampled_from([Decimal("1.50"), Decimal("-3.25"), Decimal("0.00")])),
    "date": (pa.date32(), st.sampled_from([date(2025, 1, 1), date(1960, 1, 1)])),
    "zoned": (
        pa.timestamp("us", "UTC"),
        st.sampled_from([datetime(2025, 1, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC)]),
    ),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["x", "y", "z"])),
    "struct": (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.integers(0, 1), "b": st.sampled_from(["p", None])}),
    ),
    "binary": (pa.binary(), st.sampled_from([b"", b"a"])),
    "bool": (pa.bool_(), st.booleans()),
}
PLACES = st.sampled_from(["US", "FR", None])
VALUES = {
    "place": PLACES,
    "n": st.none() | st.integers(-5, 5),
    "must": st.integers(0, 3),
    "tags": st.none() | st.lists(st.sampled_from(["p", "q"]), max_size=2),
    "a.b $'\"": st.none() | st.text(max_size=3),
}


def schema_of(kind: str) -> pa.Schema:
    return pa.schema(
        [
            ("key", KEYS[kind][0]),
            ("place", pa.string()),
            ("n", pa.int32()),
            pa.field("must", pa.int64(), nullable=False),
            ("tags", pa.list_(pa.string())),
            ("a.b $'\"", pa.string()),
        ]
    )


def identity(value: Any) -> Any:
    """A key as a dict's key: NaN is itself, zeros have signs, and what has a NULL in it is like no other."""
    if value is None or (isinstance(value, dict) and None in value.values()):
        return None
    return repr(value)


@dataclass
class Model:
    """The rows that a table ought to hold: those with a key by it, and the others."""

    keyed: dict[str, dict[str, Any]] = field(default_factory=dict)
    others: list[dict[str, Any]] = field(default_factory=list)

    def upsert(self, schema: pa.Schema, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            key = identity(row["key"])
            old = self.keyed.get(key) if key is not None else None
            new = {**dict.fromkeys(schema.names), **(old or {}), **row}
            if new["must"] is None:
                raise ValueError("a new row needs it")
            if key is None:
                self.others.append(new)
            else:
                self.keyed[key] = new

    @property
    def rows(self) -> list[str]:
        return sorted(map(repr, [*self.keyed.values(), *self.others]))


@st.composite
def batches(draw: Any, kind: str) -> list[dict[str, Any]]:
    """Rows with distinct keys, or sometimes NULL ones, each naming some of the columns, in some order."""
    keys = draw(st.lists(st.none() | KEYS[kind][1], max_size=4, unique_by=lambda key: identity(key) or object()))
    named = draw(st.lists(st.sampled_from(list(VALUES)), unique=True))
    same = draw(st.booleans())
    rows = []
    for key in keys:
        names = named if same else draw(st.lists(st.sampled_from(list(VALUES)), unique=True))
        rows.append({**{name: draw(VALUES[name]) for name in names}, "key": key})
    return rows


def form(draw: Any, rows: list[dict[str, Any]], schema: pa.Schema) -> Any:
    """The same rows as dicts or, if all name the same columns, as an Arrow table."""
    if not rows or any(row.keys() != rows[0].keys() for row in rows) or draw(st.booleans()):
        return rows
    return pa.Table.from_pylist(rows, schema=pa.schema([schema.field(name) for name in rows[0]]))


@pytest.mark.parametrize("layout", layouts.LAYOUTS)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_an_upsert_changes_what_it_names_and_nothing_else(layout: str, data: Any) -> None:
    draw = data.draw
    kind = draw(st.sampled_from(list(KEYS)))
    schema = schema_of(kind)
    with TemporaryDirectory() as directory:
        table = layouts.make(layout, Place(f"{directory}/t"), schema, "place")
        model = Model()
        for _ in range(draw(st.integers(1, 3))):
            rows = draw(batches(kind))
            trial = Model(keyed=dict(model.keyed), others=list(model.others))
            try:
                trial.upsert(schema, rows)
            except ValueError:
                with pytest.raises(TableSchemaValidationError, match="'must'"):
                    table.upsert(form(draw, rows, schema), on=["key"])
            else:
                table.upsert(form(draw, rows, schema), on=["key"])
                model = trial
            assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == model.rows
            found = table.scan("place = 'US'").to_arrow().to_pylist()
            assert sorted(map(repr, found)) == [row for row in model.rows if "'place': 'US'" in row]


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32()), pa.list_(pa.float32(), 2)])
def test_keys_that_can_not_be_compared_are_refused(tmp_path: Any, kind: Any) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("key", kind)]), ["id"])
    with pytest.raises(InvalidInputError, match="column 'key' can't be part of a key"):
        table.upsert([{"id": 1, "key": None}], on=["id", "key"])
