"""Rows are written to leaves whose columns differ, and a leaf is opened once for that."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.layout.matching import Matching

SCHEMA = pa.schema([("id", pa.int32()), ("k", pa.int32()), ("text", pa.string())])


def rows(first: int, partitions: range, **more: Any) -> list[dict[str, Any]]:
    return [{"id": first + k, "k": k, **more} for k in partitions]


def test_an_append_opens_each_leaf_once_and_matches_its_columns_once_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    table.append(rows(0, range(5), text="a"))
    table.append(rows(10, range(5), text="b"))
    opened: Counter[str] = Counter()
    matched: list[str] = []
    whole, match = lance.dataset, Matching.of

    def counted(uri: Any, *args: Any, **kwargs: Any) -> lance.LanceDataset:
        opened[str(uri)] += 1
        return whole(uri, *args, **kwargs)

    def counted_match(shape: Any, metadata: Any, leaf: str) -> Matching:
        matched.append(leaf)
        return match(shape, metadata, leaf)

    monkeypatch.setattr(lance, "dataset", counted)
    monkeypatch.setattr(Matching, "of", counted_match)
    with table.transaction() as transaction:
        for k in range(5):
            transaction.append(rows(20, range(k, k + 1), text="c"))

    leaves = {uri: count for uri, count in opened.items() if "__manifest" not in uri}
    assert sorted(leaves.values()) == [1] * 5
    assert len(matched) <= 1
    assert table.count_rows() == 15


def test_leaves_with_other_columns_each_get_rows_in_their_own(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    table.append(rows(0, range(2), text="a"))
    table.add_column(pa.field("more", pa.int64()))
    table.append(rows(10, range(2, 4), text="b", more=1))
    table.rename_column("text", "word")
    table.append(rows(20, range(4, 6), word="c", more=2))
    table.drop_column("more")
    table.add_column(pa.field("text", pa.float64()))
    table.append(rows(30, range(6, 8), word="d", text=0.5))
    table.widen_column("id", pa.int64())

    table.append(rows(2**40, range(9), word="e", text=1.5))
    table.append(rows(2**41, range(9), word="f", text=2.5))

    found = table.scan().to_arrow().sort_by("id").to_pylist()
    old = [
        *rows(0, range(2), word="a", text=None),
        *rows(10, range(2, 4), word="b", text=None),
        *rows(20, range(4, 6), word="c", text=None),
        *rows(30, range(6, 8), word="d", text=0.5),
    ]
    assert found == [*old, *rows(2**40, range(9), word="e", text=1.5), *rows(2**41, range(9), word="f", text=2.5)]


def test_two_tables_in_turn_are_not_taken_for_each_other(tmp_path: Path) -> None:
    one = lp.create_table(tmp_path / "one", SCHEMA, ["k"])
    other = lp.create_table(tmp_path / "other", pa.schema([("k", pa.int32()), ("id", pa.int64())]), ["k"])
    for number in range(3):
        one.append(rows(number * 10, range(2), text="a"))
        other.append(rows(number * 10, range(2)))

    assert sorted(one.scan().to_arrow().column("id").to_pylist()) == [0, 1, 10, 11, 20, 21]
    assert sorted(other.scan().to_arrow().column("id").to_pylist()) == [0, 1, 10, 11, 20, 21]
