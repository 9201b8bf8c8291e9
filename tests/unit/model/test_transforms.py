from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancepart.errors import InvalidInputError
from lancepart.model.expressions import Expression
from lancepart.model.transforms import (
    TRANSFORMS,
    Bucket,
    Day,
    Hour,
    Identity,
    Month,
    MultiBucket,
    Transform,
    Truncate,
    Year,
    transform_from_json,
)

PARTS = {"year": Year(), "month": Month(), "day": Day(), "hour": Hour()}
ALL = [*PARTS.values(), Identity(), Bucket(16), MultiBucket(16), Truncate(3)]
INT32 = st.integers(-(2**31), 2**31 - 1)


def applied(transform: Transform, *columns: Any) -> list[Any]:
    return transform.apply(columns).to_pylist()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.datetimes()))
def test_times_are_those_of_the_calendar_in_utc(moments: list[datetime | None]) -> None:
    for unit in ("s", "ms", "us"):
        column = pa.array(moments, pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
        zoned = column.view(pa.timestamp(unit, "+05:30"))
        for name, transform in PARTS.items():
            expected = [None if moment is None else getattr(moment, name) for moment in moments]
            assert applied(transform, column) == expected
            assert applied(transform, zoned) == expected


@given(st.lists(st.none() | st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))))
@settings(max_examples=30, deadline=None)
def test_nanoseconds_are_times_too(moments: list[datetime | None]) -> None:
    column = pa.array(moments, pa.timestamp("ns"))
    assert applied(Hour(), column) == [None if moment is None else moment.hour for moment in moments]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.dates()))
def test_dates_count_from_the_year_one(days: list[date | None]) -> None:
    for kind in (pa.date32(), pa.date64()):
        for name in ("year", "month", "day"):
            expected = [None if day is None else getattr(day, name) for day in days]
            assert applied(PARTS[name], pa.array(days, kind)) == expected


def test_a_zone_never_moves_the_hour() -> None:
    moment = datetime(2024, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))
    assert applied(Hour(), pa.array([moment], pa.timestamp("us", "Europe/Athens"))) == [22]
    assert applied(Year(), pa.array([moment], pa.timestamp("us", "Europe/Athens"))) == [2023]


@given(st.lists(st.none() | INT32), st.integers(1, 2**31 - 1))
def test_numbers_are_cut_toward_zero(values: list[int | None], width: int) -> None:
    expected = [None if value is None else int(math.copysign(abs(value) // width * width, value)) for value in values]
    assert applied(Truncate(width), pa.array(values, pa.int32())) == expected
    assert applied(Truncate(width), pa.array(values, pa.int64())) == expected


@given(st.lists(st.none() | st.text(max_size=8)), st.integers(1, 5))
def test_text_is_cut_by_characters(values: list[str | None], width: int) -> None:
    expected = [None if value is None else value[:width] for value in values]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert applied(Truncate(width), pa.array(values, kind)) == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.decimals(-(10**7), 10**7, places=2)), st.integers(1, 10**6))
def test_decimals_are_cut_toward_zero_at_every_precision(values: list[Decimal | None], width: int) -> None:
    expected = [None if value is None else value - value % width for value in values]
    for kind in (pa.decimal128(10, 2), pa.decimal128(18, 2), pa.decimal128(38, 2), pa.decimal256(12, 2)):
        assert applied(Truncate(width), pa.array(values, kind)[:]) == expected


def test_truncate_reaches_the_ends_of_each_type() -> None:
    assert applied(Truncate(128), pa.array([-128, 127], pa.int8())) == [-128, 0]
    assert applied(Truncate(2**31 - 1), pa.array([-128, 127], pa.int8())) == [0, 0]
    assert applied(Truncate(10), pa.array([2**64 - 1], pa.uint64())) == [2**64 - 6]
    assert applied(Truncate(2), pa.array([b"\x00\x01\x02"])) == [b"\x00\x01"]


@given(st.integers(-128, 127))
def test_a_number_has_one_partition_whatever_its_width(value: int) -> None:
    for transform in (Identity(), Bucket(16), MultiBucket(16), Truncate(10)):
        results = {applied(transform, pa.array([value], kind))[0] for kind in (pa.int8(), pa.int32(), pa.int64())}
        assert len(results) == 1


def test_identity_has_one_zero_and_one_nan() -> None:
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        zero, nan, null = applied(Identity(), pa.array([-0.0, -float("nan"), None], kind))
        assert (math.copysign(1, zero), null) == (1, None)
        assert math.isnan(nan)
        assert math.copysign(1, nan) == 1


def test_identity_decodes() -> None:
    assert Identity().apply([pa.array(["a", None]).dictionary_encode()]).type == pa.string()
    assert Identity().apply([pa.chunked_array([["a"], ["b"]])]).to_pylist() == ["a", "b"]
    assert Identity().result_type([pa.dictionary(pa.int8(), pa.string())]) == pa.string()


@pytest.mark.parametrize("transform", ALL, ids=repr)
def test_a_removed_column_gives_null(transform: Transform) -> None:
    assert applied(transform, pa.nulls(2)) == [None, None]
    transform.check([pa.null()])


def test_null_is_neither_the_text_null_nor_nothing() -> None:
    texts = pa.array([None, "null", ""])
    assert applied(Identity(), texts) == [None, "null", ""]
    assert applied(Truncate(3), texts) == [None, "nul", ""]
    assert applied(Bucket(1000), texts) == [None, abs(mmh3.hash("null")) % 1000, 0]


def test_several_columns_are_null_only_together() -> None:
    columns = pa.array([1, None, None]), pa.array(["a", "a", None])
    first, second, third = applied(MultiBucket(1000), *columns)
    assert (third, second) == (None, abs(mmh3.hash("a")) % 1000)
    assert first is not None


@pytest.mark.parametrize("transform", ALL, ids=repr)
def test_json_comes_back(transform: Transform) -> None:
    assert transform_from_json(transform.to_json()) == transform
    assert transform_from_json(transform.to_json().to_dict()) == transform
    assert TRANSFORMS[transform.name] is type(transform)


@pytest.mark.parametrize(
    ("spelled", "reason"),
    [
        ({"type": "weekday"}, "unknown transform"),
        ({}, "unknown transform"),
        ({"type": "bucket"}, "takes \\['num_buckets'\\]"),
        ({"type": "year", "width": 3}, "no parameters"),
        ({"type": "bucket", "num_buckets": 0}, "between 1 and"),
        ({"type": "truncate", "width": True}, "between 1 and"),
        ({"type": "truncate", "width": 2**31}, "between 1 and"),
    ],
)
def test_a_transform_that_is_none_says_why(spelled: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        transform_from_json(spelled)


@pytest.mark.parametrize(
    ("transform", "source"),
    [
        (Year(), pa.string()),
        (Hour(), pa.date32()),
        (Day(), pa.int64()),
        (Truncate(3), pa.float64()),
        (Truncate(3), pa.decimal128(10, -2)),
        (Bucket(3), pa.list_(pa.int8())),
        (Identity(), pa.struct([("a", pa.int8())])),
    ],
    ids=str,
)
def test_a_source_that_does_not_fit_is_refused(transform: Transform, source: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match=f"{transform.name} is not defined for columns of type"):
        transform.check([source])


def test_the_number_of_columns_is_checked() -> None:
    with pytest.raises(InvalidInputError, match="exactly one column"):
        Year().check([pa.date32(), pa.date32()])
    with pytest.raises(InvalidInputError, match="at least one column"):
        MultiBucket(3).check([])
    MultiBucket(3).check([pa.int8(), pa.string()])


@pytest.mark.parametrize(
    ("transform", "column"),
    [
        (Identity(), pa.array([1, None])),
        (Year(), pa.array([date(1965, 2, 3), None])),
        (Hour(), pa.array([-1, None], pa.timestamp("us", "Europe/Berlin"))),
        (Bucket(16), pa.array(["a", None])),
        (MultiBucket(16), pa.array([6018035362574630912, None])),
        (Truncate(10), pa.array([-17, 17, None])),
        (Truncate(2), pa.array(["héllo", None])),
    ],
    ids=lambda value: repr(value) if "object at" not in repr(value) else str(value.type),
)
def test_the_sql_gives_what_the_transform_gives(transform: Transform, column: pa.Array) -> None:
    sql = transform.sql(["col0"], column.type)
    result_type = transform.result_type([column.type])

    assert Expression(sql, 1).apply([column], result_type) == transform.apply([column]).cast(result_type)
