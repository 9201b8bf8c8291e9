"""How a leaf's columns stand for the table's."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pytest

from lancepart.layout.columns import (
    LEAF_ID,
    converted,
    is_blob,
    leaf_schema,
    physical_name,
    stores,
    to_leaf_columns,
    to_table_columns,
)
from lancepart.layout.matching import Matching
from lancepart.model.schema import FIELD_ID


def _field(name: str, kind: Any, number: int) -> Any:
    return pa.field(name, kind, metadata={FIELD_ID: str(number)})


def _leaf(name: str, kind: Any, number: int | None) -> Any:
    return pa.field(name, kind, metadata=None if number is None else {LEAF_ID: str(number)})


def test_rows_go_to_the_leafs_names_and_types_and_come_back() -> None:
    table = [_field("x", pa.int32(), 0), _field("y", pa.string(), 4)]
    leaf = pa.schema([_leaf("gone", pa.int8(), 1), _leaf("old name", pa.int64(), 0)])
    matching = Matching(names={1: "gone", 0: "old name"}, types={1: pa.int8(), 0: pa.int64()})
    rows = pa.table({"x": pa.array([1, 2], pa.int32()), "y": ["a", "b"]})

    stored = to_leaf_columns(rows, pa.schema(table), leaf, matching)
    shown = to_table_columns(stored.to_batches()[0], table, matching)

    assert stored.to_pylist() == [{"gone": None, "old name": 1}, {"gone": None, "old name": 2}]
    assert shown.to_pylist() == [{"x": 1, "y": None}, {"x": 2, "y": None}]


def test_a_physical_name_is_never_one_that_is_taken() -> None:
    assert physical_name("a", 4, {"a", "a__4"}) not in {"a", "a__4"}


@pytest.mark.parametrize(
    ("leaf", "table"),
    [
        (pa.list_(pa.float32(), 2), pa.list_(pa.field("item", pa.float32(), nullable=False), 2)),
        (pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int8(), pa.string(), ordered=True)),
        (lance.blob_field("b").type, lance.blob_field("b").type),
    ],
    ids=str,
)
def test_what_lance_does_not_keep_of_a_type_makes_no_difference(leaf: Any, table: Any) -> None:
    assert stores(leaf, pa.field("v", table))


def test_bytes_marked_as_a_blob_are_stored_as_one() -> None:
    blob = lance.blob_field("b").type

    assert stores(blob, pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}))
    assert not stores(blob, pa.field("b", pa.large_binary()))


def test_bytes_become_a_blob_and_null_stays_null() -> None:
    blob = lance.blob_field("b").type

    made = converted(pa.chunked_array([pa.array([b"x", None], pa.large_binary())]), blob)

    assert is_blob(made.type)
    assert made.null_count == 1
    assert made.combine_chunks().storage.field("data").to_pylist() == [b"x", None]


def test_a_new_leaf_carries_ids_at_every_depth() -> None:
    inner = pa.struct([_field("c", pa.string(), 2)])

    made = leaf_schema(pa.schema([_field("a", inner, 1)]))

    assert made.field(0).metadata == {LEAF_ID.encode(): b"1"}
    assert made.field(0).type.field(0).metadata == {LEAF_ID.encode(): b"2"}
