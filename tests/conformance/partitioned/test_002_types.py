"""Document 002, result types and sources: what another client declared is never trusted further than it goes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, InvalidTableStateError
from lancepart.model.transforms import Bucket, Identity, Transform, Truncate, Year
from tests.conformance.partitioned.handmade import Leaf, column, make, partition_field

MOMENTS = [datetime(2024, 12, 31, 20) + timedelta(hours=n) for n in range(12)]


def by_value(root: Path, kind: Any, values: list[Any], transform: dict[str, Any], result: Any, stored: Any) -> Any:
    """A table by hand over one column v beside an id, each distinct stored value a leaf."""
    columns = [column("id", pa.int64(), 0), column("v", kind, 1)]
    rows = pa.table({"id": pa.array(range(len(values))), "v": pa.array(values, kind)})
    leaves = [
        Leaf(
            values={"p": value},
            rows=rows.filter(pc.fill_null(pc.equal(stored, value), fill_value=False))
            if value is not None
            else rows.filter(stored.is_null()),
            name=f"n{number}",
        )
        for number, value in enumerate(stored.unique().to_pylist())
    ]
    make(str(root), columns, [partition_field("p", [1], transform, result)], leaves, results=[result])
    return lp.open_table(root), rows


def found(table: lp.PartitionedTable, where: str) -> list[int]:
    return sorted(table.scan(where).to_arrow().column("id").to_pylist())


@pytest.mark.parametrize("result", [pa.float64(), pa.float32(), pa.decimal128(10, 0), pa.int64(), pa.int16()], ids=str)
def test_a_year_declared_in_another_type_loses_no_row(tmp_path: Path, result: Any) -> None:
    kind = pa.timestamp("us")
    stored = pc.year(pa.array(MOMENTS, kind)).cast(pa.int32()).cast(result)

    table, rows = by_value(tmp_path, kind, MOMENTS, {"type": "year"}, result, stored)

    assert found(table, "v >= TIMESTAMP '2025-01-01'") == found(table, "year(v) = 2025") == list(range(4, 12))
    assert found(table, "v < TIMESTAMP '2024-12-31 22:00:00'") == [0, 1]
    assert rows.num_rows == table.scan().count()
    table.append([{"id": 100, "v": datetime(2025, 5, 5)}])
    assert found(table, "v > TIMESTAMP '2025-05-01'") == [100]


@pytest.mark.parametrize(
    ("kind", "result"),
    [(pa.float64(), pa.float32()), (pa.float32(), pa.float64())],
    ids=str,
)
def test_an_identity_of_floats_declared_otherwise_loses_no_row(tmp_path: Path, kind: Any, result: Any) -> None:
    values = [0.1, 0.2, 0.1, 1e-3, 2.0, None]
    stored = pa.array(values, kind).cast(result, safe=False)

    table, rows = by_value(tmp_path, kind, values, {"type": "identity"}, result, stored)

    for number, value in enumerate(rows.column("v").to_pylist()):
        if value is not None:
            assert number in found(table, f"v = {value!r}")
            assert number in found(table, f"v <= {value!r}")
    assert found(table, "v IS NULL") == [5]


def test_a_timestamp_declared_coarser_loses_no_row(tmp_path: Path) -> None:
    moments = [datetime(2025, 1, 1, 0, 0, 0, n * 1000) for n in range(5)]
    stored = pa.array(moments, pa.timestamp("us")).cast(pa.timestamp("s"), safe=False)

    table, _ = by_value(tmp_path, pa.timestamp("us"), moments, {"type": "identity"}, pa.timestamp("s"), stored)

    assert found(table, "v > TIMESTAMP '2025-01-01 00:00:00.002'") == [3, 4]
    assert found(table, "v = TIMESTAMP '2025-01-01 00:00:00.004'") == [4]


def test_a_truncated_float_is_read_and_not_written(tmp_path: Path) -> None:
    values = [1.5, 11.25, -13.5]
    stored = pa.array([0.0, 10.0, -10.0])

    table, _ = by_value(tmp_path, pa.float64(), values, {"type": "truncate", "width": 10}, pa.float64(), stored)

    assert found(table, "v < 2") == [0, 2]
    with pytest.raises(InvalidInputError, match="truncate is not defined"):
        table.append([{"id": 9, "v": 1.0}])


@pytest.mark.parametrize("derived", ["UTC", "Europe/Berlin", "Pacific/Kiritimati", "America/Los_Angeles"])
@pytest.mark.parametrize("part", ["year", "month", "day", "hour"])
def test_parts_of_a_zoned_time_may_be_in_utc_or_in_the_zone(tmp_path: Path, derived: str, part: str) -> None:
    zone = "Europe/Berlin" if derived == "UTC" else derived
    kind = pa.timestamp("us", zone)
    moments = [at.replace(tzinfo=UTC) for at in MOMENTS]
    shown = pa.array([getattr(at.astimezone(ZoneInfo(derived)), part) for at in moments], pa.int32())

    table, _ = by_value(tmp_path, kind, moments, {"type": part}, pa.int32(), shown)

    for number, at in enumerate(moments):
        text = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        assert found(table, f"v = '{text}'") == [number]
        assert found(table, f"v >= '{text}'") == list(range(number, len(moments)))
        assert found(table, f"{part}(v) = {getattr(at, part)}") == [
            n for n, other in enumerate(moments) if getattr(other, part) == getattr(at, part)
        ]


def test_parts_of_a_zoned_time_still_prune_what_is_far(tmp_path: Path) -> None:
    moments = [datetime(2025, month, 10, tzinfo=UTC) for month in range(1, 13)]
    stored = pa.array([at.month for at in moments], pa.int32())

    table, _ = by_value(tmp_path, pa.timestamp("us", "Asia/Tokyo"), moments, {"type": "month"}, pa.int32(), stored)

    assert len(table.scan("v = '2025-06-10T00:00:00Z'").plan().leaves) == 1


def test_our_own_zoned_times_are_pruned_in_utc(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.timestamp("us", "Asia/Tokyo"))])
    table = lp.create_table(tmp_path, schema, ["day(v)"])
    table.append([{"id": n, "v": datetime(2025, 1, 1 + n, tzinfo=UTC)} for n in range(3)])

    assert len(table.scan("v = '2025-01-02T00:00:00Z'").plan().leaves) == 1


@pytest.mark.parametrize(
    ("transform", "source", "declared"),
    [
        (Year(), pa.date32(), pa.float64()),
        (Identity(), pa.float64(), pa.float32()),
        (Identity(), pa.timestamp("us"), pa.timestamp("ms")),
        (Bucket(4), pa.int64(), pa.float64()),
        (Truncate(3), pa.decimal128(10, 2), pa.decimal128(10, 1)),
    ],
    ids=str,
)
def test_a_type_that_does_not_keep_the_values_is_refused_at_creation(
    tmp_path: Path, transform: Transform, source: Any, declared: Any
) -> None:
    field = lp.PartitionField(field_id="p", source_ids=(0,), transform=transform, result_type=declared)

    with pytest.raises(InvalidInputError, match=r"'p'.*declared"):
        lp.create_table(tmp_path, pa.schema([("v", source)]), [field])


def test_a_source_may_be_inside_a_struct(tmp_path: Path) -> None:
    inner = [column("a", pa.int32(), 2), column("b", pa.string(), 3)]
    outer = {
        "name": "s",
        "nullable": True,
        "type": {"type": "struct", "fields": inner},
        "metadata": {"lance:field_id": "1"},
    }
    columns = [column("id", pa.int64(), 0), outer]
    kind = pa.struct([("a", pa.int32()), ("b", pa.string())])
    rows = pa.table({"id": [1, 2], "s": pa.array([{"a": 7, "b": "x"}, {"a": 7, "b": None}], kind)})
    fields = [partition_field("p", [2], {"type": "identity"}, pa.int32())]
    make(str(tmp_path), columns, fields, [Leaf(values={"p": 7}, rows=rows, name="a")], results=[pa.int32()])
    table = lp.open_table(tmp_path)

    assert found(table, "id > 1") == [2]
    table.append([{"id": 3, "s": {"a": 7, "b": "y"}}, {"id": 4, "s": {"a": 8, "b": "z"}}, {"id": 5, "s": None}])

    assert sorted(leaf.values[0] or "" for leaf in table.scan().plan().leaves) == ["", "7", "8"]
    assert table.inspect.specs().column("source").to_pylist() == ["s.a"]
    table.overwrite([{"id": 6, "s": {"a": 8, "b": "w"}}])
    assert found(table, "id > 0") == [1, 2, 3, 5, 6]
    table.upsert([{"id": 3, "s": {"a": 9, "b": "moved"}}], on=["id"])
    assert found(table, "id > 0") == [1, 2, 3, 5, 6]
    assert table.scan("id = 3").to_arrow().column("s").to_pylist() == [{"a": 9, "b": "moved"}]


def test_a_source_inside_a_list_is_refused(tmp_path: Path) -> None:
    item = column("item", pa.int32(), 2)
    outer = {
        "name": "s",
        "nullable": True,
        "type": {"type": "list", "fields": [item]},
        "metadata": {"lance:field_id": "1"},
    }
    fields = [partition_field("p", [2], {"type": "identity"}, pa.int32())]
    make(str(tmp_path), [column("id", pa.int64(), 0), outer], fields, [], results=[pa.int32()])

    with pytest.raises(InvalidTableStateError, match="inside a list or a map"):
        lp.open_table(tmp_path)


def test_a_field_id_of_two_meanings_is_refused(tmp_path: Path) -> None:
    fields = [partition_field("p", [1], {"type": "identity"}, pa.int32())]
    make(str(tmp_path), [column("id", pa.int64(), 0), column("v", pa.int32(), 1)], fields, [], results=[pa.int32()])
    second = {"id": 2, "fields": [partition_field("p", [1], {"type": "bucket", "num_buckets": 4}, pa.int32())]}
    lance.dataset(str(tmp_path / "__manifest")).update_metadata({"partition_spec_v2": json.dumps(second)})

    with pytest.raises(InvalidTableStateError, match=r"'p'.*never be reused"):
        lp.open_table(tmp_path)


@pytest.mark.parametrize("held", [pa.string(), None], ids=["another type", "none"])
def test_a_manifest_without_a_fields_column_is_refused(tmp_path: Path, held: Any) -> None:
    fields = [partition_field("p", [1], {"type": "identity"}, pa.int32())]
    columns = [column("id", pa.int64(), 0), column("v", pa.int32(), 1)]
    make(str(tmp_path), columns, fields, [], results=[held or pa.int32()])
    if held is None:
        lance.dataset(str(tmp_path / "__manifest")).drop_columns(["partition_field_p"])

    with pytest.raises(InvalidTableStateError, match=r"'p' needs the column partition_field_p of type int32"):
        lp.open_table(tmp_path)


def test_a_fields_column_may_be_wider_and_is_doubted_if_it_is_not_exact(tmp_path: Path) -> None:
    for number, (held, leaves) in enumerate([(pa.int64(), 1), (pa.float32(), 2)]):
        columns = [column("id", pa.int64(), 0), column("v", pa.int32(), 1)]
        rows = [pa.table({"id": [n], "v": pa.array([n], pa.int32())}) for n in range(2)]
        parts = [Leaf(values={"p": n}, rows=rows[n], name=f"n{n}") for n in range(2)]
        fields = [partition_field("p", [1], {"type": "identity"}, pa.int32())]
        make(str(tmp_path / str(number)), columns, fields, parts, results=[held])

        plan = lp.open_table(tmp_path / str(number)).scan("v = 1").plan()

        assert len(plan.leaves) == leaves
