"""Files of one kind as one dataset: columns of all files, NULL in CSV, and folders as columns."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.storage.row_files import files_at
from tests.support.catalogs import rows


def _write(path: Path, **columns: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(pa.table(columns), path)
    return path


def test_the_columns_of_all_parquet_files_are_read_in_types_that_hold_them(tmp_path: Path) -> None:
    _write(tmp_path / "1.parquet", id=pa.array([1], pa.int32()))
    _write(tmp_path / "2.parquet", id=pa.array([1 << 40], pa.int64()), name=["b"])
    found = files_at(tmp_path / "*.parquet").reader().read_all()
    assert found.to_pylist() == [{"id": 1, "name": None}, {"id": 1 << 40, "name": "b"}]
    _write(tmp_path / "3.parquet", id=["x"])
    with pytest.raises(InvalidInputError, match=r"3\.parquet.*id"):
        files_at(tmp_path).reader()


@pytest.mark.parametrize(
    ("ending", "texts"),
    [
        ("csv", ("id\n1\n", "id,name\n2,0042\n")),
        ("jsonl", ('{"id": 1}\n', '{"id": 2, "name": "0042"}\n')),
    ],
)
@pytest.mark.parametrize("schema", [None, rows().schema])
def test_the_columns_of_all_text_files_are_read(
    tmp_path: Path, ending: str, texts: tuple[str, str], schema: pa.Schema | None
) -> None:
    for at, text in enumerate(texts):
        (tmp_path / f"{at}.{ending}").write_text(text)
    found = files_at(tmp_path).reader(schema).read_all()
    named = 42 if ending == "csv" and schema is None else "0042"
    assert found.to_pylist() == [{"id": 1, "name": None}, {"id": 2, "name": named}]


def test_a_column_that_one_file_lacks_can_be_null(tmp_path: Path) -> None:
    required = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64(), nullable=False)])
    pa.parquet.write_table(pa.table({"id": [1], "n": [1]}, schema=required), tmp_path / "1.parquet")
    pa.parquet.write_table(pa.table({"id": [2]}, schema=required.remove(1)), tmp_path / "2.parquet")
    schema = files_at(tmp_path).reader().schema
    assert [schema.field(name).nullable for name in ("id", "n")] == [False, True]


def test_files_that_would_replace_values_by_null_are_refused_where_columns_must_agree(tmp_path: Path) -> None:
    _write(tmp_path / "1.parquet", id=[1])
    _write(tmp_path / "2.parquet", id=[2], name=["b"])
    with pytest.raises(InvalidInputError, match=r"1\.parquet.*'name'"):
        files_at(tmp_path, same_columns=True).reader()


def test_only_an_empty_field_of_a_csv_file_is_null(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,name\n1,NA\n2,"NULL"\n3,nan\n4,\n5,""\n,N/A\n')
    found = files_at(tmp_path / "a.csv").reader(rows().schema).read_all()
    assert found.column("name").to_pylist() == ["NA", "NULL", "nan", None, "", "N/A"]
    assert found.column("id").to_pylist() == [1, 2, 3, 4, 5, None]
    (tmp_path / "b.csv").write_text("id,name\nNA,x\n")
    with pytest.raises(InvalidInputError, match=r"b\.csv.*NA"):
        files_at(tmp_path / "b.csv").reader(rows().schema).read_all()


def test_folders_beneath_directories_and_globs_are_columns(tmp_path: Path) -> None:
    for at, folder in enumerate(("a/code=007", "b/code=x%20y", "b/code=__HIVE_DEFAULT_PARTITION__"), 1):
        _write(tmp_path / folder / "rows.parquet", id=[at])
    expected = {1: "007", 2: "x y", 3: None}
    for given in (
        tmp_path,
        [tmp_path / "a", tmp_path / "b"],
        tmp_path / "*/code=*/*.parquet",
        tmp_path / "**/*.parquet",
        tmp_path / "?",
    ):
        found = files_at(given).reader().read_all()
        assert dict(zip(found["id"].to_pylist(), found["code"].to_pylist(), strict=True)) == expected
    assert files_at(tmp_path / "a/code=007/rows.parquet").reader().schema.names == ["id"]
    assert files_at(tmp_path / "a/code=007/*.parquet").reader().schema.names == ["id"]


def test_folders_have_the_type_of_the_table_or_else_of_their_names(tmp_path: Path) -> None:
    _write(tmp_path / "code=007" / "rows.parquet", id=[1])
    for type, value in ((pa.string(), "007"), (pa.int64(), 7), (pa.decimal128(5, 1), Decimal(7))):
        found = files_at(tmp_path).reader(pa.schema([("code", type)])).read_all()
        assert (found.schema.field("code").type, found["code"].to_pylist()) == (type, [value])
    assert files_at(tmp_path).reader().schema.field("code").type == pa.int32()
    with pytest.raises(InvalidInputError, match="code=007"):
        files_at(tmp_path).reader(pa.schema([("code", pa.date32())]))


def test_a_folder_wins_over_a_column_of_its_type_and_is_refused_for_another(tmp_path: Path) -> None:
    _write(tmp_path / "k=7" / "rows.parquet", k=pa.array([9], pa.int32()))
    assert files_at(tmp_path).reader().read_all().to_pylist() == [{"k": 7}]
    _write(tmp_path / "k=7" / "rows.parquet", k=["9"])
    with pytest.raises(InvalidInputError, match="'k' is string"):
        files_at(tmp_path).reader()


def test_a_field_that_comes_late_in_json_is_refused_and_not_lost(tmp_path: Path) -> None:
    first = b'{"id": 1, "text": "' + b"x" * 1000 + b'"}\n'
    (tmp_path / "a.jsonl").write_bytes(first * 1500 + b'{"id": 2, "text": "y", "late": 5}\n')
    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("text", pa.string())]), ["id"])

    with pytest.raises(InvalidInputError, match=r"a\.jsonl' has a field that none of its first rows has"):
        table.append(str(tmp_path / "a.jsonl"))
    assert table.count_rows() == 0


def test_numbers_of_several_types_are_read_as_the_integers_of_the_table(tmp_path: Path) -> None:
    large = 2**53 + 1
    _write(tmp_path / "in/1.parquet", id=pa.array([1.0, None]))
    _write(tmp_path / "in/2.parquet", id=pa.array([large]))
    loaded = lp.load(tmp_path / "t", tmp_path / "in", partition_by=[], schema=pa.schema([("id", pa.int64())]))
    assert sorted(loaded.to_list(), key=str) == [{"id": 1}, {"id": large}, {"id": None}]
    with pytest.raises(InvalidInputError, match=f"{large} not in range.*one at a time"):
        lp.load(tmp_path / "other", tmp_path / "in", partition_by=[])
    assert not lp.exists(tmp_path / "other")
    _write(tmp_path / "in/3.parquet", id=pa.array([1.5]))
    with pytest.raises(InvalidInputError, match=r"1\.5"):
        lp.load(tmp_path / "t", tmp_path / "in")
    assert loaded.count_rows() == 3


def test_two_columns_of_one_name_in_a_file_are_refused(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "1.parquet")
    with pytest.raises(InvalidInputError, match="has two columns 'a'"):
        files_at(tmp_path).reader()
