"""Casts that Arrow itself gets wrong."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancepart.errors import TableSchemaValidationError
from lancepart.write.casts import cast

VECTOR = pa.list_(pa.float32(), 2)


def received(values: list[list[float] | None]) -> pa.Array:
    """Lists as another process sends them: without memory for values where there are none."""
    sink = pa.BufferOutputStream()
    table = pa.table({"v": pa.array(values, pa.list_(pa.float32()))})
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all().column("v").chunk(0)


def test_lists_that_are_all_null_become_vectors() -> None:
    assert cast(received([None, None]), VECTOR, "v") == pa.nulls(2, VECTOR)
    parts = pa.chunked_array([received([None]), received([[1.0, 2.0], None])])
    assert cast(parts, VECTOR, "v").to_pylist() == [None, [1.0, 2.0], None]
    with pytest.raises(TableSchemaValidationError, match="'v'"):
        cast(received([None, []]), VECTOR, "v")


LISTS = pa.list_(pa.int32())
FIELDS = pa.struct([("x", pa.int32())])
BIG = 1 << 40


def test_only_the_values_of_the_rows_must_fit() -> None:
    assert cast(pa.array([[BIG], [1], [BIG]]).slice(1, 1), LISTS, "v").to_pylist() == [[1]]
    assert cast(pa.array([{"x": BIG}, {"x": 1}]).slice(1), FIELDS, "v").to_pylist() == [{"x": 1}]
    hidden = pa.StructArray.from_arrays([pa.array([BIG, 1])], ["x"], mask=pa.array([True, False]))
    assert cast(pa.chunked_array([hidden]), FIELDS, "v").to_pylist() == [None, {"x": 1}]


@pytest.mark.parametrize(
    ("values", "wanted", "named"),
    [
        (pa.array([[1], None, [], [BIG], [BIG + 1]]), LISTS, rf"\[{BIG}\]"),
        (pa.array([[1.0], None, [2.5]]), LISTS, r"\[2.5\]"),
        (pa.chunked_array([pa.array([[1]]), pa.array([[2], [BIG]])]), LISTS, rf"\[{BIG}\]"),
        (pa.array([[BIG], [1], [BIG + 1]]).slice(1), LISTS, rf"\[{BIG + 1}\]"),
        (pa.array([{"x": 1}, {"x": BIG}]), FIELDS, rf"'x': {BIG}"),
        (pa.array([[[("k", 1)]], [[("k", BIG)]]], pa.list_(pa.map_(pa.string(), pa.int64()))),
         pa.list_(pa.map_(pa.string(), pa.int32())), rf"'k', {BIG}"),
    ],
)  # fmt: skip
def test_the_first_value_inside_lists_and_structs_that_does_not_fit_is_named(
    values: pa.Array, wanted: pa.DataType, named: str
) -> None:
    with pytest.raises(TableSchemaValidationError, match=named):
        cast(values, wanted, "v")
