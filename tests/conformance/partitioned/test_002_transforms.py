"""002, "Supported Transforms" and "Hash Functions"."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import lance
import pyarrow as pa
import pytest
from datafusion import SessionContext

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.model.functions import register_functions
from lancepart.model.hashing import murmur3, murmur3_multi
from tests.support.catalogs import Place

Parts = Callable[..., list[Any]]

TABLE = [
    ("v", "identity", {}, pa.string(), pa.string()),
    ("year(v)", "year", {}, pa.date32(), pa.int32()),
    ("month(v)", "month", {}, pa.timestamp("us"), pa.int32()),
    ("day(v)", "day", {}, pa.date32(), pa.int32()),
    ("hour(v)", "hour", {}, pa.timestamp("s"), pa.int32()),
    ("bucket(v, 16)", "bucket", {"num_buckets": 16}, pa.int64(), pa.int32()),
    ("multi_bucket(8, v, id)", "multi_bucket", {"num_buckets": 8}, pa.int64(), pa.int32()),
    ("truncate(v, 3)", "truncate", {"width": 3}, pa.string(), pa.string()),
    ("truncate(v, 10)", "truncate", {"width": 10}, pa.int32(), pa.int32()),
]


@pytest.fixture
def parts(local: Place) -> Parts:
    """The partition value of each given value, as the manifest holds it."""

    def of(partition_by: str, values: Any) -> list[Any]:
        schema = pa.schema([("id", pa.int64()), ("v", values.type)])
        table = lp.create_table(local.root, schema, [partition_by])
        table.append(pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": values}))
        column = f"partition_field_{table.spec.fields[0].field_id}"
        rows = lance.dataset(f"{local.root}/__manifest").to_table(filter="object_type = 'table'")
        found = {}
        for value, location in zip(rows.column(column).to_pylist(), rows.column("location").to_pylist(), strict=True):
            for number in lance.dataset(f"{local.root}/{location}").to_table().column("id").to_pylist():
                found[number] = value
        return [found[number] for number in range(len(values))]

    return of


@pytest.mark.parametrize(("partition_by", "name", "parameters", "source", "result"), TABLE, ids=[r[0] for r in TABLE])
def test_each_transform_has_its_parameters_and_its_result_type(
    local: Place, partition_by: str, name: str, parameters: dict[str, int], source: Any, result: Any
) -> None:
    table = lp.create_table(local.root, pa.schema([("id", pa.int64()), ("v", source)]), [partition_by])

    (field,) = table.spec.fields
    assert field.transform is not None
    assert field.transform.to_json().to_dict() == {"type": name, **parameters}
    assert field.result_type == result
    column = lance.dataset(f"{local.root}/__manifest").schema.field(f"partition_field_{field.field_id}")
    assert (column.type, column.nullable) == (result, True)


@pytest.mark.parametrize(
    ("partition_by", "kind"),
    [
        ("year(v)", pa.int64()),
        ("hour(v)", pa.date32()),
        ("truncate(v, 3)", pa.float64()),
        ("truncate(v, 3)", pa.date32()),
        ("v", pa.list_(pa.int64())),
        ("bucket(v, 4)", pa.struct([("a", pa.int64())])),
        ("bucket(v, 0)", pa.int64()),
        ("truncate(v, 0)", pa.string()),
        ("bucket(v)", pa.int64()),
        ("decade(v)", pa.date32()),
    ],
)
def test_a_transform_that_is_not_defined_is_refused(local: Place, partition_by: str, kind: Any) -> None:
    with pytest.raises(InvalidInputError):
        lp.create_table(local.root, pa.schema([("id", pa.int64()), ("v", kind)]), [partition_by])


MOMENTS = [
    datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime(2026, 1, 1, 0, 0, 0, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 0, 0, tzinfo=UTC),
    datetime(1900, 2, 28, 1, 0, 0, tzinfo=UTC),
    None,
]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York", "+05:30"])
def test_time_is_in_utc_for_every_unit_and_zone(local: Place, unit: str, zone: str | None) -> None:
    seconds = [None if m is None else (m - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1) for m in MOMENTS]
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    values = pa.array([None if s is None else s * factor for s in seconds], pa.int64()).cast(pa.timestamp(unit, zone))
    schema = pa.schema([("id", pa.int64()), ("v", values.type)])
    table = lp.create_table(local.root, schema, ["year(v)", "month(v)", "day(v)", "hour(v)"])

    table.append(pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": values}))

    expected = {(None,) * 4 if m is None else (str(m.year), str(m.month), str(m.day), str(m.hour)) for m in MOMENTS}
    assert {leaf.values for leaf in table.scan().plan().leaves} == expected


def test_dates_before_1970_and_at_the_ends_of_time(parts: Parts) -> None:
    days = [
        date(1, 1, 1),
        date(1582, 10, 4),
        date(1969, 12, 31),
        date(1970, 1, 1),
        date(2000, 2, 29),
        date(9999, 12, 31),
    ]

    assert parts("year(v)", pa.array([*days, None])) == [1, 1582, 1969, 1970, 2000, 9999, None]


def test_truncate_takes_characters_of_strings(parts: Parts) -> None:
    given = pa.array(["", "a", "abc", "abcd", "éàü😀x", None])

    assert parts("truncate(v, 3)", given) == ["", "a", "abc", "abc", "éàü", None]


def test_truncate_takes_the_remainder_off_numbers_toward_zero(parts: Parts) -> None:
    given = pa.array([0, 7, 10, 19, -1, -7, -10, -19, 2**31 - 1, -(2**31), None], pa.int32())

    assert parts("truncate(v, 10)", given) == [0, 0, 10, 10, 0, 0, -10, -10, 2147483640, -2147483640, None]


def test_truncate_of_decimals(parts: Parts) -> None:
    given = pa.array([Decimal("14.20"), Decimal("-14.20"), Decimal("0.99"), None], pa.decimal128(10, 2))

    assert parts("truncate(v, 10)", given) == [Decimal("10.00"), Decimal("-10.00"), Decimal("0.00"), None]


def test_identity_is_the_value_with_one_zero_and_one_nan(local: Place) -> None:
    table = lp.create_table(local.root, pa.schema([("id", pa.int64()), ("v", pa.float64())]), ["v"])

    table.append(
        [{"id": 1, "v": 0.0}, {"id": 2, "v": -0.0}, {"id": 3, "v": float("nan")}, {"id": 4, "v": -float("nan")}]
    )
    table.append([{"id": 5, "v": float("nan")}, {"id": 6, "v": -0.0}])

    assert sorted(leaf.stats.rows for leaf in table.scan().plan().leaves if leaf.stats) == [3, 3]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (34, pa.int8(), 2017239379),
        (34, pa.int32(), 2017239379),
        (34, pa.int64(), 2017239379),
        ("iceberg", pa.string(), 1210000089),
        ("iceberg", pa.large_string(), 1210000089),
        (date(2017, 11, 16), pa.date32(), -653330422),
        (datetime(2017, 11, 16, 22, 31, 8), pa.timestamp("us"), -2047944441),
        (datetime(2017, 11, 16, 22, 31, 8), pa.timestamp("s"), -2047944441),
        (Decimal("14.20"), pa.decimal128(9, 2), -500754589),
        (b"\x00\x01\x02\x03", pa.binary(), -188683207),
        (1.0, pa.float32(), -142385009),
        (1.0, pa.float64(), -142385009),
        (None, pa.int64(), None),
    ],
)
def test_murmur3_is_the_published_one(value: Any, kind: Any, expected: int | None) -> None:
    assert murmur3(pa.array([value], kind)).to_pylist() == [expected]


def test_murmur3_multi_ignores_nulls_and_is_null_only_if_all_are() -> None:
    a, b = pa.array(["x", "x", None, None]), pa.array(["y", None, "x", None])

    found = murmur3_multi([a, b]).to_pylist()

    assert found[1] == found[2] == murmur3(pa.array(["x"])).to_pylist()[0]
    assert found[0] == murmur3(pa.array(["xy"])).to_pylist()[0]
    assert found[3] is None


def test_the_hashes_are_functions_of_datafusion() -> None:
    context = SessionContext()
    register_functions(context, [pa.int64(), pa.string()])
    context.register_record_batches("t", [[pa.record_batch({"a": pa.array([34], pa.int64()), "b": ["x"]})]])

    found = context.sql("SELECT murmur3(a) AS one, murmur3_multi(a, b) AS many FROM t").to_arrow_table().to_pylist()

    assert found[0]["one"] == 2017239379
    assert found[0]["many"] == murmur3_multi([pa.array([34], pa.int64()), pa.array(["x"])]).to_pylist()[0]


def test_a_bucket_is_in_range_also_for_the_smallest_hash(parts: Parts) -> None:
    given = pa.array([6018035362574630912, 34, None], pa.int64())
    assert murmur3(given).to_pylist()[0] == -(2**31)

    assert parts("bucket(v, 10)", given) == [2**31 % 10, 2017239379 % 10, None]


def test_an_expression_of_murmur3_gives_the_buckets_of_bucket(local: Place) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = lp.create_table(local.root, schema, ["bucket(v, 8) AS one", "expr(abs(murmur3(v)) % 8) AS other"])

    table.append([{"id": i, "v": f"name {i}"} for i in range(50)])

    assert all(one == other for one, other in (leaf.values for leaf in table.scan().plan().leaves))
