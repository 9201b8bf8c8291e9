"""Filters that test whether there is a blob read none of its bytes."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lancepart as lp

IO = Path("/proc/self/io")
SIZE = 1 << 18


def read_bytes() -> int:
    """How many bytes this process has read so far."""
    return int(IO.read_text().split("rchar:")[1].split()[0])


@pytest.mark.skipif(not IO.exists(), reason="the system does not count what a process reads")
@pytest.mark.parametrize("own_type", [False, True])
def test_only_rows_that_are_shown_read_their_blobs(tmp_path: Path, own_type: bool) -> None:
    marked = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("b") if own_type else marked])
    table = lp.create_table(tmp_path / "t", schema)
    held = [None if n % 4 == 0 else bytes(SIZE) for n in range(20)]
    values = lance.blob_array(held) if own_type else pa.array(held, pa.large_binary())
    table.append(pa.table([pa.array(range(20)), values], schema=schema))

    before = read_bytes()
    assert table.scan("b IS NOT NULL").count() == 15
    assert table.scan("b IS NULL OR id = 1", columns=["id"]).to_arrow()["id"].to_pylist() == [0, 1, 4, 8, 12, 16]
    assert table.scan("NOT (b IS NULL) AND id < 4", columns=["id"]).to_arrow().num_rows == 3
    assert read_bytes() - before < 2 * SIZE
    found = table.scan("b IS NOT NULL AND id < 4", columns=["b"]).to_arrow()["b"].to_pylist()
    assert [each["data"] if own_type else each for each in found] == [bytes(SIZE)] * 3
    table.delete("b IS NULL AND id < 10")
    assert table.scan("b IS NULL").count() == 2
