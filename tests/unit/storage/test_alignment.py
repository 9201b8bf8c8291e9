"""Buffers that do not start where Rust wants them: what Arrow's IPC, Spark and memory maps give."""

from __future__ import annotations

import ctypes
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance_namespace as ln
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.storage.alignment import aligned
from lancepart.storage.dataset import read_ipc

MONEY = pa.decimal128(12, 2)
VALUES = [Decimal("1.10"), None, Decimal("-3.30"), Decimal("4.40")]
COLUMNS: dict[str, Any] = {
    "decimal": pa.array(VALUES, MONEY),
    "wide": pa.array(VALUES, pa.decimal256(50, 2)),
    "list": pa.array([VALUES, None, [], VALUES], pa.list_(MONEY)),
    "large list": pa.array([VALUES, None, [], VALUES], pa.large_list(MONEY)),
    "pairs": pa.array([VALUES[:2], None, VALUES[2:], VALUES[:2]], pa.list_(MONEY, 2)),
    "struct": pa.array([{"a": 1, "b": each} for each in VALUES], pa.struct([("a", pa.int32()), ("b", MONEY)])),
    "map": pa.array([[("a", VALUES[0])], None, [], [("b", VALUES[3])]], pa.map_(pa.string(), MONEY)),
    "deep": pa.array([[{"x": VALUES}], None, [], []], pa.list_(pa.struct([("x", pa.list_(MONEY))]))),
    "view": pa.array(["a text that is too long to be inline", None, "b", "c"], pa.string_view()),
    "interval": pa.array([(1, 2, 3), None, (4, 5, 6), (7, 8, 9)], pa.month_day_nano_interval()),
    "duration": pa.array([1, None, 3, 4], pa.duration("us")),
    "text": pa.array(["a", None, "bb", "ccc"]),
    "number": pa.array([1, None, 3, 4], pa.int64()),
    "dictionary": pa.array(["a", None, "bb", "a"]).dictionary_encode(),
}
REFUSED = ("interval",)
"""What Lance has no type for."""


def shifted(buffer: pa.Buffer, by: int) -> pa.Buffer:
    """The same bytes in memory that starts ``by`` bytes after a multiple of 64."""
    memory = pa.allocate_buffer(buffer.size + 128)
    start = -memory.address % 64 + by
    ctypes.memmove(memory.address + start, buffer.address, buffer.size)
    return memory.slice(start, buffer.size)


def displaced(array: Any, by: int) -> Any:
    """The same values in buffers that all start ``by`` bytes after a multiple of 64."""
    if isinstance(array, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(displaced(array.indices, by), displaced(array.dictionary, by))
    buffers = iter([None if each is None else shifted(each, by) for each in array.buffers()])
    return _rebuilt(array.type, len(array), buffers, array)


def _rebuilt(kind: Any, length: int, buffers: Any, array: Any) -> Any:
    types = pa.types
    if types.is_struct(kind):
        own = [next(buffers)]
        children = [_rebuilt(f.type, length, buffers, array.field(at)) for at, f in enumerate(kind)]
    elif types.is_map(kind):
        own = [next(buffers), next(buffers)]
        entries = pa.struct([kind.key_field, kind.item_field])
        inner = pa.StructArray.from_arrays([array.keys, array.items], fields=list(entries))
        children = [_rebuilt(entries, len(array.keys), buffers, inner)]
    elif types.is_nested(kind):
        own = [next(buffers)] if types.is_fixed_size_list(kind) else [next(buffers), next(buffers)]
        children = [_rebuilt(kind.value_type, len(array.values), buffers, array.values)]
    else:
        own, children = [next(buffers) for _ in array.buffers()], None
    return pa.Array.from_buffers(kind, length, own, children=children)


def addresses(array: Any) -> list[int]:
    parts = [array.indices, array.dictionary] if isinstance(array, pa.DictionaryArray) else [array]
    return [each.address for part in parts for each in part.buffers() if each is not None]


@pytest.mark.parametrize("by", [8, 4, 1])
@pytest.mark.parametrize("name", COLUMNS)
def test_misaligned_buffers_are_copied_and_aligned_ones_are_not(name: str, by: int) -> None:
    array = COLUMNS[name]
    moved = displaced(array, by)
    assert {address % 64 for address in addresses(moved)} == {by}

    found = aligned(pa.record_batch({"x": moved, "y": array}))

    assert found.column("x").equals(array)
    found.validate(full=True)
    data = addresses(found.column("x"))[:2] if name == "view" else addresses(found.column("x"))
    wide = name in ("text", "number", "interval", "duration", "dictionary")
    assert all(address % (8 if wide else 16) == 0 for address in data)
    assert addresses(found.column("y")) == addresses(array)
    if wide and by == 8:
        assert addresses(found.column("x")) == addresses(moved)


def test_aligned_rows_are_the_same_object() -> None:
    rows = pa.table(COLUMNS)
    assert aligned(rows) is rows


def test_a_small_slice_of_large_memory_is_copied_alone() -> None:
    large = displaced(pa.array([Decimal(n) for n in range(10_000)], pa.decimal128(12, 0)), 8)

    found = aligned(pa.record_batch({"x": large.slice(5_000, 3)})).column("x")

    assert found.to_pylist() == [Decimal(5000), Decimal(5001), Decimal(5002)]
    assert sum(each.size for each in found.buffers() if each is not None) < 1_000


@pytest.mark.parametrize("verb", ["append", "overwrite", "upsert"])
def test_a_table_takes_misaligned_rows(tmp_path: Path, verb: str) -> None:
    moved = {name: displaced(column, 8) for name, column in COLUMNS.items() if name not in REFUSED}
    rows = pa.table({"k": [1] * 4, "id": range(4), **moved})
    table = lp.create_table(tmp_path / "t", rows.schema, ["k"])
    given = [rows, rows.slice(1, 2), rows.to_reader(max_chunksize=1)]

    for each in given:
        getattr(table, verb)(each, **({"on": ["id"]} if verb == "upsert" else {}))

    found = table.scan().to_arrow()
    wanted = pa.concat_tables([rows, rows.slice(1, 2), rows]) if verb == "append" else rows
    assert sorted(found.to_pylist(), key=str) == sorted(wanted.to_pylist(), key=str)


def test_a_memory_mapped_file_is_appended(tmp_path: Path) -> None:
    """Of several columns of decimals, one at least lies at an odd multiple of 8."""
    rows = pa.table({"k": [1, 1, 1], **{f"d{n}": pa.array(VALUES[:3], MONEY) for n in range(4)}})
    with pa.OSFile(str(tmp_path / "rows.arrow"), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    mapped = pa.ipc.open_file(pa.memory_map(str(tmp_path / "rows.arrow"))).read_all()
    assert any(address % 16 for column in mapped.columns[1:] for address in addresses(column.chunk(0)))
    table = lp.create_table(tmp_path / "t", rows.schema, ["k"])

    table.append(mapped)

    assert table.scan().to_arrow().equals(rows)


def test_the_catalog_takes_the_ipc_streams_of_requests(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], **{f"d{n}": pa.array(VALUES[:3], MONEY) for n in range(4)}})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    body = sink.getvalue().to_pybytes()
    catalog = lp.DirectoryNamespace(root=str(tmp_path))
    catalog.create_table(ln.CreateTableRequest(id=["t"]), body)
    catalog.insert_into_table(ln.InsertIntoTableRequest(id=["t"], mode="append"), body)
    merge = ln.MergeInsertIntoTableRequest(id=["t"], on=["id"], when_matched_update_all=True)
    catalog.merge_insert_into_table(merge, body)

    found = read_ipc(body).read_all().columns[1:]
    assert not [address for column in found for address in addresses(column.chunk(0)) if address % 16]
