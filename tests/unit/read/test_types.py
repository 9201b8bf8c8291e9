"""Every type that Lance stores passes through unchanged, and every type with an equality can partition."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp

VECTOR = pa.list_(pa.field("item", pa.float32(), nullable=False), 2)
PAYLOADS: dict[str, Any] = {
    "struct": pa.array(
        [{"a": 1, "b": {"c": "x"}}, None], pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))])
    ),
    "list": pa.array([[1, None], None], pa.list_(pa.int32())),
    "large list": pa.array([[1, 2], []], pa.large_list(pa.int32())),
    "list of structs": pa.array([[{"a": 1}, None], None], pa.list_(pa.struct([("a", pa.int64())]))),
    "map": pa.array([[("a", 1), ("b", None)], None], pa.map_(pa.string(), pa.int64())),
    "vector": pa.array([[1.5, 2.5], None], pa.list_(pa.float32(), 2)),
    "vector without nulls": pa.array([[1.5, 2.5], [3, 4]], VECTOR),
    "dictionary": pa.array(["x", None]).cast(pa.dictionary(pa.int8(), pa.string())),
    "ordered dictionary": pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), ["x", "y"], ordered=True),
    "decimal": pa.array([Decimal("-1.20"), None], pa.decimal128(38, 10)),
    "large decimal": pa.array([Decimal("1.20"), None], pa.decimal256(60, 10)),
    "binary": pa.array([b"\x00\xff", None]),
    "large binary": pa.array([b"\x00\xff", b""], pa.large_binary()),
    "fixed binary": pa.array([b"ab", None], pa.binary(2)),
    "large string": pa.array(["é", ""], pa.large_string()),
    "half": pa.array([np.float16(1.5), None], pa.float16()),
    "float": pa.array([float("inf"), -0.0]),
    "duration": pa.array([1, None], pa.duration("ns")),
    "time": pa.array([1, None], pa.time32("ms")),
    "date64": pa.array([86_400_000, None], pa.date64()),
    "zoned": pa.array([1, None], pa.timestamp("ns", "Asia/Kolkata")),
    "null": pa.nulls(2),
    "bool": pa.array([True, None]),
    "uint64": pa.array([2**64 - 1, 0], pa.uint64()),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16))),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None])),
    "tensor": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float32(), [2]), pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2))
    ),
}


def _table(root: Path, field: Any, values: Any) -> tuple[lp.PartitionedTable, pa.Table]:
    schema = pa.schema([pa.field("id", pa.int64()), field])
    data = pa.table({"id": pa.array(range(len(values)), pa.int64()), field.name: values}, schema=schema)
    return lp.create_table(root, schema, ["bucket(id, 1)"]), data


@pytest.mark.parametrize("values", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_a_payload_passes_through_unchanged(tmp_path: Path, values: Any) -> None:
    table, data = _table(tmp_path / "t", pa.field("v", values.type), values)

    table.append(data)
    table.append(data)

    found = table.scan().to_arrow()
    assert found.schema == data.schema
    assert found.column("v").to_pylist() == values.to_pylist() * 2
    assert [leaf.stats.fragments for leaf in table.scan().plan().leaves if leaf.stats] == [2], "nothing was rewritten"
    (leaf,) = table.scan().plan().leaves
    assert len(list((tmp_path / "t" / leaf.location / "data").iterdir())) == 2


@pytest.mark.parametrize("values", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_a_payload_passes_through_filters_renames_and_new_columns(tmp_path: Path, values: Any) -> None:
    table, data = _table(tmp_path / "t", pa.field("v", values.type), values)
    table.append(data)
    table.rename_column("v", "w")
    table.add_column(pa.field("x", pa.int32()))
    table.append(data.rename_columns(["id", "w"]))

    found = table.scan("x IS NULL AND id = 0", columns=["w"]).to_arrow()

    assert found.column("w").to_pylist() == values.slice(0, 1).to_pylist() * 2
    assert found.schema.field("w").type == values.type


BLOB = {"lance-encoding:blob": "true"}


@pytest.mark.parametrize("kind", [pa.large_binary(), pa.binary()], ids=str)
def test_a_column_marked_as_a_blob_is_stored_as_one_and_read_as_bytes(tmp_path: Path, kind: Any) -> None:
    values = pa.array([b"x" * 100, None, b""], kind)
    table, data = _table(tmp_path / "b", pa.field("b", kind, metadata=BLOB), values)

    table.append(data)
    table.append(data)
    table.add_column(pa.field("note", pa.string()))
    table.append(data)

    assert table.scan(columns=["b"]).to_arrow().column("b").to_pylist() == values.to_pylist() * 3
    assert table.scan("id = 0 AND note IS NULL", columns=["b"]).to_arrow().column("b").to_pylist() == [b"x" * 100] * 3
    (leaf,) = table.scan().plan().leaves
    plain = lance.dataset(f"{table.root}/{leaf.location}", version=leaf.read_version)
    assert plain.take_blobs("b", indices=[0])[0].read() == b"x" * 100


def test_columns_may_follow_one_that_is_marked_as_a_blob(tmp_path: Path) -> None:
    first, last = pa.field("b", pa.binary(), metadata=BLOB), pa.field("c", pa.large_binary(), metadata=BLOB)
    table = lp.create_table(
        tmp_path / "b", pa.schema([first, pa.field("id", pa.int64()), last, pa.field("k", pa.int64())]), ["k"]
    )
    rows = [{"b": b"x" * n if n else None, "id": n, "c": b"y", "k": n % 2} for n in range(6)]

    table.append(rows[:3])
    table.append(rows[3:])
    table.update({"id": "id + 10"}, "id = 3")

    expected = [{**row, "id": 13} if row["id"] == 3 else row for row in rows]
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == sorted(
        expected, key=lambda row: row["id"]
    )


def test_a_blob_of_lances_own_type_passes_through(tmp_path: Path) -> None:
    values = lance.blob_array([b"x" * 100, None])
    table, data = _table(tmp_path / "b", lance.blob_field("b"), values)

    table.append(data)
    table.append(data)

    assert table.scan("id >= 0").count() == 4
    assert table.scan("b IS NOT NULL", columns=["id"]).to_arrow().num_rows == 2
    found = table.scan(columns=["b"]).to_arrow()
    assert found.schema.field("b").type == values.type
    stored = [chunk.storage for chunk in found.column("b").chunks]
    assert [value["data"] if value else None for part in stored for value in part.to_pylist()] == [b"x" * 100, None] * 2


NAN = float("nan")
KEYS: dict[str, tuple[Any, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [-128, 127]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1]),
    "uint64": (pa.uint64(), [0, 2**64 - 1]),
    "half": (pa.float16(), [np.float16(1.5), np.float16(NAN)]),
    "float": (pa.float32(), [0.1, NAN, float("inf"), 0.0]),
    "double": (pa.float64(), [0.1, NAN, -float("inf"), 0.0]),
    "string": (pa.string(), ["", "null", "it's", "a\0b", "😀", 'q"`$/\\']),
    "large string": (pa.large_string(), ["", "x"]),
    "binary": (pa.binary(), [b"", b"null", b"\x00\xff"]),
    "large binary": (pa.large_binary(), [b"", b"x"]),
    "fixed binary": (pa.binary(3), [b"abc", b"\0\0\0"]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
    "date64": (pa.date64(), [date(1, 1, 1), date(9999, 12, 31)]),
    "seconds": (pa.timestamp("s"), [datetime(1969, 12, 31, 23), datetime(2025, 1, 1)]),
    "zoned": (pa.timestamp("ns", "America/New_York"), [datetime(2025, 12, 31, 23, tzinfo=UTC)]),
    "utc": (pa.timestamp("us", "UTC"), [datetime(1, 1, 1, tzinfo=UTC)]),
    "time": (pa.time32("s"), [time(1, 2, 3)]),
    "time64": (pa.time64("ns"), [time(1, 2, 3)]),
    "duration": (pa.duration("us"), [timedelta(seconds=5), timedelta(0)]),
    "decimal": (pa.decimal128(10, 2), [Decimal("14.20"), Decimal("-1.00"), Decimal("0.00")]),
    "large decimal": (pa.decimal256(40, 2), [Decimal("14.20")]),
}


@pytest.mark.parametrize(("kind", "values"), KEYS.values(), ids=KEYS.keys())
def test_each_value_of_a_type_is_one_partition_however_often_it_is_written(
    tmp_path: Path, kind: Any, values: list[Any]
) -> None:
    table = lp.create_table(tmp_path / "k", pa.schema([("id", pa.int64()), ("v", kind)]), ["v"])
    data = pa.table({"id": pa.array(range(len(values) + 1), pa.int64()), "v": pa.array([*values, None], kind)})

    table.append(data)
    table.append(data)

    leaves = table.scan().plan().leaves
    assert len(leaves) == len(values) + 1
    assert all(leaf.stats is not None and leaf.stats.rows == 2 for leaf in leaves)
    assert len(table.scan("v IS NULL").plan().leaves) == 1
    assert table.scan("v IS NULL", columns=["id"]).to_arrow().column("id").to_pylist() == [len(values)] * 2
    assert table.scan("v IS NOT NULL").count() == 2 * len(values)


def test_a_dictionary_column_partitions_by_its_values(tmp_path: Path) -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    table = lp.create_table(tmp_path / "d", pa.schema([("id", pa.int64()), ("v", kind)]), ["v", "bucket(v, 4)"])

    table.append(pa.table({"id": [1, 2, 3], "v": pa.array(["x", None, "x"]).cast(kind)}))

    assert len(table.scan("v = 'x'").plan().leaves) == 1
    assert table.scan("v = 'x'").to_arrow().column("v").type == kind
    assert table.scan("v = 'x'").count() == 2
