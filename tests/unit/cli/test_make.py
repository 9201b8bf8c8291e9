"""Tables made and filled from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest

import lancepart as lp
from lancepart.cli.target import Target

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": pa.array(["a", "b", "b"])})


def write(folder: Path, kind: str) -> str:
    """A file with three rows in a format."""
    path = str(folder / f"rows.{kind}")
    match kind:
        case "parquet":
            pa.parquet.write_table(ROWS, path)
        case "arrow":
            pa.feather.write_feather(ROWS, path, compression="uncompressed")
        case "lance":
            lance.write_dataset(ROWS, path)
        case "csv":
            Path(path).write_text("id,day\n1,a\n2,b\n3,b\n")
        case "jsonl":
            Path(path).write_text('{"id": 1, "day": "a"}\n{"id": 2, "day": "b"}\n{"id": 3, "day": "b"}\n')
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "arrow", "lance"])
def test_files_of_each_format_are_loaded(run: Any, ask: Any, tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind)
    done = ask("load", "t", path, "--by", "day")

    assert (done["created"], done["rows"], done["rows_added"], done["partitions"]) == (True, 3, 3, 2)
    assert lp.open_table("t").scan().to_arrow().sort_by("id") == ROWS
    assert ask("load", "t", path, "--mode", "overwrite")["rows"] == 3


def test_a_table_is_created_by_columns_or_like_a_file(run: Any, ask: Any, tmp_path: Path) -> None:
    ask("create", "a", "--schema", "id bigint not null, v float32[3], tags list<text>", "--by", "bucket(id, 4)")
    table = lp.open_table("a")
    assert table.schema.field("v").type == pa.list_(pa.float32(), 3)
    assert not table.schema.field("id").nullable

    ask("create", "b", "--like", write(tmp_path, "parquet"), "--by", "day", "--weak")
    assert lp.open_table("b").schema == ROWS.schema
    assert lp.open_table("b").metadata.transactions == "weak"
    assert "--schema" in run("create", "c", code=2).stderr


def test_globs_are_expanded_and_a_key_loads_once(run: Any, ask: Any, tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / f"{name}.csv").write_text(f"id,day\n{ord(name)},{name}\n")
    ask("load", "t", "*.csv", "--by", "day", "--key", "monday")
    assert ask("load", "t", "*.csv", "--key", "monday")["rows"] == 2
    assert ask("load", "t", "*.csv", "--key", "tuesday")["rows"] == 4


def test_texts_take_the_types_of_the_table(run: Any, ask: Any, tmp_path: Path) -> None:
    ask("create", "t", "--schema", "id int8, code string, day date", "--by", "day")
    (tmp_path / "rows.csv").write_text("id,code,day\n7,0042,2026-01-31\n")
    ask("load", "t", "rows.csv")
    assert ask("head", "t") == [{"id": 7, "code": "0042", "day": "2026-01-31"}]


def test_texts_of_json_are_read_in_the_types_of_the_table_whatever_rows_name(
    run: Any, ask: Any, tmp_path: Path
) -> None:
    run("create", "typed", "--schema", "id int64, day date, at timestamp[us, tz=UTC], price decimal(9, 2)")
    (tmp_path / "even.jsonl").write_text(
        '{"id": 1, "day": "2026-01-30", "at": "2026-01-30T10:00:00Z", "price": "1.50"}\n'
    )
    (tmp_path / "uneven.jsonl").write_text(
        '{"id": 2, "day": "2026-01-31"}\n{"id": 1, "at": "2026-01-31T10:00:00+01:00"}\n{"id": 3, "price": "2.50"}\n'
    )
    for name in ("even", "uneven"):
        ask("upsert", "typed", f"{name}.jsonl", "--on", "id")
    rows = {row["id"]: row for row in ask("head", "typed")}
    assert (rows[1]["day"], rows[1]["at"], rows[1]["price"]) == ("2026-01-30", "2026-01-31T09:00:00+00:00", "1.50")
    assert (rows[2]["day"], rows[3]["price"]) == ("2026-01-31", "2.50")
    (tmp_path / "wrong.jsonl").write_text('{"id": 1, "day": "2026-01-30T10:00:00"}\n{"id": 2}\n')
    assert "does not fit date32" in run("upsert", "typed", "wrong.jsonl", "--on", "id", code=1).stderr


def test_an_upsert_keeps_the_columns_that_a_row_does_not_name(run: Any, ask: Any, tmp_path: Path) -> None:
    ask("load", "t", write(tmp_path, "csv"), "--by", "day")
    (tmp_path / "u.jsonl").write_text('{"id": 1}\n{"id": 9, "day": "z"}\n')
    ask("upsert", "t", "u.jsonl", "--on", "id")
    found = {row["id"]: row["day"] for row in ask("head", "t")}
    assert found == {1: "a", 2: "b", 3: "b", 9: "z"}


def test_folders_named_by_values_are_columns(run: Any, ask: Any, tmp_path: Path) -> None:
    pa.dataset.write_dataset(ROWS, tmp_path / "in", format="parquet", partitioning=["day"], partitioning_flavor="hive")
    ask("load", "t", "in", "--by", "day")
    assert lp.open_table("t").scan(columns=ROWS.schema.names).to_arrow().sort_by("id") == ROWS


def test_a_load_that_fails_leaves_no_table(run: Any, tmp_path: Path) -> None:
    lines = "".join(f"{n},a\n" for n in range(200_000))
    (tmp_path / "long.csv").write_text(f"id,day\n{lines}seven,b\n")
    assert "seven" in run("load", "t", "long.csv", "--by", "day", code=1).stderr
    assert not (tmp_path / "t" / "__manifest").exists()


@pytest.mark.parametrize("target", ["t", "w:shop.t"])
def test_a_load_that_fails_keeps_a_table_that_others_have_written_to(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    (tmp_path / "bad.csv").write_text("id,day\n1,a\n")
    root = Target.parse(target)

    def failing(self: lp.PartitionedTable, rows: Any, **options: Any) -> None:
        root.open({}).overwrite(ROWS)
        raise lp.errors.InvalidInputError("the disk is full")

    monkeypatch.setattr(lp.PartitionedTable, "append", failing)
    assert "the disk is full" in run("load", target, "bad.csv", "--by", "day", code=1).stderr
    assert root.open({}).count_rows() == 3


def test_a_load_that_fails_leaves_no_name_in_a_warehouse(run: Any, ask: Any, tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("id,day\n" + "10000,a\n" * 200_000 + "seven,b\n")
    assert "seven" in run("load", "w:shop.t", "long.csv", "--by", "day", code=1).stderr
    assert lp.connect("w").list_tables() == []
    (tmp_path / "good.csv").write_text("id,day\n1,a\n")
    assert ask("load", "w:shop.t", "good.csv", "--by", "day")["rows"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["load", "t", "none.csv", "--by", "day"], 1, "no file matches 'none.csv'"),
        (["load", "t", "rows.csv"], 3, "--by"),
        (["load", "t", "rows.csv", "--by", "dya"], 1, "dya"),
        (["load", "t", "rows.csv", "--format", "xml"], 2, "use parquet"),
        (["load", "t", "rows.csv", "--format", "parquet", "--by", "day"], 1, "parquet"),
        (["load", "t", "rows.csv", "--mode", "merge", "--by", "day"], 2, "use append, overwrite"),
        (["create", "t", "--schema", "id", "--by", "id"], 2, "write its name and its type"),
        (["create", "t", "--schema", "id int99", "--by", "id"], 2, "int99"),
        (["upsert", "t", "rows.csv"], 2, "--on"),
    ],
)
def test_mistakes_are_answered_in_one_line_and_make_no_table(
    run: Any, tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    write(tmp_path, "csv")
    done = run(*arguments, code=code)
    assert words in done.stderr
    assert code == 2 or len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "t" / "__manifest").exists()
