"""A full-text index on disk over the whole table: exact scores through all changes, built once for all processes."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.query import BooleanQuery, MatchQuery, Occur, PhraseQuery

import lancepart as lp
from lancepart.maintain import index_upkeep
from lancepart.storage.cache import cache
from tests.support.search import assert_same_ranking, bm25, ranking

WORDS = [f"w{n}" for n in range(30)]
SCHEMA = pa.schema(
    [("id", pa.int64()), ("tenant", pa.int32()), ("body", pa.string()), ("v", pa.list_(pa.float32(), 2))]
)
QUERIES = (
    MatchQuery("w3 w7", "body"),
    MatchQuery("w31", "body", fuzziness=1),
    PhraseQuery("w1 w2", "body", slop=2),
    BooleanQuery([(Occur.MUST, MatchQuery("w1", "body")), (Occur.MUST_NOT, MatchQuery("w2", "body"))]),
)


def rows(start: int, count: int, tenants: int = 5) -> pa.Table:
    draw = np.random.default_rng(start)
    texts = [" ".join(draw.choice(WORDS, draw.integers(1, 8))) for _ in range(count)]
    values = draw.normal(size=(count, 2)).astype("f4").tolist()
    numbers = [n % tenants for n in range(count)]
    return pa.table([list(range(start, start + count)), numbers, texts, values], schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["tenant"])
    made.append(rows(0, 400))
    made.maintenance.create_index("body", "FTS", scope="table", progress=False)
    return made


def check(table: lp.PartitionedTable) -> None:
    """Scores are those of one plain table, and of the formula."""
    held = table.scan().to_arrow()
    plain = lance.write_dataset(held, "memory://")
    plain.create_scalar_index("body", "INVERTED", with_position=True)
    for where in (None, "tenant = 2", "id % 2 = 0 AND tenant < 3"):
        for query in QUERIES:
            answer = plain.scanner(columns=["id", "_score"], full_text_query=query, filter=where, prefilter=True)
            found = answer.to_table()
            known = dict(zip(found.column("id").to_pylist(), found.column("_score").to_pylist(), strict=True))
            best = table.search(query, k=15, where=where).to_arrow()
            assert_same_ranking(best, ranking(list(known), list(known.values()), 15, highest=True), "_score", known)
    counted = table.scan("tenant = 2").to_arrow()
    scores = bm25(counted.column("body").to_pylist(), "w3 w7")
    known = dict(zip(counted.column("id").to_pylist(), scores, strict=True))
    among = {number: score for number, score in known.items() if score > 0}
    own = table.search("w3 w7", "body", k=15, where="tenant = 2", statistics="partition").to_arrow()
    assert_same_ranking(own, ranking(list(among), list(among.values()), 15, highest=True), "_score", among)


def explained(table: lp.PartitionedTable) -> str:
    return next(line for line in table.search("w1", "body").explain().splitlines() if line.startswith("text:"))


def test_scores_are_exact_through_appends_deletions_compaction_and_upkeep(table: lp.PartitionedTable) -> None:
    assert explained(table) == "text: scores of the table, by the table-wide index 'body_idx'"
    check(table)
    table.append(rows(1_000, 60, tenants=8))
    assert explained(table).endswith("'body_idx', 8 newer fragments indexed in memory")
    check(table)
    assert table.maintenance.optimize_indices(progress=False).changed == 1
    assert explained(table).endswith("by the table-wide index 'body_idx'")
    check(table)

    for change in (
        lambda: table.delete("id % 9 = 4"),
        lambda: table.update({"body": "'w1 w2 w3'"}, "id = 1010"),
        lambda: table.maintenance.compact(progress=False),
    ):
        change()
        assert explained(table).endswith("by an index in memory")
        check(table)
        assert table.maintenance.optimize_indices(progress=False).changed == 1
        assert explained(table).endswith("by the table-wide index 'body_idx'")
        check(table)
    assert table.maintenance.optimize_indices(progress=False).changed == 0


def test_a_process_that_did_not_build_the_index_indexes_nothing(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.clear()

    def refuse(*_: object) -> None:
        raise AssertionError("texts are indexed in memory")

    monkeypatch.setattr("lancepart.storage.search.index_text", refuse)
    monkeypatch.setattr("lancepart.storage.search.with_text_part", refuse)
    assert len(lp.open_table(table.root).search("w3", "body", k=5).to_list()) == 5


def test_a_renamed_column_keeps_its_index_and_a_rollback_loses_no_row(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("v", "IVF_FLAT", scope="table", num_partitions=1, progress=False)
    version = table.version
    table.delete("tenant = 1 AND id > 50")
    table.maintenance.create_index("body", "FTS", scope="table", progress=False)
    check(table)
    table.maintenance.rollback(version)
    check(table)
    table.maintenance.optimize_indices(progress=False)
    table.rename_column("body", "text")
    assert "by the table-wide index" in table.search("w1", "text").explain()
    table.rename_column("text", "body")
    check(table)


def test_many_texts_get_an_index_over_the_table_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["tenant"])
    made.append(rows(0, 100))
    made.maintenance.create_index("body", "FTS", progress=False)
    assert explained(made).endswith("by an index in memory")
    monkeypatch.setattr(index_upkeep, "MANY_TEXTS", 100)
    made.maintenance.create_index("body", "FTS", progress=False)
    assert explained(made).endswith("by the table-wide index 'body_idx'")
    check(made)


def test_a_fast_search_leaves_out_texts_that_the_index_does_not_cover(table: lp.PartitionedTable) -> None:
    before = table.search("w3 w7", "body", k=50).to_list()
    table.append([{"id": 1_000, "tenant": 1, "body": "w3 w7 rare", "v": [0.0, 0.0]}])

    assert table.search("rare", "body", fast_search=True).to_list() == []
    assert table.search("w3 w7", "body", k=50, fast_search=True).to_list() == before
    assert [row["id"] for row in table.search("rare", "body").to_list()] == [1_000]
    assert "1 newer fragments left out" in table.search("rare", "body", fast_search=True).explain()
    assert "1 newer fragments indexed in memory" in explained(table)
    table.maintenance.optimize_indices(progress=False)
    assert [row["id"] for row in table.search("rare", "body", fast_search=True).to_list()] == [1_000]


def test_a_fast_search_without_an_index_on_disk_finds_all_texts(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["tenant"])
    table.append(rows(0, 50))

    found = table.search("w3", "body", k=50, fast_search=True).to_list()

    assert found == table.search("w3", "body", k=50).to_list() != []
