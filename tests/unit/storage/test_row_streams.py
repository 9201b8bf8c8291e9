"""Files that only a stream can be made of."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pa_fs
import pyarrow.ipc
import pytest

from lancepart.errors import InvalidInputError
from lancepart.storage.row_streams import columns_of, fitted, is_stream, rows_of

SYSTEM = pa_fs.LocalFileSystem()
ROWS = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", None]})


def test_streams_are_told_from_files_by_what_is_in_them(tmp_path: Path) -> None:
    with pa.ipc.new_stream(str(tmp_path / "stream"), ROWS.schema) as stream:
        stream.write_table(ROWS)
    with pa.ipc.new_file(str(tmp_path / "file"), ROWS.schema) as file:
        file.write_table(ROWS)
    (tmp_path / "lines").write_text('{"id": [1]}\n')
    (tmp_path / "array").write_text(' \n[{"id": 1}]')
    (tmp_path / "empty").write_text("")

    kinds = {"stream": "ipc", "file": "ipc", "lines": "json", "array": "json", "empty": "json"}
    found = {name for name, kind in kinds.items() if is_stream(kind, str(tmp_path / name), SYSTEM)}

    assert found == {"stream", "array"}
    assert not is_stream("parquet", str(tmp_path / "array"), SYSTEM)
    assert columns_of("ipc", str(tmp_path / "stream"), SYSTEM) == ROWS.schema
    assert pa.Table.from_batches(rows_of("ipc", str(tmp_path / "stream"), SYSTEM, ROWS.schema)) == ROWS


def test_a_compressed_array_is_read_in_the_types_that_are_known(tmp_path: Path) -> None:
    path = str(tmp_path / "a.json.gz")
    Path(path).write_bytes(gzip.compress(json.dumps(ROWS.to_pylist()).encode()))

    assert is_stream("json", path, SYSTEM)
    assert columns_of("json", path, SYSTEM).field("id").type == pa.int64()
    assert pa.Table.from_batches(rows_of("json", path, SYSTEM, ROWS.schema)) == ROWS


def test_a_stream_that_is_cut_short_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.arrows"
    with pa.ipc.new_stream(str(path), ROWS.schema) as stream:
        stream.write_table(ROWS)
    path.write_bytes(path.read_bytes()[:-40])

    with pytest.raises(InvalidInputError, match=r"a\.arrows' can't be read as Arrow"):
        list(rows_of("ipc", str(path), SYSTEM, ROWS.schema))


def test_rows_get_the_columns_of_all_files_and_the_values_of_folders() -> None:
    columns = pa.schema([("id", pa.int64()), ("day", pa.int32()), ("more", pa.string())])

    found = fitted(ROWS.to_batches()[0], columns, {"day": pa.scalar(7, pa.int32())})

    assert found.to_pylist() == [{"id": n, "day": 7, "more": None} for n in (1, 2)]
