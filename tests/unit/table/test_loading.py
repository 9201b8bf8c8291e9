"""Loading: files of every format, datasets, streams and frames, of any size, in one commit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import lance
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import lancepart as lp
from lancepart.errors import (
    InvalidInputError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableSchemaValidationError,
)
from lancepart.storage.row_files import files_at
from tests.support.catalogs import Place

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("day", pa.date32()), ("x", pa.float64())])
ROWS = pa.Table.from_pylist(
    [{"id": i, "k": "ab"[i % 2], "day": date(2024, 1, 1 + i), "x": None if i == 3 else i / 2} for i in range(10)],
    schema=SCHEMA,
)


def rows(table: Any) -> list[dict[str, Any]]:
    return sorted(table.scan().to_list(), key=lambda row: row["id"])


def _files(folder: Path) -> dict[str, str]:
    """The same rows in files of every format, two of each; the globs that name them."""
    halves = [ROWS.slice(0, 5), ROWS.slice(5)]
    for at, half in enumerate(halves):
        pq.write_table(half, folder / f"{at}.parquet")
        pa_csv.write_csv(half, folder / f"{at}.csv")
        feather.write_feather(half, str(folder / f"{at}.arrow"), compression="uncompressed")
        lines = [json.dumps({**row, "day": row["day"].isoformat()}) for row in half.to_pylist()]
        (folder / f"{at}.jsonl").write_text("\n".join(lines))
    lance.write_dataset(ROWS, str(folder / "plain.lance"))
    return {kind: str(folder / f"*.{kind}") for kind in ("parquet", "csv", "arrow", "lance")}


def test_files_of_every_format_are_loaded_by_a_glob(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for kind, pattern in _files(files).items():
        seen: list[int] = []
        root = tmp_path / kind
        table = lp.load(root, pattern, partition_by=["k"], schema=SCHEMA, progress=seen.append)

        assert rows(table) == ROWS.to_pylist()
        assert seen[-1] == 10
        again = lp.load(root, pattern)
        assert again.count_rows() == 20
        assert again.inspect.snapshots().num_rows >= 2
    made = lp.load(tmp_path / "folder", files / "0.parquet", partition_by=["k"])
    made.append(str(files / "1.parquet"))
    made.append([files / "0.csv", str(files / "1.csv")])
    assert made.schema == SCHEMA
    assert made.count_rows() == 20


def test_json_lines_are_read_in_the_types_that_arrow_finds(tmp_path: Path) -> None:
    _files(tmp_path)
    table = lp.create_table_from(tmp_path / "t", str(tmp_path / "*.jsonl"), ["k"])

    assert table.count_rows() == 10
    assert table.schema.field("id").type == pa.int64()


def test_columns_of_later_files_are_loaded_or_refused_and_no_upsert_sets_them_to_null(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "k": ["a"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"id": [2], "k": ["b"], "x": [0.5]}), tmp_path / "2.parquet")
    table = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    table.append(str(tmp_path / "*.parquet"))
    assert [row["x"] for row in rows(table)] == [None, 0.5]

    with pytest.raises(InvalidInputError, match=r"1\.parquet.*'x'"):
        table.upsert(str(tmp_path / "*.parquet"), on=["id"])
    pq.write_table(pa.table({"id": [3], "k": ["b"], "unknown": [1]}), tmp_path / "3.parquet")
    with pytest.raises(TableSchemaValidationError, match="unknown"):
        table.append(str(tmp_path / "*.parquet"))
    assert table.count_rows() == 2


def _generated() -> Iterator[pa.RecordBatch]:
    yield from ROWS.to_batches(max_chunksize=3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ds.dataset(ROWS),
        lambda: ds.dataset(ROWS).scanner(),
        ROWS.to_reader,
        _generated,
        lambda: iter(ROWS.to_pylist()),
        lambda: iter([pl.DataFrame(ROWS.slice(0, 4)), pl.DataFrame(ROWS.slice(4))]),
        ROWS.to_pandas,
        lambda: pl.DataFrame(ROWS),
        lambda: pl.DataFrame(ROWS).lazy(),
        lambda: duckdb.sql("SELECT * FROM ROWS"),
        ROWS.to_pylist,
        lambda: lp.sql("SELECT * FROM r", r=ROWS),
    ],
    ids=[
        "dataset",
        "scanner",
        "reader",
        "batches",
        "dicts",
        "frames",
        "pandas",
        "polars",
        "lazy",
        "duckdb",
        "list",
        "sql",
    ],
)
def test_every_kind_of_rows_makes_a_table_and_is_appended_and_upserted(tmp_path: Path, make: Any) -> None:
    table = lp.create_table_from(tmp_path / "t", make(), ["k"], schema=SCHEMA)
    assert rows(table) == ROWS.to_pylist()

    table.append(make())
    assert table.count_rows() == 20
    other = lp.create_table(tmp_path / "u", SCHEMA, ["k"])
    other.upsert(make(), on=["id"])
    other.upsert(make(), on=["id"])
    other.merge(make(), on=["id"]).when_matched_update({"x": "1.0"}).execute()
    assert other.count_rows("x = 1.0") == 10


def test_a_lance_dataset_and_a_table_are_rows_too(tmp_path: Path) -> None:
    plain = lance.write_dataset(ROWS, str(tmp_path / "plain.lance"))
    table = lp.create_table_from(tmp_path / "t", plain, ["k"])
    table.append(plain.scanner(filter="id < 3"))
    table.append(table)

    assert table.count_rows() == 26


def test_values_that_fit_are_taken_and_others_named(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int32()), ("n", pa.int64()), ("ts", pa.timestamp("us"))])
    table = lp.create_table(tmp_path / "t", schema, ["id"])
    table.append(pd.DataFrame({"id": [1, 2], "n": [1.0, None], "ts": pd.to_datetime(["2024-01-01", "2024-01-02"])}))
    table.append(
        pa.table({"id": pa.array([3], pa.int64()), "ts": pa.array([datetime(2024, 1, 3)], pa.timestamp("ns"))})
    )
    version = table.version

    for wrong, text in (
        (pa.table({"id": pa.array([2**40], pa.int64())}), "column 'id'.*1099511627776"),
        (pa.table({"id": [4], "n": [1.5]}), "column 'n'.*1.5"),
        (pa.table({"id": [4], "ts": pa.array([1], pa.timestamp("ns"))}), "column 'ts'"),
    ):
        with pytest.raises(TableSchemaValidationError, match=text):
            table.append(wrong)
    assert table.version == version
    assert table.count_rows() == 3


def test_what_is_wrong_is_named_and_leaves_no_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no file matches"):
        lp.load(tmp_path / "t", str(tmp_path / "*.parquet"), partition_by=["k"])
    pq.write_table(ROWS, tmp_path / "a.parquet")
    with pytest.raises(InvalidInputError, match="say how to partition it"):
        lp.load(tmp_path / "t", tmp_path / "a.parquet")
    (tmp_path / "a.xyz").write_text("x")
    with pytest.raises(InvalidInputError, match="no ending that is known"):
        lp.load(tmp_path / "t", tmp_path / "a.xyz", partition_by=["k"])
    with pytest.raises(InvalidInputError, match="format is 'orc'"):
        lp.load(tmp_path / "t", tmp_path / "a.xyz", partition_by=["k"], format="orc")

    def broken() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        lp.create_table_from(tmp_path / "t", broken(), ["k"])
    with pytest.raises(InvalidInputError, match="yields a int"):
        lp.create_table_from(tmp_path / "t", iter([1]), ["k"])
    assert not lp.exists(tmp_path / "t")
    with pytest.raises(TableNotFoundError):
        lp.open_table(tmp_path / "t")


@pytest.mark.slow
def test_files_on_s3_are_loaded_into_a_table_there(s3_server: Any) -> None:
    place: Place = s3_server.place()
    source = lp.create_table_from(f"{place.root}/source", ROWS, ["k"], storage_options=place.storage_options)
    assert source.count_rows() == 10
    leaf = source.scan("k = 'a'").plan().leaves[0].location
    table = lp.load(
        f"{place.root}/t",
        f"{place.root}/source/{leaf}",
        partition_by=["k"],
        format="lance",
        storage_options=place.storage_options,
    )
    assert table.count_rows() == 5


GROWING = """
import resource, sys
import pyarrow as pa
import lancepart as lp

def batches():
    for at in range({count}):
        yield pa.record_batch({{"id": list(range(at * 50_000, (at + 1) * 50_000)), "text": ["x" * 200] * 50_000}})

table = lp.create_table_from({root!r}, batches(), ["bucket(4, id)"])
assert table.count_rows() == {count} * 50_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_what_is_loaded(tmp_path: Path) -> None:
    used = []
    for count in (60, 180):
        code = GROWING.format(count=count, root=str(tmp_path / f"t{count}"))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        used.append(int(done.stdout.split()[-1]))
    assert used[1] < used[0] * 1.6, used


def test_a_table_that_others_use_stays_when_the_data_that_made_it_fails(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        lp.load(tmp_path / "t", ROWS)
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        lp.load(tmp_path / "t", broken(), partition_by=["k"])

    assert lp.open_table(tmp_path / "t").count_rows() == ROWS.num_rows


@pytest.mark.parametrize("given", [list, iter], ids=["list", "generator"])
def test_a_column_that_only_a_later_dict_names_is_loaded(tmp_path: Path, given: Any) -> None:
    ragged = [{"a": 1}, {"a": 2, "b": "x"}]
    whole = [{"a": 1, "b": None}, {"a": 2, "b": "x"}]

    made = lp.create_table_from(tmp_path / "t", given(ragged), ["a"])
    assert sorted(made.to_list(), key=lambda row: row["a"]) == whole
    assert made.join(given([{"a": 1}, {"a": 2, "c": 5}]), on=["a"], columns=["a", "c"]).to_pandas()["c"].sum() == 5
    made.upsert(given([{"a": 2}, {"a": 1, "b": "y"}]), on=["a"])
    assert sorted(row["b"] for row in made.to_list()) == ["x", "y"]
    assert lp.sql("SELECT * FROM t ORDER BY a", t=ragged).to_list() == whole


def test_what_dicts_can_not_say_is_refused_by_name(tmp_path: Path) -> None:
    late = chain(({"a": i} for i in range(20_000)), [{"a": 1, "b": 2}])
    with pytest.raises(TableSchemaValidationError, match="'b' is in none of the first 10,000 rows"):
        lp.create_table_from(tmp_path / "t", late, ["bucket(2, a)"])
    with pytest.raises(TableSchemaValidationError, match="column 'b' is not in the table"):
        lp.create_table_from(tmp_path / "t", [{"a": 1}, {"b": 2}], ["a"], schema=pa.schema([("a", pa.int64())]))
    with pytest.raises(TableSchemaValidationError, match="'a' have no type in common"):
        lp.create_table_from(tmp_path / "t", [{"a": 1}, {"a": "x"}], ["a"])
    with pytest.raises(InvalidInputError, match="then a RecordBatch"):
        lp.create_table_from(tmp_path / "t", iter([{"a": 1}, pa.record_batch({"a": [1]})]), ["a"])
    assert not lp.exists(tmp_path / "t")


@pytest.mark.parametrize("layout", ["manifest", "hive"])
def test_a_table_with_another_definition_is_not_loaded_into(tmp_path: Path, layout: str) -> None:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"], layout=layout)

    lp.load(made.root, ROWS, partition_by=["k"], schema=SCHEMA)
    for options, what in ({"partition_by": ["k", "id"]}, "partitioning"), ({"schema": SCHEMA.remove(0)}, "columns"):
        with pytest.raises(TableAlreadyExistsError, match=f"another {what}"):
            lp.load(made.root, ROWS, **options)

    assert lp.load(made.root, ROWS).count_rows() == 2 * ROWS.num_rows


def test_files_of_another_form_than_their_names_say_are_refused_with_what_to_do(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    pa_csv.write_csv(ROWS, tmp_path / "b.csv")
    (tmp_path / "c.json").write_text('[{"id": 1, "k": 2}, {"id": 2')
    (tmp_path / "d.json").write_text('[{"id": 1, "k": 2}] {"id": 2}')
    (tmp_path / "e.arrow").write_bytes(b"nothing of Arrow")
    (tmp_path / "f.json").write_text("[1, 2]")
    refused: dict[str, Any] = {
        "a.parquet' is parquet and .*b.csv' is csv: give files of one format": [
            tmp_path / "a.parquet",
            tmp_path / "b.csv",
        ],
        "c.json' is a JSON array that does not end": tmp_path / "c.json",
        "d.json' is a JSON array with something after its end": tmp_path / "d.json",
        "e.arrow' can't be read as Arrow, neither as a file nor as a stream": tmp_path / "e.arrow",
        "f.json' can't be read as a JSON array of objects": tmp_path / "f.json",
    }

    for message, files in refused.items():
        with pytest.raises(InvalidInputError, match=message):
            lp.load(tmp_path / "t", files, partition_by=["k"])
    assert not lp.exists(tmp_path / "t")


def _arrow_stream(path: Path, rows: pa.Table) -> None:
    with pa.ipc.new_stream(str(path), rows.schema) as stream:
        stream.write_table(rows, max_chunksize=2)


def test_arrow_streams_load_beside_arrow_files(tmp_path: Path) -> None:
    _arrow_stream(tmp_path / "a.arrows", ROWS)
    _arrow_stream(
        tmp_path / "b.arrow", ROWS.select(["id", "k"]).cast(pa.schema([("id", pa.int32()), ("k", pa.string())]))
    )
    with pa.ipc.new_file(str(tmp_path / "c.arrow"), SCHEMA) as file:
        file.write_table(ROWS)

    table = lp.load(tmp_path / "t", [tmp_path / "*.arrow", tmp_path / "*.arrows"], partition_by=["k"])

    assert table.schema.field("id").type == SCHEMA.field("id").type
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == sorted(ROWS["id"].to_pylist() * 3)
    missing = [name for name in SCHEMA.names if name not in ("id", "k")]
    assert table.scan(f"{missing[0]} IS NULL").count() >= ROWS.num_rows


@pytest.mark.parametrize("indent", [None, 2])
def test_json_arrays_load_like_json_lines(tmp_path: Path, indent: int | None) -> None:
    texts = ['say "hi"', "back\\slash", "[{,}]", "two\nlines", "é", ""]
    rows = [{"id": n, "k": n % 3, "text": texts[n % 6], "more": {"at": [n, n] if n % 2 else None}} for n in range(50)]
    folder = tmp_path / "in" / "day=2024-01-02"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text(json.dumps(rows[:30], indent=indent))
    (folder / "b.json").write_text("\n".join(map(json.dumps, rows[30:])))
    schema = pa.schema([("id", pa.int16()), ("k", pa.int64()), ("text", pa.string()), ("day", pa.date32())])
    schema = schema.append(pa.field("more", pa.struct([("at", pa.list_(pa.int64()))])))

    table = lp.load(tmp_path / "t", tmp_path / "in", partition_by=["k"], schema=schema)

    found = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [{**row, "day": date(2024, 1, 2)} for row in rows]


@pytest.mark.slow
def test_a_json_array_is_read_little_by_little(tmp_path: Path) -> None:
    count = 400_000
    with (tmp_path / "a.json").open("w") as file:
        file.write("[")
        for at in range(0, count, 1_000):
            file.write("," if at else "")
            file.write(",".join(f'{{"id": {n}, "k": 1, "text": "{n:0>60}"}}' for n in range(at, at + 1_000)))
        file.write("]")
    reader = files_at(tmp_path / "a.json").reader()

    before = pa.total_allocated_bytes()
    most, rows = 0, 0
    for batch in reader:
        rows += batch.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
        del batch

    assert rows == count
    assert most < (tmp_path / "a.json").stat().st_size / 1.5


def test_a_late_field_of_a_json_array_is_refused(tmp_path: Path) -> None:
    rows = [{"id": n, "k": 1, "text": "x" * 1_000} for n in range(10_000)] + [{"id": 0, "k": 1, "late": 1}]
    (tmp_path / "a.json").write_text(json.dumps(rows))

    with pytest.raises(InvalidInputError, match="a field that none of its first rows has"):
        lp.load(tmp_path / "t", tmp_path / "a.json", partition_by=["k"])
    assert not lp.exists(tmp_path / "t")
