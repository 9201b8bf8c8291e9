"""Changes between snapshots, for columns that Lance stores in a way of its own."""

from __future__ import annotations

import pyarrow as pa

import lancepart as lp
from lancepart.write.conform import rereadable
from tests.support.catalogs import Place


def test_blobs_come_back_as_bytes_in_changes_and_after_a_second_append(local: Place) -> None:
    blob = pa.field("content", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = lp.create_table(local.root, pa.schema([pa.field("id", pa.int64()), blob]), ["id"])
    before = table.append([{"id": 1, "content": b"one"}])

    table.append([{"id": 1, "content": b"two"}])

    assert table.changes(before).to_pylist() == [{"id": 1, "content": b"two", "_change": "insert"}]
    assert sorted(table.scan().to_arrow()["content"].to_pylist()) == [b"one", b"two"]


def test_a_stream_is_taken_into_memory_before_a_write_that_may_have_to_be_done_again() -> None:
    rows = pa.table({"id": [1, 2]})

    kept = rereadable(rows.to_reader())

    assert [kept.to_reader().read_all() for _ in range(2)] == [rows, rows]
