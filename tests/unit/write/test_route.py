"""Rows to partitions, vectorised."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancepart as lp
from lancepart.model.partition_by import parse_partition_by
from lancepart.model.schema import assign_field_ids
from lancepart.model.spec import PartitionSpec
from lancepart.write.route import route


def _spec(schema: Any, *partition_by: str) -> tuple[Any, PartitionSpec]:
    numbered = assign_field_ids(schema)
    return numbered, PartitionSpec(id=1, fields=parse_partition_by(list(partition_by), numbered))


def test_a_million_rows_go_into_a_thousand_partitions_each_to_its_own() -> None:
    count = 1_000_000
    rng = np.random.default_rng(7)
    rows = pa.table({"id": np.arange(count), "k": rng.integers(0, 1000, count), "v": rng.random(count)})
    schema, spec = _spec(rows.schema, "k")

    start = time.perf_counter()
    parts = list(route(rows, schema, spec))
    spent = time.perf_counter() - start

    assert len(parts) == 1000
    assert sum(part.rows.num_rows for part in parts) == count
    for part in parts[::50]:
        value = part.values[0].as_py()
        assert pc.all(pc.equal(part.rows.column("k"), value)).as_py()
        assert part.rows.column("id").to_pylist() == np.flatnonzero(rows.column("k").to_numpy() == value).tolist()
    assert spent < 10, "a loop over rows in Python takes much longer than this"


@pytest.mark.parametrize("partitions", [1, 3, 64])
def test_rows_of_several_blocks_keep_their_order(partitions: int) -> None:
    count = 300_000
    rng = np.random.default_rng(5)
    keys = rng.integers(0, partitions, count)
    inner = pa.StructArray.from_arrays([pa.array(np.arange(count))], names=["at"])
    text = pa.array([None if at % 7 == 0 else f"text {at}" for at in range(count)])
    rows = pa.table({"id": np.arange(count), "k": keys, "text": text, "inner": inner})
    schema, spec = _spec(rows.schema, "k")

    parts = {part.values[0].as_py(): part.rows for part in route(rows, schema, spec)}

    assert parts.keys() == set(range(partitions))
    for key, part in parts.items():
        assert part.equals(rows.filter(pa.array(keys == key)))
        assert all(column.num_chunks == 1 for column in part.columns)


def test_many_partitions_end_to_end(tmp_path: Path) -> None:
    rows = pa.table({"id": np.arange(20_000), "k": np.arange(20_000) % 250})
    table = lp.create_table(tmp_path / "m", rows.schema, ["k"])

    table.append(rows)

    assert len(table.scan().plan().leaves) == 250
    assert table.scan().count() == 20_000
    assert sorted(table.scan("k = 17").to_arrow().column("id").to_pylist()) == list(range(17, 20_000, 250))


def test_rows_keep_their_order_within_a_partition() -> None:
    rows = pa.table({"id": [5, 3, 4, 1, 2], "k": ["b", "a", "b", "a", "b"]})
    schema, spec = _spec(rows.schema, "k")

    found = {part.values[0].as_py(): part.rows.column("id").to_pylist() for part in route(rows, schema, spec)}

    assert found == {"a": [3, 1], "b": [5, 4, 2]}


@pytest.mark.slow
@pytest.mark.parametrize("count", [40, 40_000])
def test_rows_of_small_and_of_large_partitions_are_those_that_were_given(count: int) -> None:
    ids = np.arange(count)
    piece = pa.table(
        {
            "id": ids,
            "k": ids % 4,
            "s": pa.array([{"a": {"b": int(number)}} for number in ids]),
            "d": pa.array([f"t{number % 7}" for number in ids]).dictionary_encode(),
        }
    )
    rows = pa.concat_tables([piece.slice(0, 13), piece.slice(13)])
    schema, spec = _spec(rows.schema, "k")

    found = list(route(rows, schema, spec))

    assert [part.values[0].as_py() for part in found] == [0, 1, 2, 3]
    for part in found:
        mine = rows.filter(pc.equal(rows.column("k"), part.values[0])).to_pylist()
        assert part.rows.to_pylist() == mine
        assert part.rows.column("s").chunk(0).offset == 0, "Lance fails on structs in a slice of structs"


def test_several_fields_and_nulls_are_told_apart() -> None:
    rows = pa.table({"a": pa.array([1, None, 1, None], pa.int8()), "b": ["x", "x", None, None]})
    schema, spec = _spec(rows.schema, "a", "b")

    keys = [part.key for part in route(rows, schema, spec)]

    assert sorted(keys) == [("i1", "n"), ("i1", "sx"), ("n", "n"), ("n", "sx")]


def test_more_than_65536_partitions_are_told_apart() -> None:
    rows = pa.table({"k": pa.array(range(70_000), pa.int64())})
    schema, spec = _spec(rows.schema, "k")

    parts = list(route(rows, schema, spec))

    assert len(parts) == 70_000
    assert all(part.rows.num_rows == 1 for part in parts)
    assert len({part.key for part in parts}) == 70_000


def test_the_parts_of_nested_structs_can_be_written(tmp_path: Path) -> None:
    """Lance fails on a struct in a slice of structs, so each part has arrays of its own."""
    inner = pa.struct([("c", pa.string())])
    kind = pa.struct([("b", inner), ("l", pa.list_(inner))])
    values = [{"b": {"c": str(n)}, "l": [{"c": "x"}] * n} if n % 3 else None for n in range(9)]
    rows = pa.table({"k": [n % 2 for n in range(9)], "v": pa.array(values, kind)})
    table = lp.create_table(tmp_path / "s", rows.schema, ["k"])

    table.append(rows)
    table.append(rows.slice(3))

    found = table.scan("k = 1").to_arrow().column("v").to_pylist()
    assert found == [values[n] for n in (1, 3, 5, 7, 3, 5, 7)]


@pytest.mark.parametrize("partition_by", [["k"], []])
def test_a_slice_of_nested_structs_that_is_one_partition_can_be_written(
    tmp_path: Path, partition_by: list[str]
) -> None:
    values = [{"a": {"b": str(number), "l": [{"c": number}]}} if number % 5 else None for number in range(9_000)]
    whole = pa.table({"k": ["one"] * 9_000, "v": pa.array(values)})
    table = lp.create_table(tmp_path / "s", whole.schema, partition_by)

    table.append(whole.slice(7, 6_000))

    assert table.scan().to_arrow().column("v").to_pylist() == values[7:6_007]


def test_dictionaries_that_differ_from_batch_to_batch_are_put_together(tmp_path: Path) -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema([("id", pa.int64()), ("k", kind), ("v", kind)])
    batches = [
        pa.record_batch([pa.array([n], pa.int64()), *[pa.array([word]).cast(kind)] * 2], schema=schema)
        for n, word in enumerate(["x", "y", "x", "z"])
    ]
    table = lp.create_table(tmp_path / "d", schema, ["k"])

    table.append(pa.RecordBatchReader.from_batches(schema, batches))

    assert table.scan("k = 'x'").to_arrow().to_pylist() == [
        {"id": 0, "k": "x", "v": "x"},
        {"id": 2, "k": "x", "v": "x"},
    ]
    assert table.scan(columns=["k"]).to_arrow().schema.field("k").type == kind


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.decimal128(10, 0), pa.decimal128(20, 2)], ids=str)
def test_a_partitions_key_does_not_depend_on_the_width(kind: Any) -> None:
    rows = pa.table({"k": pa.array([5], pa.int32()).cast(kind)})
    schema, spec = _spec(rows.schema, "k")

    (part,) = route(rows, schema, spec)

    assert part.key == (("i5",) if pa.types.is_integer(kind) else ("d5",))
