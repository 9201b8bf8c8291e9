"""Scans: lazy, in bounded memory, stopping early, and clear about what is wrong."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, InvalidTableStateError, TableColumnNotFoundError

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("name", pa.string())])


def _fill(root: Path, transactions: str = "strong") -> lp.PartitionedTable:
    table = lp.create_table(root, SCHEMA, ["k"], transactions=transactions)
    table.append([{"id": i, "k": i % 4, "name": f"n{i}"} for i in range(100)])
    return table


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    return _fill(tmp_path / "t")


def _without_leaves(table: lp.PartitionedTable) -> None:
    for directory in Path(table.root).glob("*$dataset"):
        shutil.rmtree(directory)


def test_a_scan_is_lazy(table: lp.PartitionedTable) -> None:
    scan = table.scan("k = 1")
    _without_leaves(table)

    assert scan.schema == SCHEMA
    assert len(scan.plan().leaves) == 1
    with pytest.raises(InvalidTableStateError, match="its files are gone"):
        scan.to_arrow()


def test_columns_come_in_the_order_asked_for(table: lp.PartitionedTable) -> None:
    found = table.scan("id = 5", columns=["name", "id"]).to_arrow()

    assert found.schema.names == ["name", "id"]
    assert found.to_pylist() == [{"name": "n5", "id": 5}]


def test_the_filter_may_use_columns_that_are_not_read(table: lp.PartitionedTable) -> None:
    assert table.scan("name = 'n7' AND k = 3", columns=["id"]).to_arrow().to_pylist() == [{"id": 7}]


def test_batches_add_up_to_the_table(table: lp.PartitionedTable) -> None:
    batches = list(table.scan("id >= 10").to_batches())

    assert pa.Table.from_batches(batches) == table.scan("id >= 10").to_arrow()
    assert sum(batch.num_rows for batch in batches) == 90


def test_the_same_scan_can_be_read_again(table: lp.PartitionedTable) -> None:
    scan = table.scan("k = 2")

    assert scan.to_arrow() == scan.to_arrow()
    assert scan.count() == scan.to_arrow().num_rows == 25


def test_to_pandas(table: lp.PartitionedTable) -> None:
    frame = table.scan("id < 3", columns=["id", "name"]).to_pandas().sort_values("id")

    assert frame["name"].tolist() == ["n0", "n1", "n2"]


@pytest.mark.parametrize("limit", [0, 1, 7, 25, 26, 100, 1000, np.int64(3)])
@pytest.mark.parametrize("where", [None, "id >= 50", "id + 0 >= 50"])
def test_a_limit_gives_no_more_and_no_fewer(table: lp.PartitionedTable, limit: int, where: str | None) -> None:
    matching = 100 if where is None else 50
    scan = table.scan(where, limit=limit)

    assert scan.to_arrow().num_rows == min(limit, matching)
    assert scan.count() == min(limit, matching)


def test_a_limit_stops_before_the_other_leaves_are_read(table: lp.PartitionedTable) -> None:
    first = table.scan().plan().leaves[0].location
    for directory in Path(table.root).glob("*$dataset"):
        if directory.name != first:
            shutil.rmtree(directory)

    assert table.scan(limit=10).to_arrow().num_rows == 10


def test_a_reader_that_stops_early_leaves_no_thread_behind(table: lp.PartitionedTable) -> None:
    before = threading.active_count()
    batches = table.scan().to_batches()
    next(batches)
    batches.close()

    assert threading.active_count() <= before


def test_count_without_a_filter_opens_no_leaf(table: lp.PartitionedTable) -> None:
    table.append([{"id": 100, "k": 0}, {"id": 101, "k": 9}])
    _without_leaves(table)

    assert table.scan().count() == 102
    assert table.scan(limit=5).count() == 5
    assert table.scan(columns=["id"]).count() == 102


@pytest.mark.parametrize("transactions", ["strong", "weak"])
def test_count_with_a_filter_is_right(tmp_path: Path, transactions: str) -> None:
    table = _fill(tmp_path / transactions, transactions)

    assert table.scan("k = 1").count() == 25
    assert table.scan("id < 10 AND name <> 'n3'").count() == 9
    assert table.scan("length(name) = 2").count() == 10
    assert table.scan("false").count() == 0
    assert table.scan().count() == 100


def test_the_residual_filter_is_always_applied(table: lp.PartitionedTable) -> None:
    scan = table.scan("k = 1 AND id % 8 = 1")

    assert len(scan.plan().leaves) == 1
    assert sorted(scan.to_arrow().column("id").to_pylist()) == list(range(1, 100, 8))


READER = """
import re, sys
from pathlib import Path
import lancepart as lp

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text()).group(1))

table = lp.open_table(sys.argv[1])
before, kept = peak(), []
for batch in table.scan().to_batches():
    kept = [*kept, batch] if sys.argv[2] == "all" else [batch]
print(table.scan().count(), peak() - before)
"""


@pytest.mark.slow
def test_a_table_is_read_in_a_fraction_of_its_size(tmp_path: Path) -> None:
    """Lance's memory is not Arrow's, so a process of its own says how much it ever had."""
    size, leaves, width = 512, 80, 4096
    schema = pa.schema([("k", pa.int32()), ("payload", pa.binary(width))])
    table = lp.create_table(tmp_path / "big", schema, ["k"])

    def batches() -> Iterator[pa.RecordBatch]:
        for key in range(leaves):
            noise = pa.py_buffer(np.random.default_rng(key).bytes(size * width))
            values = pa.Array.from_buffers(pa.binary(width), size, [None, noise])
            yield pa.record_batch([pa.array([key] * size, pa.int32()), values], schema=schema)

    table.append(pa.RecordBatchReader.from_batches(schema, batches()))
    whole = size * leaves * width / 1024
    grown = {}
    for kept in ("one", "all"):
        command = [sys.executable, "-c", READER, table.root, kept]
        rows, grown[kept] = map(int, subprocess.run(command, capture_output=True, check=True).stdout.split())
        assert rows == size * leaves

    assert grown["all"] > whole * 0.9, "what is held is seen"
    assert grown["one"] < grown["all"] * 0.6


BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "bad SQL": ({"where": "id = = 5"}, InvalidInputError, "invalid filter"),
    "no SQL": ({"where": ""}, InvalidInputError, "invalid filter"),
    "unknown column in the filter": ({"where": "nope = 1"}, InvalidInputError, "nope"),
    "unknown function": ({"where": "frobnicate(id)"}, InvalidInputError, "frobnicate"),
    "no condition": ({"where": "id + 1"}, InvalidInputError, "no condition"),
    "a subquery": ({"where": "id IN (SELECT 1)"}, InvalidInputError, "subqueries"),
    "not a string": ({"where": 5}, InvalidInputError, "the filter is 5"),
    "text against a number": ({"where": "k = 'x'"}, InvalidInputError, "invalid filter"),
    "unknown column": ({"columns": ["nope"]}, TableColumnNotFoundError, "'nope': the table has id, k, name"),
    "a string for columns": ({"columns": "id"}, InvalidInputError, "list of names"),
    "no columns": ({"columns": []}, InvalidInputError, "empty"),
    "a column twice": ({"columns": ["id", "id"]}, InvalidInputError, "'id' twice"),
    "negative limit": ({"limit": -1}, InvalidInputError, "from 0 up"),
    "half a row": ({"limit": 1.5}, InvalidInputError, "whole number"),
    "limit in words": ({"limit": "ten"}, InvalidInputError, "whole number"),
}


@pytest.mark.parametrize(("asked", "error", "reason"), BAD.values(), ids=BAD.keys())
def test_what_can_not_be_asked_is_refused_when_it_is_asked(
    table: lp.PartitionedTable, asked: dict[str, Any], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        table.scan(**asked)


def test_a_scan_shows_what_it_is(table: lp.PartitionedTable) -> None:
    scan = table.scan("k = 1", columns=["id"], limit=3)

    assert repr(scan) == "Scan(where='k = 1', columns=['id'], limit=3)"
    assert "&lt;" in table.scan("k < 1")._repr_html_()


def test_explain_shows_some_of_many_leaves(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "m", SCHEMA, ["k"])
    table.append([{"id": i, "k": i} for i in range(30)])

    said = table.scan().explain()

    assert said.startswith(f"snapshot {table.version}: 30 of 30 leaves")
    assert "no filter: every leaf is read" in said
    assert said.endswith("… and 10 more")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("array_has_any(l, ['x'])", [1, 2]),
        ("array_has_any(l, ['z', 'y'])", [2]),
        ("array_has_all(l, make_array('x', 'y'))", [2]),
        ("array_has_any(l, [])", []),
        ("k < 3 AND NOT array_has_any(l, ['y'])", [1]),
        ("l = ['x']", [1]),
        ("array_has_any(d, [DATE '2025-01-01'])", [1]),
        ("array_has_any(n, [2, NULL])", [1]),
        ("array_has_any(s.t, ['q''s'])", [2]),
    ],
)
def test_lists_of_values_are_taken_in_filters(tmp_path: Path, where: str, expected: list[int]) -> None:
    texts, dates = pa.list_(pa.string()), pa.list_(pa.date32())
    schema = pa.schema(
        [("k", pa.int64()), ("l", texts), ("d", dates), ("n", pa.list_(pa.int32())), ("s", pa.struct([("t", texts)]))]
    )
    table = lp.create_table(tmp_path / "t", schema, ["k"])
    rows = [
        {"k": 1, "l": ["x"], "d": [date(2025, 1, 1)], "n": [1, 2], "s": {"t": []}},
        {"k": 2, "l": ["y", "x"], "d": [], "n": [], "s": {"t": ["q's"]}},
        {"k": 3, "l": None, "d": None, "n": None, "s": None},
    ]
    table.append(pa.Table.from_pylist(rows, schema))

    assert sorted(table.scan(where).to_arrow()["k"].to_pylist()) == expected
