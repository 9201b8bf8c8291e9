"""Whole numbers of CSV files that a float would round are refused; those that it holds are read."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.storage.row_files import files_at


@pytest.mark.parametrize("values", [["9223372036854775807", "9223372036854775808"], ["1.5", "9007199254740993"]])
def test_whole_numbers_of_csv_that_a_float_would_round_are_refused(tmp_path: Path, values: list[str]) -> None:
    path = tmp_path / "1.csv"
    path.write_text("\n".join(["id", *values]) + "\n")
    with pytest.raises(InvalidInputError, match=r"has \d+ in column 'id'.*a float\s+rounds it"):
        files_at(path).reader()
    wide = pa.schema([("id", pa.decimal128(38, 1))])
    loaded = lp.load(tmp_path / "t", path, partition_by=[], schema=wide)
    assert {row["id"] for row in loaded.to_list()} == {Decimal(value) for value in values}


def test_numbers_of_csv_that_a_float_holds_are_read_as_such(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("x\n1.5\n9007199254740992\n1e300\n\n")
    assert files_at(tmp_path).reader().read_all()["x"].to_pylist() == [1.5, 9007199254740992.0, 1e300]
