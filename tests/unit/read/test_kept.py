"""What a filter kept decides how Lance reads the next leaf: other ways, and the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.format.records import Stats
from lancepart.read import kept, leaf

KEY = ("root", "x > 1")


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    schema = pa.schema([("k", pa.int64()), ("x", pa.int64()), ("text", pa.string())])
    made = lp.create_table(tmp_path / "t", schema, ["k"])
    made.append([{"k": n % 4, "x": n, "text": f"text {n}"} for n in range(4_000)])
    return made


def batches(*rows: int) -> Iterator[pa.RecordBatch]:
    return iter([pa.record_batch({"x": list(range(each))}) for each in rows])


def test_a_share_is_remembered_when_all_rows_were_read(table: lp.PartitionedTable) -> None:
    own = table.scan().plan().leaves[0]
    known = kept.KeptShares()
    assert not known.keeps_many(KEY, own)
    stopped = known.counted(batches(500, 500), KEY, own, None)
    next(stopped)
    stopped.close()  # type: ignore[attr-defined]
    assert not known.keeps_many(KEY, own), "nothing is known of what was not read to its end"
    list(known.counted(batches(60, 60), KEY, own, None))
    assert known.keeps_many(KEY, own)
    list(known.counted(batches(60), KEY, own, None))
    assert not known.keeps_many(KEY, own), "60 of 1,000 rows are few"


def test_wide_rows_are_left_to_lance(table: lp.PartitionedTable) -> None:
    own = table.scan().plan().leaves[0]
    known = kept.KeptShares()
    list(known.counted(batches(900), KEY, own, None))
    assert known.keeps_many(KEY, own)
    assert not known.keeps_many(KEY, replace(own, stats=Stats(rows=1_000, bytes=1_000_000, fragments=1)))
    assert not known.keeps_many(KEY, replace(own, stats=None))


def test_few_filters_are_remembered(table: lp.PartitionedTable) -> None:
    own = table.scan().plan().leaves[0]
    known = kept.KeptShares(most=2)
    for n in range(3):
        list(known.counted(batches(900), ("root", str(n)), own, None))
    assert [known.keeps_many(("root", str(n)), own) for n in range(3)] == [False, True, True]


@pytest.mark.parametrize(("where", "many"), [("x >= 400", True), ("x < 40", False), ("text LIKE 'text 1%'", True)])
def test_the_next_leaves_are_read_early_and_have_the_same_rows(
    table: lp.PartitionedTable, where: str, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool | None] = []
    plain = leaf.scanned

    def scanned(*given: Any, late: bool | None = None) -> Iterator[pa.RecordBatch]:
        asked.append(late)
        return plain(*given, late=late)

    monkeypatch.setattr(leaf, "scanned", scanned)
    monkeypatch.setattr(leaf, "KEPT", kept.KeptShares())

    def rows() -> list[tuple[int, str]]:
        tasks = table.scan(where, columns=["x", "text"]).tasks()
        found = [row for task in tasks for batch in leaf.read(task) for row in batch.to_pylist()]
        return sorted((row["x"], row["text"]) for row in found)

    first, second = rows(), rows()
    assert first == second
    assert [number for number, _ in first] == table.scan(where).to_arrow().sort_by("x")["x"].to_pylist()
    assert asked[0] is None
    assert (asked[-1] is False) is many
