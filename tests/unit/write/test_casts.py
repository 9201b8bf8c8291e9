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
