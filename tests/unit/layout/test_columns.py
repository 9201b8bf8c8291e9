"""How a leaf's columns stand for the table's."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pytest

from lancepart.layout.columns import (
    LEAF_ID,
    Matching,
    converted,
    is_blob,
    leaf_schema,
    physical_name,
    stores,
    to_leaf_columns,
    to_table_columns,
)
from lancepart.model.schema import FIELD_ID


def _field(name: str, kind: Any, number: int) -> Any:
    return pa.field(name, kind, metadata={FIELD_ID: str(number)})


def _leaf(name: str, kind: Any, number: int | None) -> Any:
    return pa.field(name, kind, metadata=None if number is None else {LEAF_ID: str(number)})


def test_a_leafs_columns_are_known_by_the_id_that_they_carry() -> None:
    leaf = pa.schema([_leaf("a", pa.int32(), 5), _leaf("b", pa.string(), 3)])

    assert Matching.of(leaf, [0, 1]).names == {5: "a", 3: "b"}


def test_a_leaf_of_another_writer_is_known_by_lances_ids_and_what_we_added_by_ours() -> None:
    leaf = pa.schema([_leaf("a", pa.int32(), None), _leaf("b", pa.string(), None), _leaf("c", pa.int8(), 7)])

    assert Matching.of(leaf, [0, 1, 2]).names == {0: "a", 1: "b", 7: "c"}


def test_a_column_that_someone_added_to_our_leaf_stands_for_none_of_ours() -> None:
    leaf = pa.schema([_leaf("a", pa.int32(), 0), _leaf("stray", pa.int32(), None)])

    assert Matching.of(leaf, [0, 1]).names == {0: "a"}


def test_a_leaf_that_is_wider_already_is_not_narrower() -> None:
    table = pa.schema([_field("a", pa.int32(), 0)])

    assert not Matching.of(pa.schema([_leaf("a", pa.int64(), 0)]), [0]).narrower(table)
    assert Matching.of(pa.schema([_leaf("a", pa.int16(), 0)]), [0]).narrower(table)


def test_rows_go_to_the_leafs_names_and_types_and_come_back() -> None:
    table = [_field("x", pa.int32(), 0), _field("y", pa.string(), 4)]
    leaf = pa.schema([_leaf("gone", pa.int8(), 1), _leaf("old name", pa.int64(), 0)])
    matching = Matching.of(leaf, [0, 1])
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
