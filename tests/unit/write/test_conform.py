"""Data that fits the table is taken in whatever it comes as; what does not is refused before a file is written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, TableSchemaValidationError
from lancepart.write.conform import fits

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("country", pa.string()), ("n", pa.int32())])


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    return lp.create_table(tmp_path / "t", SCHEMA, ["country"])


def _files(table: lp.PartitionedTable) -> set[Path]:
    return set(Path(table.root).rglob("*"))


class Polarsish:
    """What polars and others offer, and nothing more."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


ROWS = [{"id": 1, "country": "US", "n": 5}, {"id": 2, "country": None, "n": None}]
DATA = pa.Table.from_pylist(ROWS, schema=SCHEMA)


def _reader() -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for row in range(2):
            yield from DATA.slice(row, 1).to_batches()

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


FORMS = {
    "table": lambda: DATA,
    "batch": lambda: DATA.to_batches()[0],
    "reader": _reader,
    "dicts": lambda: ROWS,
    "pandas": lambda: pd.DataFrame({"id": [1, 2], "country": ["US", None], "n": pd.array([5, None], "Int32")}),
    "c stream": lambda: Polarsish(DATA),
    "view types, as polars has them": lambda: Polarsish(
        DATA.set_column(1, "country", DATA.column("country").cast(pa.string_view()))
    ),
    "dictionary": lambda: DATA.set_column(1, "country", DATA.column("country").dictionary_encode()),
    "other order": lambda: DATA.select(["n", "country", "id"]),
    "narrower numbers": lambda: DATA.set_column(0, "id", DATA.column("id").cast(pa.int16())),
    "nulls without a type": lambda: [{"id": 1, "country": "US", "n": 5}, {"id": 2}],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_anything_with_arrow_inside_is_taken(table: lp.PartitionedTable, form: Any) -> None:
    table.append(form())

    assert table.scan().to_arrow().sort_by("id").to_pylist() == ROWS


def test_a_pandas_index_is_not_a_column(table: lp.PartitionedTable) -> None:
    frame = pd.DataFrame({"id": [1], "country": ["US"], "n": np.array([5], "int32")}, index=["row"])

    table.append(frame)

    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "country": "US", "n": 5}]


def test_a_dataframe_that_arrow_can_not_hold_is_refused(table: lp.PartitionedTable) -> None:
    with pytest.raises(TableSchemaValidationError, match="column 'country': 5 does not fit string"):
        table.append(pd.DataFrame({"id": [1, 2], "country": ["US", 5]}))


def test_nulls_of_no_type_fit_every_type(tmp_path: Path) -> None:
    table = lp.create_table(
        tmp_path / "n", pa.schema([("id", pa.int64()), ("v", pa.struct([("a", pa.int8())]))]), ["id"]
    )

    table.append(pa.table({"id": [1], "v": pa.nulls(1)}))

    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "v": None}]


def test_a_missing_nullable_column_is_null(table: lp.PartitionedTable) -> None:
    table.append(pa.table({"id": pa.array([1], pa.int64())}))

    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "country": None, "n": None}]


@pytest.mark.parametrize(
    "empty",
    [SCHEMA.empty_table(), [], SCHEMA.empty_table().select(["id"]), pd.DataFrame({"id": np.array([], "int64")})],
)
@pytest.mark.parametrize("transactions", ["strong", "weak"])
def test_no_rows_are_fine_and_change_nothing(tmp_path: Path, empty: Any, transactions: str) -> None:
    table = lp.create_table(tmp_path / "e", SCHEMA, ["country"], transactions=transactions)
    version, files = table.version, _files(table)

    answer = table.append(empty)

    assert answer == (version if transactions == "strong" else None)
    assert (table.version, _files(table)) == (version, files)


REFUSED: dict[str, tuple[Any, str]] = {
    "missing": (pa.table({"country": ["US"]}), "'id' is missing, and may not be null"),
    "extra": (DATA.append_column("more", pa.array([1, 2])), "'more' is not in the table"),
    "extra in dicts": ([{"id": 1, "more": 2}], "'more' is not in the table"),
    "wrong type": (pa.table({"id": ["1"]}), "'id' is string in the data and int64"),
    "would lose values": (DATA.set_column(2, "n", pa.array([5, 2**31])), "'n': 2147483648 of type int64 does not fit"),
    "float for int": (DATA.set_column(2, "n", pa.array([5.0, 2.5])), "'n': 2.5 of type double does not fit int32"),
    "null in what may not be": (DATA.set_column(0, "id", pa.array([1, None], pa.int64())), "'id' may not be null"),
    "null in dicts": ([{"id": None}], "'id'"),
    "twice": (pa.table([pa.array([1], pa.int64())] * 2, names=["id", "id"]), "'id' appears twice"),
    "other case": (pa.table({"ID": pa.array([1], pa.int64())}), "'ID' is not in the table"),
    "value that does not fit, in dicts": ([{"id": 1, "n": 2**40}], "fit"),
    "text for a number, in dicts": ([{"id": "one"}], "fit"),
    "dictionary of another type": (
        DATA.set_column(2, "n", pa.array(["a", "b"]).dictionary_encode()),
        "'n' is dictionary",
    ),
}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("transactions", ["strong", "weak"])
def test_what_does_not_fit_is_refused_and_nothing_is_written(
    tmp_path: Path, data: Any, reason: str, transactions: str
) -> None:
    table = lp.create_table(tmp_path / "r", SCHEMA, ["country"], transactions=transactions)
    table.append(ROWS)
    version, files = table.version, _files(table)

    with pytest.raises(TableSchemaValidationError, match=reason):
        table.append(data)

    assert (table.version, _files(table)) == (version, files)


@pytest.mark.parametrize("data", [5, {"id": [1]}, [1, 2], None], ids=str)
def test_what_has_no_arrow_inside_is_refused(table: lp.PartitionedTable, data: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"can't write a|no file matches 'rows'"):
        table.append(data)


SAFE = [
    (pa.int8(), pa.int64(), 5),
    (pa.uint8(), pa.int16(), 255),
    (pa.uint32(), pa.uint64(), 2**32 - 1),
    (pa.float32(), pa.float64(), 0.5),
    (pa.date32(), pa.date64(), date(2025, 1, 1)),
    (pa.timestamp("s"), pa.timestamp("ns"), datetime(2025, 1, 1)),
    (pa.timestamp("ms", "UTC"), pa.timestamp("us", "Asia/Tokyo"), datetime(2025, 1, 1)),
    (pa.decimal128(5, 2), pa.decimal128(20, 4), Decimal("1.25")),
    (pa.large_string(), pa.string(), "x"),
    (pa.string(), pa.large_string(), "x"),
    (pa.binary(2), pa.binary(), b"ab"),
    (pa.string(), pa.dictionary(pa.int8(), pa.string()), "x"),
    (pa.list_(pa.int32()), pa.list_(pa.int64()), [1, 2]),
    (pa.list_(pa.float32()), pa.list_(pa.float32(), 2), [1.0, 2.0]),
    (pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int64())]), {"a": 1}),
    (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int64()), [("k", 1)]),
]


@pytest.mark.parametrize(("given", "wanted", "value"), SAFE, ids=[f"{g} to {w}" for g, w, _ in SAFE])
def test_safe_casts_are_done(tmp_path: Path, given: Any, wanted: Any, value: Any) -> None:
    table = lp.create_table(tmp_path / "c", pa.schema([("id", pa.int64()), ("v", wanted)]), ["id"])

    table.append(pa.table({"id": [1], "v": pa.array([value], given)}))

    found = table.scan().to_arrow().column("v")
    assert found.type == wanted
    assert found.combine_chunks().cast(given).to_pylist() == pa.array([value], given).to_pylist()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.int64(), pa.int32()),
        (pa.int32(), pa.uint32()),
        (pa.uint32(), pa.int32()),
        (pa.int64(), pa.float64()),
        (pa.float64(), pa.float32()),
        (pa.decimal128(10, 4), pa.decimal128(10, 2)),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.date64(), pa.date32()),
        (pa.date32(), pa.timestamp("us")),
        (pa.string(), pa.binary()),
        (pa.binary(), pa.binary(4)),
        (pa.bool_(), pa.int8()),
        (pa.list_(pa.int64()), pa.list_(pa.int32())),
        (pa.list_(pa.float32(), 3), pa.list_(pa.float32(), 2)),
        (pa.struct([("a", pa.int64())]), pa.struct([("b", pa.int64())])),
        (pa.struct([("a", pa.int64()), ("b", pa.int64())]), pa.struct([("a", pa.int64())])),
        (pa.int64(), pa.string()),
    ],
    ids=str,
)
def test_a_cast_that_could_lose_something_is_not_safe(given: Any, wanted: Any) -> None:
    assert not fits(given, wanted)


def test_lists_of_another_length_than_a_vectors_are_refused(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "v", pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), 2))]), ["id"])

    with pytest.raises(TableSchemaValidationError, match="'v'"):
        table.append(pa.table({"id": [1], "v": pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.float32()))}))


def test_a_stream_that_fails_midway_makes_nothing_visible(table: lp.PartitionedTable) -> None:
    table.append(ROWS)
    version = table.version

    def batches() -> Iterator[pa.RecordBatch]:
        yield DATA.to_batches()[0]
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        table.append(pa.RecordBatchReader.from_batches(SCHEMA, batches()))

    assert (table.version, table.scan().count()) == (version, 2)
