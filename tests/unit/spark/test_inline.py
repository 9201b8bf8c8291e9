"""Rows that come with a plan: all of them, once a key and once without keys, and only where they are few."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.read.leaf import ADDRESS, LEAF
from lancepart.spark import inline
from lancepart.spark.inline import inlined, task_count
from lancepart.spark.planning import Planned, plan
from lancepart.spark.running import rows
from lancepart.spark.table_messages import ScanRequest
from lancepart.spark.types import spark_schema

pytest.importorskip("pyspark")

MOST = 64 << 10
THERE = {"name": "IS_NOT_NULL", "children": [{"column": ["id"]}]}
EQUALS_SEVEN = {"name": "=", "children": [{"column": ["id"]}, {"type": "bigint", "value": "7"}]}


def filled(root: Path, rows: int = 60) -> lp.PartitionedTable:
    schema = pa.schema([("id", pa.int64()), ("country", pa.string()), ("text", pa.string())])
    table = lp.create_table(root, schema, ["country"])
    table.append([{"id": n, "country": f"c{n % 3}", "text": "x" * (n % 5)} for n in range(rows)])
    return table


def planned(table: lp.PartitionedTable, **asked: Any) -> Planned:
    columns = asked.pop("columns", ("id", "country"))
    return plan(table, ScanRequest(version=table.version, columns=columns, **asked))


def streams(found: Planned, most: int = MOST) -> list[pa.Table] | None:
    made = inlined(found, spark_schema(found.schema), most)
    return None if made is None else [pa.ipc.open_stream(each).read_all() for each in made]


def test_each_key_has_a_stream_and_all_rows_have_one(tmp_path: Path) -> None:
    found = planned(filled(tmp_path / "t"))
    made = streams(found)
    assert made is not None
    *keyed, everything = made
    assert [set(each["country"].to_pylist()) for each in keyed] == [{key} for (key,) in found.keys]
    assert sorted(n for each in keyed for n in each["id"].to_pylist()) == list(range(60))
    assert sorted(everything["id"].to_pylist()) == list(range(60))
    assert task_count(found, [b""] * len(made)) == len(keyed)


def test_without_keys_there_is_one_stream(tmp_path: Path) -> None:
    found = planned(filled(tmp_path / "t"), columns=("id",))
    made = streams(found)
    assert made is not None
    assert [each.num_rows for each in made] == [60]
    assert task_count(found, [b""]) == 1


def test_rows_that_a_filter_leaves_out_do_not_come(tmp_path: Path) -> None:
    made = streams(planned(filled(tmp_path / "t"), columns=("id",), pushed=(EQUALS_SEVEN,)))
    assert made is not None
    assert made[0]["id"].to_pylist() == [7]


@pytest.mark.parametrize(("asked", "tried"), [((), False), ((THERE,), False), ((THERE, EQUALS_SEVEN), True)])
def test_more_is_read_only_where_a_filter_may_leave_rows_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: tuple[dict[str, Any], ...], tried: bool
) -> None:
    table = filled(tmp_path / "t", 300)
    read = []
    monkeypatch.setattr(inline, "rows", lambda scan, task: read.append(task) or rows(scan, task))
    made = streams(planned(table, columns=("id",), pushed=asked), 1_000)
    assert (made is not None, bool(read)) == (tried, tried)


def test_a_limit_and_a_count_that_is_known_are_kept(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    some = streams(planned(table, columns=("id",), limit=5))
    counted = streams(planned(table, columns=(), aggregates=({"name": "count"},)))
    assert some is not None
    assert counted is not None
    assert some[0].num_rows == 5
    assert counted[0].column(0).to_pylist() == [60]


def test_more_rows_than_the_limit_are_left_to_workers(tmp_path: Path) -> None:
    found = planned(filled(tmp_path / "t", 3_000), columns=("id", "text"))
    assert streams(found, 16 << 10) is None
    assert streams(found, 0) is None
    assert streams(found, 1 << 20) is not None


def test_rows_that_turn_out_to_be_larger_than_estimated_are_left_to_workers(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("text", pa.string())]))
    table.append([{"text": "long " * 1_000}] * 100)
    assert streams(planned(table, columns=("text",))) is None


def test_what_is_changed_or_aggregated_by_reading_is_left_to_workers(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    assert streams(planned(table, columns=("id", LEAF, ADDRESS))) is None
    assert streams(planned(table, columns=(), aggregates=({"name": "max", "column": "id"},))) is None


def test_a_leaf_that_is_gone_fails_where_spark_reads_it(tmp_path: Path) -> None:
    found = planned(filled(tmp_path / "t"))
    leaf = found.tasks[0].pieces[0].leaf
    shutil.rmtree(tmp_path / "t" / leaf.location / "data")
    assert streams(found) is None
    assert streams(replace(found, tasks=())) is None
