"""CSV files with other separators or in other encodings are refused by name, with what to do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.storage.row_files import files_at


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"id;name\n1;a\n", "separated by semicolons"),
        (b"id\tname\n1\ta\n", "separated by tabs; separate them by commas, or by tabs in a file whose name ends"),
        (b"id|name\n1|a\n", "separated by bars"),
        (b"id;price\n3;1,5\n", "are its fields separated by commas?"),
        (b"id,name\n1,\xe9t\xe9\n", "not in UTF-8, as column 'name' shows: convert it"),
        (b"id,\xe9t\xe9\n1,2\n", "not in UTF-8, as the name of a column shows: convert it"),
    ],
)
def test_a_file_that_is_no_csv_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "in.csv").write_bytes(content)
    with pytest.raises(InvalidInputError) as raised:
        lp.load(tmp_path / "t", tmp_path / "in.csv", partition_by=[])
    assert words in str(raised.value)
    assert "in.csv" in str(raised.value)
    assert not lp.exists(tmp_path / "t")


def test_separators_within_fields_and_bytes_that_are_wanted_are_read(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"a;b,raw\n1;2,\xe9\n")
    schema = pa.schema([("a;b", pa.string()), ("raw", pa.binary())])
    assert files_at(tmp_path).reader(schema).read_all().to_pylist() == [{"a;b": "1;2", "raw": b"\xe9"}]
