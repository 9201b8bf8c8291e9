"""Files of others as streams of rows."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet
import pytest

from lancepart.errors import InvalidInputError
from lancepart.storage.row_files import files_at, is_path
from tests.support.catalogs import rows


def test_files_directories_and_globs_are_one_stream_as_often_as_wanted(tmp_path: Path) -> None:
    for n in (1, 2):
        pa.parquet.write_table(rows(n), tmp_path / f"{n}.parquet")
    (tmp_path / "_hidden.parquet").write_bytes(b"")
    for given in (tmp_path, tmp_path / "?.parquet", [tmp_path / "1.parquet", tmp_path / "2.parquet"]):
        found = files_at(given)
        for _ in range(2):
            assert found.reader().read_all().column("id").to_pylist() == [1, 2]


def test_texts_are_read_in_the_types_of_a_schema(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n7,0042\n")
    found = files_at(tmp_path / "a.csv").reader(rows().schema).read_all()
    assert found.to_pylist() == [{"id": 7, "name": "0042"}]


def test_a_lance_table_is_one_whole(tmp_path: Path) -> None:
    lance.write_dataset(rows(1, 2), str(tmp_path / "t.lance"))
    assert files_at(tmp_path / "t.lance").reader().read_all() == rows(1, 2)


def test_paths_are_told_from_data_and_mistakes_are_named(tmp_path: Path) -> None:
    assert is_path("a.csv")
    assert is_path([tmp_path])
    assert not is_path([{"id": 1}])
    assert not is_path([])
    with pytest.raises(InvalidInputError, match="no file matches"):
        files_at(tmp_path / "*.csv").reader()
    with pytest.raises(InvalidInputError, match="xml"):
        files_at(tmp_path, format="xml")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(InvalidInputError, match="ending"):
        files_at(tmp_path / "a.txt").reader()
