"""Columns of any name, in schema, partitioning, filter and projection."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lancepart as lp

NAMES = [
    "it's",
    'qu"ote',
    "a.b",
    "a.b.c",
    "a/b",
    "a b",
    "😀",
    "back`tick",
    "CamelCase",
    "select",
    "col0",
    "x\\y",
    "new\nline",
    " lead",
    "%2E",
    "{0}",
    "$",
    "_rowid",
    "object_id",
]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize("name", NAMES)
def test_a_column_may_have_any_name(tmp_path: Path, name: str) -> None:
    table = lp.create_table(tmp_path / "n", pa.schema([(name, pa.string()), ("id", pa.int64())]), [name])
    table.append([{name: "a", "id": 1}, {name: "b", "id": 2}])
    table.append([{name: "a", "id": 3}])

    scan = table.scan(f"{_quoted(name)} = 'a'", columns=[name])

    assert scan.to_arrow().to_pylist() == [{name: "a"}] * 2
    assert len(scan.plan().leaves) == 1
    assert scan.count() == 2
    assert table.scan(f"{_quoted(name)} = 'a' AND id = 3").to_arrow().to_pylist() == [{name: "a", "id": 3}]
    assert table.scan(f"upper({_quoted(name)}) = 'B'", columns=["id"]).to_arrow().to_pylist() == [{"id": 2}]


@pytest.mark.parametrize("name", ["a.b", "back`tick", "it's", "😀"])
def test_a_column_of_any_name_evolves(tmp_path: Path, name: str) -> None:
    table = lp.create_table(tmp_path / "e", pa.schema([("id", pa.int64()), ("v", pa.string())]), ["id"])
    table.append([{"id": 1, "v": "old"}])

    table.rename_column("v", name)
    table.append([{"id": 1, name: "renamed"}])
    table.add_column(pa.field("v", pa.string()))
    table.append([{"id": 1, name: "both", "v": "new"}])
    table.drop_column(name)
    table.add_column(pa.field(name, pa.string()))
    table.append([{"id": 1, name: "again"}])

    found = table.scan(columns=["v", name]).to_arrow().to_pylist()
    assert found == [{"v": None, name: None}] * 2 + [{"v": "new", name: None}, {"v": None, name: "again"}]


@pytest.mark.parametrize(
    "partition_by", ['bucket("a.b", 4)', 'truncate("a.b", 1)', 'expr(upper("a.b")) AS "loud name"', "bucket(4, `a.b`)"]
)
def test_quoted_names_work_in_every_form_of_partition_by(tmp_path: Path, partition_by: str) -> None:
    table = lp.create_table(tmp_path / "p", pa.schema([("id", pa.int64()), ("a.b", pa.string())]), [partition_by])

    table.append([{"id": 1, "a.b": "x"}, {"id": 2, "a.b": "y"}])

    assert table.scan("\"a.b\" = 'x'", columns=["id"]).to_arrow().to_pylist() == [{"id": 1}]


def test_nested_fields_of_odd_names_pass_through(tmp_path: Path) -> None:
    kind = pa.struct([("x y", pa.int64()), ("é", pa.string())])
    table = lp.create_table(tmp_path / "s", pa.schema([("id", pa.int64()), ("s", kind)]), ["id"])

    table.append([{"id": 1, "s": {"x y": 5, "é": "z"}}])

    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "s": {"x y": 5, "é": "z"}}]


def test_two_columns_that_want_the_same_physical_name_stay_apart(tmp_path: Path) -> None:
    names = ["a", "a__4", "a.b", "a%2Eb"]
    schema = pa.schema([("id", pa.int64()), *((name, pa.string()) for name in names)])
    table = lp.create_table(tmp_path / "x", schema, ["id"])
    row = {name: f"value of {name}" for name in names}

    table.append([{"id": 1, **row}])
    table.rename_column("a", "b")
    table.add_column(pa.field("a", pa.string()))
    table.append([{"id": 1, **row, "b": "renamed"}])

    found = table.scan().to_arrow().to_pylist()
    assert found[0] == {"id": 1, **row, "a": None, "b": "value of a"}
    assert found[1] == {"id": 1, **row, "b": "renamed"}


def test_a_plain_name_is_the_same_in_the_leaf(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "l", pa.schema([("id", pa.int64()), ("Ünïcode name", pa.string())]), ["id"])
    table.append([{"id": 1, "Ünïcode name": "x"}])

    (leaf,) = table.scan().plan().leaves

    assert lance.dataset(f"{table.root}/{leaf.location}").schema.names == ["id", "Ünïcode name"]
