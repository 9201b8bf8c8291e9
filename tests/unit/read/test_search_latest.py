"""Searches of leaves without snapshots: each is read at one version, and another leaf in its place is another one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.layout.plain import PlainManifest
from lancepart.read import search_run
from lancepart.storage.root import Root
from lancepart.table.partitioned import PartitionedTable

SCHEMA = pa.schema([("id", pa.int64()), ("tenant", pa.string()), ("body", pa.string())])
OPTIONS = [{"layout": "hive"}, {"transactions": "weak"}, {}]


def _rows(words: list[str]) -> list[dict[str, Any]]:
    return [{"id": at, "tenant": "ab"[at % 2], "body": f"{word} {at}"} for at, word in enumerate(words)]


def _made(path: Path, words: list[str], **options: Any) -> lp.PartitionedTable:
    table = lp.create_table(path / "t", SCHEMA, ["tenant"], **options)
    table.append(_rows(words))
    return table


def _ids(table: lp.PartitionedTable, where: str | None = None) -> list[int]:
    return sorted(row["id"] for row in table.search("apple", "body", k=50, where=where).to_list())


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_table_that_is_made_again_in_its_place_is_searched_anew(tmp_path: Path, options: dict[str, Any]) -> None:
    table = _made(tmp_path, ["apple"] * 8, **options)
    assert _ids(table) == list(range(8))
    assert _ids(table, "id > 3") == [4, 5, 6, 7]
    lp.drop_table(tmp_path / "t")

    again = _made(tmp_path, ["pear", "pear", "apple"] * 3, **options)

    assert _ids(again) == [2, 5, 8]
    assert _ids(again, "id > 3") == [5, 8]


@pytest.mark.parametrize("where", [None, "id > 3"])
def test_a_plain_table_that_is_made_again_in_its_place_is_searched_anew(tmp_path: Path, where: str | None) -> None:
    def opened(words: list[str]) -> lp.PartitionedTable:
        rows = pa.Table.from_pylist(_rows(words), schema=SCHEMA)
        lance.write_dataset(rows, tmp_path / "plain.lance", mode="overwrite")
        return PartitionedTable(PlainManifest.at(Root(str(tmp_path)), "plain.lance"))  # type: ignore[arg-type]

    assert len(_ids(opened(["apple"] * 8), where)) == (8 if where is None else 4)
    lance.LanceDataset.drop(str(tmp_path / "plain.lance"))

    assert _ids(opened(["pear", "pear", "apple"] * 3), where) == ([2, 5, 8] if where is None else [5, 8])


@pytest.mark.parametrize("options", OPTIONS[:2], ids=str)
def test_rows_that_are_replaced_during_a_search_are_those_of_before(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _made(tmp_path, ["apple"] * 8, **options)
    index = search_run.search_text.corpus_of

    def indexed_and_replaced(*given: Any, **named: Any) -> Any:
        found = index(*given, **named)
        table.overwrite(_rows(["pear"] * 4))
        return found

    monkeypatch.setattr(search_run.search_text, "corpus_of", indexed_and_replaced)

    assert _ids(table) == list(range(8))


@pytest.mark.parametrize("options", OPTIONS[:2], ids=str)
@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda table: table.append(_rows(["pear"] * 8 + ["apple"] * 2)[8:]), [0, 1, 2, 3, 8, 9]),
        (lambda table: table.delete("id = 2"), [0, 1, 3]),
        (lambda table: table.overwrite(_rows(["pear", "apple"])), [1]),
    ],
    ids=["append", "delete", "overwrite"],
)
def test_texts_kept_in_memory_follow_leaves_without_snapshots(
    tmp_path: Path, options: dict[str, Any], change: Callable[[lp.PartitionedTable], object], left: list[int]
) -> None:
    table = _made(tmp_path, ["apple"] * 4, **options)
    assert _ids(table) == [0, 1, 2, 3]

    change(table)

    assert _ids(table) == left
    assert _ids(table, "id > 1") == [at for at in left if at > 1]


@pytest.mark.parametrize("where", ["lower(tenant) = 'a'", "CASE WHEN id > 3 THEN tenant = 'a' ELSE false END"])
def test_a_filter_after_the_ranking_leaves_out_partitions_by_their_path(tmp_path: Path, where: str) -> None:
    table = _made(tmp_path, ["apple"] * 8, layout="hive")

    found = table.search("apple", "body", k=50, where=where, prefilter=False).to_arrow()

    assert sorted(found["id"].to_pylist()) == sorted(table.scan(where).to_arrow()["id"].to_pylist())
