"""Text and JSON in types that Arrow reads, cast to the table's: dates, vectors, whole numbers written as fractions."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, TableSchemaValidationError

DAY = date(2024, 1, 2)
TAKEN: list[tuple[str, str, pa.DataType, list[Any]]] = [
    ("csv", "v,w\n1.0,\n,1\n9007199254740993,\n", pa.int64(), [1, 9007199254740993, None]),
    ("jsonl", '{"v":1.0}\n{"v":null}\n{"v":9007199254740993}\n', pa.int64(), [1, 9007199254740993, None]),
    ("jsonl", '{"v":9223372036854775809}\n{"v":1.0}\n', pa.uint64(), [1, 9223372036854775809]),
    ("jsonl", '{"v":[1.0,2]}\n', pa.list_(pa.int32()), [[1, 2]]),
    ("jsonl", '{"v":"2024-01-02"}\n{"v":null}\n', pa.date32(), [DAY, None]),
    ("jsonl", '{"v":{"d":"2024-01-02"}}\n', pa.struct([("d", pa.date32())]), [{"d": DAY}]),
    ("jsonl", '{"v":["2024-01-02"]}\n', pa.list_(pa.date32()), [[DAY]]),
    ("jsonl", '{"v":[0.5,2]}\n{"v":null}\n', pa.list_(pa.float32(), 2), [[0.5, 2.0], None]),
    ("json", '[{"v":[0.5,2]},{"v":null}]', pa.list_(pa.float32(), 2), [[0.5, 2.0], None]),
    ("jsonl", '{"v":"a"}\n', pa.dictionary(pa.int32(), pa.string()), ["a"]),
]


@pytest.mark.parametrize(("kind", "text", "type", "expected"), TAKEN)
def test_values_that_fit_the_column_are_taken(
    tmp_path: Path, kind: str, text: str, type: pa.DataType, expected: list[Any]
) -> None:
    (tmp_path / f"rows.{kind}").write_text(text)
    table = lp.create_table(tmp_path / "t", pa.schema([("v", type), ("w", pa.string())]), [])

    table.append(tmp_path / f"rows.{kind}")

    assert sorted((row["v"] for row in table.scan().to_list()), key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("kind", "text", "type", "words"),
    [
        ("csv", "v\n1.0\n2.5\n", pa.int32(), "column 'v': Decimal.'2.50*'. .*does not fit int32"),
        ("csv", "v\n1\n5000000000\n", pa.int32(), "column 'v': Decimal.'5000000000.0*'.*does not fit int32"),
        ("jsonl", '{"v":1}\n{"v":5000000000}\n', pa.int32(), "column 'v': Decimal.'5000000000.*does not fit int32"),
        ("jsonl", '{"v":"2024-01-02"}\n{"v":"2024-01-02T10:00:00"}\n', pa.date32(), "column 'v': datetime.*10, 0"),
        ("jsonl", '{"v":[1,2]}\n{"v":[1]}\n', pa.list_(pa.float32(), 2), r"column 'v': \[1.0\].* 2 numbers"),
    ],
)
def test_the_column_and_the_first_value_that_does_not_fit_are_named(
    tmp_path: Path, kind: str, text: str, type: pa.DataType, words: str
) -> None:
    (tmp_path / f"rows.{kind}").write_text(text)
    table = lp.create_table(tmp_path / "t", pa.schema([("v", type), ("w", pa.string())]), [])

    with pytest.raises(TableSchemaValidationError, match=words):
        table.append(tmp_path / f"rows.{kind}")
    assert table.count_rows() == 0


def test_files_whose_numbers_are_written_differently_load_together(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("v\n9007199254740993\n")
    (tmp_path / "b.csv").write_text("v\n1.0\n")
    table = lp.create_table(tmp_path / "t", pa.schema([("v", pa.int64())]), [])

    table.append([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")])

    assert table.scan(order_by="v").to_list() == [{"v": 1}, {"v": 9007199254740993}]


@pytest.mark.parametrize(
    ("text", "type", "words"),
    [
        ("w,v\na,1\nb,x3\n", pa.int32(), "column 'v': Row #3.*'x3'"),
        ("w,v\na,2024-01-01\nb,01/02/2024\n", pa.date32(), "column 'v': Row #3.*'01/02/2024'"),
        ("w,v\na,1.25\nb,1.255\n", pa.decimal128(5, 2), "column 'v': Row #3"),
    ],
)
def test_errors_about_csv_name_the_column(tmp_path: Path, text: str, type: pa.DataType, words: str) -> None:
    (tmp_path / "rows.csv").write_text(text)
    table = lp.create_table(tmp_path / "t", pa.schema([("v", type), ("w", pa.string())]), [])

    with pytest.raises(InvalidInputError, match=words):
        table.append(tmp_path / "rows.csv")
