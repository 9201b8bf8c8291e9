"""Changes between snapshots, for columns that Lance stores in a way of its own."""

from __future__ import annotations

import pyarrow as pa

import lancepart as lp
from tests.support.catalogs import Place


def test_blobs_come_back_as_bytes_in_changes_and_after_a_second_append(local: Place) -> None:
    blob = pa.field("content", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = lp.create_table(local.root, pa.schema([pa.field("id", pa.int64()), blob]), ["id"])
    before = table.append([{"id": 1, "content": b"one"}])

    table.append([{"id": 1, "content": b"two"}])

    assert table.changes(before).to_pylist() == [{"id": 1, "content": b"two", "_change": "insert"}]
    assert sorted(table.scan().to_arrow()["content"].to_pylist()) == [b"one", b"two"]


def test_an_upsert_of_a_stream_keeps_its_rows_when_it_has_to_be_done_again(local: Place) -> None:
    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])
    table = lp.create_table(local.root, schema, ["k"])
    table.append([{"id": 1, "k": "a"}])
    stream = pa.table({"id": [1, 2], "k": ["b", "b"]}, schema=schema).to_reader()

    table.upsert(stream, on=["id"])

    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == [{"id": 1, "k": "b"}, {"id": 2, "k": "b"}]
