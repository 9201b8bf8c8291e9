"""One rule for all inputs: a value that a column's type holds exactly is taken, any other is refused by name."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import TableSchemaValidationError
from lancepart.write.conform import batches

EAST = timezone(timedelta(hours=2))
NAIVE, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
NOON = datetime(2025, 1, 1, 12)
FORMS = {
    "dicts": lambda value, kind: [{"v": value}],
    "pandas objects": lambda value, kind: pd.DataFrame({"v": pd.Series([value], dtype=object)}),
    "arrow": lambda value, kind: pa.table({"v": pa.array([value], kind) if kind is not None else pa.array([value])}),
}


def written(data: Any, wanted: Any) -> list[Any]:
    """What becomes of the one column of some data."""
    found = list(batches(data, pa.schema([("v", wanted)])))
    assert all(chunk.schema.field("v").type == wanted for chunk in found)
    return [value for chunk in found for value in chunk.column("v").to_pylist()]


TAKEN = [
    (NOON, None, NAIVE, NOON),
    (NOON, None, pa.timestamp("s"), NOON),
    (NOON.replace(tzinfo=EAST), None, ZONED, datetime(2025, 1, 1, 10, tzinfo=UTC)),
    (datetime(2025, 1, 1), None, pa.date32(), date(2025, 1, 1)),
    (date(2025, 1, 1), None, NAIVE, datetime(2025, 1, 1)),
    (date(2025, 1, 1), None, pa.date64(), date(2025, 1, 1)),
    (timedelta(milliseconds=5), None, pa.duration("ms"), timedelta(milliseconds=5)),
    (time(1, 2, 3), None, pa.time32("s"), time(1, 2, 3)),
    (3, pa.int64(), pa.int8(), 3),
    (3.0, pa.float64(), pa.int8(), 3),
    (3, pa.int64(), pa.float64(), 3.0),
    (3, pa.int64(), pa.decimal128(5, 2), Decimal("3.00")),
    (Decimal("3.00"), None, pa.int32(), 3),
    (Decimal("3.10"), None, pa.decimal128(5, 1), Decimal("3.1")),
    (0.5, pa.float64(), pa.float32(), 0.5),
    (float("inf"), pa.float64(), pa.float32(), float("inf")),
    ("x", pa.large_string(), pa.string(), "x"),
    ("x", pa.dictionary(pa.int8(), pa.string()), pa.string(), "x"),
    ([1, 2], pa.list_(pa.int64()), pa.list_(pa.int8()), [1, 2]),
    ({"a": NOON}, None, pa.struct([("a", pa.timestamp("ms"))]), {"a": NOON}),
    ([NOON], None, pa.list_(pa.timestamp("ms")), [NOON]),
    ([0.5, 1.0], pa.list_(pa.float64()), pa.list_(pa.float32(), 2), [0.5, 1.0]),
    (b"ab", pa.binary(), pa.large_binary(), b"ab"),
    (None, pa.null(), pa.int64(), None),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("value", "kind", "wanted", "expected"), TAKEN, ids=[f"{v!r} as {w}" for v, _, w, _ in TAKEN])
def test_a_value_that_fits_is_taken(form: str, value: Any, kind: Any, wanted: Any, expected: Any) -> None:
    assert written(FORMS[form](value, kind), wanted) == [expected]


REFUSED = [
    (NOON, None, ZONED),
    (NOON.replace(tzinfo=EAST), None, NAIVE),
    (NOON, None, pa.date32()),
    (NOON.replace(tzinfo=UTC), None, pa.date32()),
    (datetime(2025, 1, 1, tzinfo=UTC), None, pa.date32()),
    (date(2025, 1, 1), None, ZONED),
    (NOON.replace(microsecond=1), None, pa.timestamp("ms")),
    (datetime(2500, 1, 1), None, pa.timestamp("ns")),
    (timedelta(microseconds=1), None, pa.duration("ms")),
    (time(1, 2, 3, 4), None, pa.time32("ms")),
    (5, pa.int64(), NAIVE),
    (5, pa.int64(), pa.date32()),
    (300, pa.int64(), pa.int8()),
    (-1, pa.int64(), pa.uint8()),
    (1.5, pa.float64(), pa.int64()),
    (float("inf"), pa.float64(), pa.int64()),
    (2**53 + 1, pa.int64(), pa.float64()),
    (1e300, pa.float64(), pa.float32()),
    (70_000, pa.int64(), pa.float16()),
    (True, None, pa.int64()),
    (1, None, pa.bool_()),
    (Decimal("0.1"), None, pa.float64()),
    (0.1, pa.float64(), pa.decimal128(5, 2)),
    (Decimal("1.234"), None, pa.decimal128(5, 2)),
    (Decimal("1000.5"), None, pa.decimal128(4, 1)),
    (10**6, pa.int64(), pa.decimal128(5, 2)),
    ("x", None, pa.binary()),
    (b"x", None, pa.string()),
    (1, None, pa.string()),
    ("1", None, pa.int64()),
    ("2025-01-01", None, pa.date32()),
    ("ab", None, pa.list_(pa.string())),
    (b"abc", pa.binary(), pa.binary(2)),
    ({"a": 1, "b": 2}, None, pa.struct([("a", pa.int64())])),
    ({"a": NOON}, None, pa.struct([("a", ZONED)])),
    ([1, 300], pa.list_(pa.int64()), pa.list_(pa.int8())),
    ([NOON.replace(tzinfo=UTC)], None, pa.list_(NAIVE)),
    ([1.0, 2.0, 3.0], pa.list_(pa.float32()), pa.list_(pa.float32(), 2)),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("value", "kind", "wanted"), REFUSED, ids=[f"{v!r} as {w}" for v, _, w in REFUSED])
def test_a_value_that_does_not_fit_is_refused_by_name(form: str, value: Any, kind: Any, wanted: Any) -> None:
    with pytest.raises(TableSchemaValidationError, match="column 'v'"):
        written(FORMS[form](value, kind), wanted)


@pytest.mark.parametrize("form", ["dicts", "arrow", "pandas"])
def test_the_first_value_that_does_not_fit_is_named(form: str) -> None:
    values = [1, 2, 3, 1000, 2000]
    data = {
        "dicts": [{"v": value} for value in values],
        "arrow": pa.table({"v": pa.chunked_array([values[:2], values[2:]])}),
        "pandas": pd.DataFrame({"v": values}),
    }[form]

    with pytest.raises(TableSchemaValidationError, match=r"column 'v': 1000 .*does not fit int8"):
        written(data, pa.int8())


def test_a_float_that_would_be_rounded_is_named() -> None:
    with pytest.raises(TableSchemaValidationError, match=r"column 'v': \[0.5, 0.1\] of type"):
        written(pa.table({"v": [None, [0.5], [0.5, 0.1]]}), pa.list_(pa.float32()))


def test_pythons_own_floats_are_rounded_to_a_narrower_column() -> None:
    assert written([{"v": [0.1]}], pa.list_(pa.float32(), 1)) == [[float(np.float32(0.1))]]
    assert written([{"v": np.array([0.1])}], pa.list_(pa.float32(), 1)) == [[float(np.float32(0.1))]]
    with pytest.raises(TableSchemaValidationError, match="too large"):
        written([{"v": np.array([1e300])}], pa.list_(pa.float32(), 1))


def test_what_pandas_calls_missing_is_null() -> None:
    whole = pd.DataFrame({"v": [1.0, np.nan, 3.0]})
    assert written(whole, pa.int32()) == [1, None, 3]
    assert written(whole, pa.float64()) == [1.0, None, 3.0]
    assert written(pd.DataFrame({"v": pd.Series(["a", np.nan, None, pd.NA], dtype=object)}), pa.string()) == [
        "a",
        None,
        None,
        None,
    ]
    assert written(pd.DataFrame({"v": [pd.Timestamp(2025, 1, 1), pd.NaT]}), pa.date32()) == [date(2025, 1, 1), None]
    assert written([{"v": pd.NaT}, {"v": pd.NA}], NAIVE) == [None, None]


@pytest.mark.parametrize("data", [[{"v": float("nan")}], pa.table({"v": [1.0, float("nan")]})], ids=["dict", "arrow"])
def test_nan_is_a_number_elsewhere(data: Any) -> None:
    with pytest.raises(TableSchemaValidationError, match="column 'v': nan"):
        written(data, pa.int64())
    assert np.isnan(written(data, pa.float64())[-1])


def test_nanoseconds_are_taken_if_they_are_whole_microseconds() -> None:
    fine = pd.Timestamp(2025, 1, 1, 12) + pd.Timedelta(1, "ns")
    for data in ([{"v": pd.Timestamp(NOON)}], pd.DataFrame({"v": [pd.Timestamp(NOON)]}), [{"v": np.datetime64(NOON)}]):
        assert written(data, NAIVE) == [NOON]
    for data in ([{"v": fine}], pd.DataFrame({"v": [fine]}), [{"v": fine.to_datetime64()}]):
        with pytest.raises(TableSchemaValidationError, match="column 'v'"):
            written(data, NAIVE)
    assert written([{"v": fine}], pa.timestamp("ns")) == [fine]


def test_a_time_with_a_zone_is_refused_in_dicts() -> None:
    with pytest.raises(TableSchemaValidationError, match="time zone"):
        written([{"v": time(1, tzinfo=EAST)}], pa.time64("us"))


def test_times_in_maps_keep_their_unit() -> None:
    kind = pa.map_(pa.string(), pa.timestamp("ms"))
    assert written([{"v": {"k": NOON}}], kind) == [[("k", NOON)]]


def test_a_stream_that_can_be_read_once_is_upserted_whole(tmp_path: Path) -> None:
    class Once:
        def __init__(self, table: pa.Table) -> None:
            self._reader = table.to_reader()

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return self._reader.__arrow_c_stream__(requested_schema)

    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("v", pa.string())]), ["id"])
    table.append([{"id": 1, "v": "a"}])
    table.upsert(Once(pa.table({"id": [1, 2]})), on=["id"])
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == [{"id": 1, "v": "a"}, {"id": 2, "v": None}]


@pytest.mark.parametrize("given", [{"country": "x"}, {"country"}, "country", b"country", 5, None], ids=repr)
@pytest.mark.parametrize("layout", ["manifest", "hive"])
def test_partition_by_is_a_list(tmp_path: Path, given: Any, layout: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("country", pa.string())])
    with pytest.raises(lp.errors.InvalidInputError, match="partition_by is a list"):
        lp.create_table(tmp_path / "t", schema, given, layout=layout)


def test_a_tree_of_directories_needs_a_partition_column(tmp_path: Path) -> None:
    with pytest.raises(lp.errors.InvalidInputError, match="no partition columns: name at least one"):
        lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]), [], layout="hive")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("layout", ["manifest", "hive"])
@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("id", pa.int64()), ("", pa.string())]),
        pa.schema([("id", pa.int64()), ("s", pa.struct([("", pa.int8())]))]),
        pa.schema([("id", pa.int64()), ("a\0b", pa.string())]),
        pa.schema([("id", pa.int64()), ("s", pa.struct([("a\0b", pa.int8())]))]),
    ],
    ids=["column", "field", "NUL", "NUL in a field"],
)
def test_a_name_that_no_filter_could_name_is_refused(tmp_path: Path, schema: Any, layout: str) -> None:
    with pytest.raises(TableSchemaValidationError, match=r"empty name|NUL"):
        lp.create_table(tmp_path / "t", schema, ["id"], layout=layout)


def test_lists_of_whole_numbers_with_nulls_come_back_from_pandas(tmp_path: Path) -> None:
    kind = pa.list_(pa.int32())
    rows = pa.table({"v": pa.array([[1, None], [], None, [3]], kind), "w": pa.array([[[None, 2]]] * 4, pa.list_(kind))})
    table = lp.create_table_from(tmp_path / "t", rows, [])

    table.overwrite(table.to_pandas(), whole_table=True)

    assert table.scan().to_arrow() == rows
    with pytest.raises(TableSchemaValidationError, match="whole number"):
        table.append([{"v": np.array([1.5])}])
