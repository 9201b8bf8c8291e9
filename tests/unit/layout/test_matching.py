"""Which of a leaf's columns stand for which of the table's, whoever wrote the leaf."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lancepart.errors import InvalidTableStateError
from lancepart.layout.columns import LEAF_ID
from lancepart.layout.matching import Matching
from lancepart.layout.metadata import TableMetadata
from lancepart.model.schema import FIELD_ID
from lancepart.storage.leaf_handle import LeafShape

INT, S = pa.int64(), pa.string()


def table(*columns: tuple[str, int] | tuple[str, int, Any], past: Any = (), nullable: bool = True) -> TableMetadata:
    fields = [
        pa.field(name, rest[0] if rest else INT, nullable, {FIELD_ID: str(number)}) for name, number, *rest in columns
    ]
    return TableMetadata(
        schema=pa.schema(fields), specs=(), transactions="strong", salt="", last_field_id=99, past=tuple(past)
    )


def leaf(*columns: tuple[Any, ...]) -> LeafShape:
    """Name, Lance's id, and, if they matter, the type and the id of ours."""
    fields, ids = [], []
    for name, number, *rest in columns:
        kind = rest[0] if rest else INT
        fields.append(pa.field(name, kind, metadata={LEAF_ID: str(rest[1])} if len(rest) > 1 else None))
        ids.append((name, number, ()))
    return LeafShape(schema=pa.schema(fields), ids=tuple(ids))


def names(shape: LeafShape, metadata: TableMetadata) -> dict[int, str]:
    found = Matching.of(shape, metadata, "the leaf").names
    return {number: name for number, name in found.items() if number in metadata.columns}


CASES = {
    "ours, by the id that it carries": (
        leaf(("x", 0, INT, 5), ("y", 1, S, 3)),
        table(("a", 3, S), ("b", 5)),
        {5: "x", 3: "y"},
    ),
    "ours, with a stray": (leaf(("a", 0, INT, 0), ("stray", 1)), table(("a", 0), ("b", 1)), {0: "a"}),
    "ours, of which a cast lost an id": (leaf(("a", 0, INT, 0), ("b", 7)), table(("a", 0), ("b", 1)), {0: "a", 1: "b"}),
    "a plain writer's, in order": (leaf(("a", 0), ("b", 1)), table(("a", 0), ("b", 1)), {0: "a", 1: "b"}),
    "a plain writer's, that we added to": (
        leaf(("a", 0), ("b", 1), ("c", 2, INT, 7)),
        table(("a", 0), ("b", 1), ("new", 7)),
        {0: "a", 1: "b", 7: "c"},
    ),
    "ids that are only unique": (
        leaf(("a", 0), ("b", 1), ("c", 2)),
        table(("a", 10), ("b", 20), ("c", 30)),
        {10: "a", 20: "b", 30: "c"},
    ),
    "another order": (
        leaf(("c", 0), ("a", 1), ("b", 2)),
        table(("a", 0), ("b", 1), ("c", 2)),
        {2: "c", 0: "a", 1: "b"},
    ),
    "another order, before a column came": (
        leaf(("b", 0), ("a", 1)),
        table(("a", 0), ("b", 1), ("new", 2)),
        {1: "b", 0: "a"},
    ),
    "written after a column was dropped": (
        leaf(("a", 0), ("c", 1), ("d", 2)),
        table(("a", 0), ("c", 2), ("d", 3)),
        {0: "a", 2: "c", 3: "d"},
    ),
    "written before a column was dropped": (
        leaf(("a", 0), ("b", 1), ("c", 2)),
        table(("a", 0), ("c", 2), past=[(1, ("b",))]),
        {0: "a", 2: "c"},
    ),
    "before a column was dropped and another took its name": (
        leaf(("a", 0), ("b", 1)),
        table(("a", 0), ("b", 2), past=[(1, ("b",))]),
        {0: "a"},
    ),
    "before a rename": (leaf(("a", 0), ("b", 1)), table(("a", 0), ("new", 1), past=[(1, ("b",))]), {0: "a", 1: "b"}),
    "before a rename that nobody wrote down": (
        leaf(("a", 0), ("b", 1)),
        table(("a", 0), ("new", 1)),
        {0: "a", 1: "b"},
    ),
    "before a rename and a new column of the old name": (
        leaf(("a", 0), ("b", 1)),
        table(("a", 0), ("new", 1), ("b", 2), past=[(1, ("b",))]),
        {0: "a", 1: "b"},
    ),
    "the same, that nobody wrote down": (
        leaf(("a", 0), ("b", 1)),
        table(("a", 0), ("new", 1), ("b", 2)),
        {0: "a", 1: "b"},
    ),
    "in another order, before a rename": (
        leaf(("b", 0), ("a", 1)),
        table(("a", 0), ("new", 1), past=[(1, ("b",))]),
        {1: "b", 0: "a"},
    ),
    "with a name that Lance can't have": (leaf(("a%2Eb", 4)), table(("a.b", 0)), {0: "a%2Eb"}),
}


@pytest.mark.parametrize("name", CASES)
def test_columns_are_known(name: str) -> None:
    shape, metadata, expected = CASES[name]
    assert names(shape, metadata) == expected


UNCLEAR = {
    "neither name nor id": (leaf(("a", 0), ("zzz", 1)), table(("a", 10), ("b", 20)), "zzz"),
    "dropped or new": (
        leaf(("a", 0), ("c", 1), ("b", 2)),
        table(("a", 0), ("c", 2), ("b", 3), past=[(1, ("b",))]),
        "'b'",
    ),
    "another type": (leaf(("a", 0, S)), table(("a", 0)), "'a' as string"),
    "another type under our id": (leaf(("x", 0, S, 4)), table(("a", 4)), "'x' as string"),
    "a double where the table has an integer": (leaf(("a", 0, pa.float64())), table(("a", 0)), "double"),
    "a zone where the table has none": (
        leaf(("a", 0, pa.timestamp("us", "Europe/Berlin"))),
        table(("a", 0, pa.timestamp("us"))),
        "Berlin",
    ),
    "two columns under one id": (leaf(("a", 0, INT, 4), ("b", 1, INT, 4)), table(("a", 4)), "field id 4"),
    "a column that may not be null": (leaf(("a", 0)), table(("a", 0), ("b", 1), nullable=False), "lacks"),
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_a_leaf_that_is_not_consistent_is_refused(name: str) -> None:
    shape, metadata, told = UNCLEAR[name]
    with pytest.raises(InvalidTableStateError, match=told) as error:
        names(shape, metadata)
    assert "the leaf" in str(error.value)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.int32(), pa.int64()),
        (pa.int64(), pa.int32()),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.large_list(pa.large_string()), pa.list_(pa.string())),
    ],
    ids=str,
)
def test_types_may_differ_in_width_and_encoding(given: Any, wanted: Any) -> None:
    assert names(leaf(("a", 0, given)), table(("a", 0, wanted))) == {0: "a"}


def test_a_leaf_that_is_wider_already_is_not_narrower() -> None:
    metadata = table(("a", 0, pa.int32()))

    assert not Matching.of(leaf(("a", 0, INT, 0)), metadata, "leaf").narrower(metadata.schema)
    assert Matching.of(leaf(("a", 0, pa.int16(), 0)), metadata, "leaf").narrower(metadata.schema)
