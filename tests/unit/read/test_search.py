"""Searches over leaves: the rows, order and values of one table, whatever the leaves look like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from lance.query import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    FullTextOperator,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)

import lancepart as lp
from lancepart.errors import InvalidInputError, TableColumnNotFoundError
from lancepart.read import search_text
from lancepart.read.search_request import TextQuery
from tests.support.search import assert_same_ranking, bm25, distances, ranking

DIMENSION, ROWS = 4, 240
WORDS = ["ant", "bee", "cow", "dog", "elk", "fox", "gnu", "hen", "owl", "yak"]
VECTOR = pa.list_(pa.float32(), DIMENSION)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("tenant", pa.string()),
        ("size", pa.int32()),
        ("title", pa.string()),
        ("body", pa.string()),
        ("v", VECTOR),
    ]
)


def _rows(ids: range, seed: int = 3) -> pa.Table:
    draw = np.random.default_rng([seed, ids.start])
    vectors = draw.integers(-3, 4, (len(ids), DIMENSION)).astype(np.float32)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "tenant": [f"t{at % 7}" for at in ids],
            "size": pa.array([at % 11 for at in ids], pa.int32()),
            "title": [" ".join(draw.choice(WORDS, 2)) for _ in ids],
            "body": [" ".join(draw.choice(WORDS, int(draw.integers(1, 9)))) if at % 13 else None for at in ids],
            "v": pa.array([row if at % 17 else None for at, row in zip(ids, vectors, strict=True)], VECTOR),
        },
        schema=SCHEMA,
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> lp.PartitionedTable:
    """Leaves of two specs, some under an older name and type of a column, with deletions and fragments since."""
    made = lp.create_table(tmp_path_factory.mktemp("search") / "t", SCHEMA, ["tenant"])
    made.append(_rows(range(0, 100)))
    made.delete("id % 10 = 3")
    made.update_spec(["bucket(id, 3)"])
    made.rename_column("body", "content")
    made.widen_column("size", pa.int64())
    made.append(_renamed(_rows(range(100, 200))))
    made.append(_renamed(_rows(range(200, ROWS))))
    made.delete("id % 10 = 4 AND id > 150")
    return made


def _renamed(rows: pa.Table) -> pa.Table:
    return rows.rename_columns(["content" if name == "body" else name for name in rows.schema.names])


@pytest.fixture(scope="module")
def rows(table: lp.PartitionedTable) -> pa.Table:
    return table.scan().to_arrow().sort_by("id")


@pytest.fixture(scope="module")
def plain(rows: pa.Table) -> Any:
    """The same rows in one Lance table."""
    made = lance.write_dataset(rows, "memory://")
    for name in ("title", "content"):
        made.create_scalar_index(name, "INVERTED", with_position=True)
    return made


FILTERS = [None, "tenant = 't3'", "size > 4", "tenant IN ('t1', 't2') AND size < 9", "id % 3 = 1 OR title LIKE 'a%'"]


@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_the_nearest_rows_are_those_of_one_table(
    table: lp.PartitionedTable, rows: pa.Table, where: str | None, metric: str
) -> None:
    query = [0.5, -1.0, 2.0, 0.25]
    kept = (table.scan(where).to_arrow() if where else rows).filter(pa.compute.field("v").is_valid())
    held = np.stack(kept.column("v").to_pylist())
    usable = kept if metric != "cosine" else kept.filter(pa.array(np.abs(held).sum(axis=1) > 0))
    true = distances(np.stack(usable.column("v").to_pylist()), query, metric)
    ids = usable.column("id").to_pylist()

    found = table.search(query, k=15, where=where, distance_type=metric).to_arrow()

    assert_same_ranking(found, ranking(ids, true, 15), "_distance", dict(zip(ids, true, strict=True)))


@pytest.mark.parametrize("where", FILTERS)
def test_scores_are_those_of_one_table(table: lp.PartitionedTable, rows: pa.Table, where: str | None) -> None:
    scores = dict(zip(rows.column("id").to_pylist(), bm25(rows.column("content").to_pylist(), "ant fox"), strict=True))
    ids = [number for number in table.scan(where).to_arrow().column("id").to_pylist() if scores[number] > 0]
    expected = ranking(ids, [scores[number] for number in ids], 12, highest=True)

    found = table.search("ant fox", "content", k=12, where=where).to_arrow()

    assert_same_ranking(found, expected, "_score", scores)


def test_scores_can_be_those_of_the_partitions_searched(table: lp.PartitionedTable, rows: pa.Table) -> None:
    where = "tenant = 't3' AND size > 2"
    leaves = {leaf.object_id for leaf in table.scan(where).plan().leaves}
    assert 1 < len(leaves) < len(table.scan().plan().leaves)
    among = _rows_of(table, leaves)
    scores = dict(
        zip(among.column("id").to_pylist(), bm25(among.column("content").to_pylist(), "ant fox"), strict=True)
    )

    found = table.search("ant fox", "content", k=50, where=where, statistics="partition").to_arrow()

    assert found.num_rows
    for row in found.to_pylist():
        assert row["_score"] == pytest.approx(scores[row["id"]], rel=1e-5)


def _rows_of(table: lp.PartitionedTable, leaves: set[str]) -> pa.Table:
    scan = table.scan()
    from lancepart.read import leaf as reading

    tasks = [scan.task_of(leaf) for leaf in scan.plan().leaves if leaf.object_id in leaves]
    return pa.Table.from_batches([batch for task in tasks for batch in reading.read(task)], schema=scan.schema)


QUERIES = [
    MatchQuery("ant fox", "content", operator=FullTextOperator.AND),
    MatchQuery("ants foxx", "content", fuzziness=1),
    MatchQuery("ant", "content", boost=2.0),
    PhraseQuery("ant fox", "content"),
    PhraseQuery("ant fox", "content", slop=2),
    MultiMatchQuery("ant fox", ["title", "content"], boosts=[3.0, 1.0]),
    BooleanQuery([(Occur.MUST, MatchQuery("ant", "content")), (Occur.MUST_NOT, MatchQuery("fox", "title"))]),
    BoostQuery(MatchQuery("ant", "title"), MatchQuery("fox", "content"), negative_boost=0.3),
    CombinedFieldsQuery("ant fox", ["title", "content"]),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.query_type().value)
@pytest.mark.parametrize("where", [None, "size > 4"])
def test_every_kind_of_text_query_scores_as_in_one_table(
    table: lp.PartitionedTable, plain: Any, query: Any, where: str | None
) -> None:
    answer = plain.scanner(columns=["id", "_score"], full_text_query=query, filter=where, prefilter=True).to_table()
    scores = dict(zip(answer.column("id").to_pylist(), answer.column("_score").to_pylist(), strict=True))
    expected = ranking(list(scores), list(scores.values()), 9, highest=True)

    found = table.search(query, k=9, where=where).to_arrow()

    assert_same_ranking(found, expected, "_score", scores)


def test_ties_are_stable(table: lp.PartitionedTable) -> None:
    whole = table.search([0.0] * DIMENSION, k=ROWS, columns=["id"]).to_list()
    words = table.search("ant", "title", k=ROWS, columns=["id"]).to_list()

    for k in (1, 5, 17):
        assert table.search([0.0] * DIMENSION, k=k, columns=["id"]).to_list() == whole[:k]
        assert table.search("ant", "title", k=k, columns=["id"]).to_list() == words[:k]
        assert table.search("ant", "title", k=k, offset=3, columns=["id"]).to_list() == words[3 : 3 + k]
        assert table.search([0.0] * DIMENSION, k=k, offset=3, columns=["id"]).to_list() == whole[3 : 3 + k]


def test_never_fewer_rows_than_exist(table: lp.PartitionedTable, rows: pa.Table) -> None:
    with_vectors = len(rows) - rows.column("v").null_count

    assert table.search([1.0] * DIMENSION, k=10 * ROWS).to_arrow().num_rows == with_vectors
    assert table.search([1.0] * DIMENSION, where="id = 7", columns=["id"]).to_arrow().column("id").to_pylist() == [7]


def test_a_batch_is_as_many_searches(table: lp.PartitionedTable) -> None:
    queries = np.array([[1, 0, 0, 0], [0, 2, 0, -1]], np.float32)

    together = table.search(queries, k=4, where="size < 8", columns=["id"]).to_list()

    alone = [
        {"_query_index": at, **row}
        for at, query in enumerate(queries)
        for row in table.search(query, k=4, where="size < 8", columns=["id"]).to_list()
    ]
    assert together == alone


@pytest.mark.parametrize(
    "query",
    [
        [1, 2, 3, 4],
        (1.0, 2.0, 3.0, 4.0),
        np.array([1, 2, 3, 4], np.float64),
        np.array([1, 2, 3, 4], np.float16),
        np.array([[1, 9], [2, 9], [3, 9], [4, 9]], np.int8)[:, 0],
        pa.array([1.0, 2.0, 3.0, 4.0], pa.float32()),
        pa.chunked_array([[1, 2], [3, 4]]),
        pa.scalar([1.0, 2.0, 3.0, 4.0], pa.list_(pa.float32(), 4)),
    ],
    ids=lambda query: f"{type(query).__name__}-{getattr(query, 'dtype', '')}",
)
def test_a_vector_comes_as_whatever_holds_numbers(table: lp.PartitionedTable, query: Any) -> None:
    assert table.search(query, columns=["id"]).to_list() == table.search([1.0, 2, 3, 4], columns=["id"]).to_list()


class _Tensor:
    """What torch's tensors have: numbers, on a device, with a gradient."""

    def detach(self) -> _Tensor:
        return self

    def cpu(self) -> _Tensor:
        return self

    def numpy(self) -> Any:
        return np.ones(4, np.float32)


class _DLPack:
    """What tensors of other libraries have."""

    def __dlpack__(self, **options: Any) -> Any:
        return np.ones(4, np.float32).__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return np.ones(4).__dlpack_device__()


class _Array:
    """What libraries have that know numpy."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.ones(4, dtype or np.float32)


class _Capsule:
    """What has Arrow inside."""

    def __arrow_c_array__(self, schema: object = None) -> Any:
        return pa.array([1.0] * 4).__arrow_c_array__(schema)


@pytest.mark.parametrize("kind", [_Tensor, _DLPack, _Array, _Capsule])
def test_a_tensor_is_a_vector(table: lp.PartitionedTable, kind: Any) -> None:
    assert table.search(kind(), columns=["id"]).to_list() == table.search([1] * 4, columns=["id"]).to_list()


@pytest.mark.parametrize(
    "batch",
    [
        [_Tensor(), _Tensor()],
        [_DLPack(), _DLPack()],
        [np.ones(4), [1] * 4],
        pd.Series([np.ones(4), np.ones(4)]),
        pd.Series([[1] * 4, [1] * 4]),
        pd.DataFrame([[1] * 4, [1] * 4]),
        pl.Series([[1.0] * 4, [1.0] * 4]),
        pl.Series([[1.0] * 4, [1.0] * 4], dtype=pl.Array(pl.Float32, 4)),
        pl.DataFrame(np.ones((2, 4))),
        pa.array([[1.0] * 4, [1.0] * 4]),
    ],
    ids=lambda batch: f"{type(batch).__module__.split('.')[0]}-{type(batch).__name__}",
)
def test_a_batch_comes_as_whatever_holds_vectors(table: lp.PartitionedTable, batch: Any) -> None:
    expected = table.search(np.ones((2, 4)), k=3, columns=["id"]).to_list()
    assert table.search(batch, k=3, columns=["id"]).to_list() == expected


def test_a_range_of_distances(table: lp.PartitionedTable) -> None:
    found = table.search([0.0] * DIMENSION, k=ROWS, distance_range=(3.0, 10.0)).to_arrow().column("_distance")

    assert len(found)
    assert 3.0 <= min(found.to_pylist()) <= max(found.to_pylist()) < 10.0


def test_a_filter_after_the_ranking_leaves_fewer_rows(table: lp.PartitionedTable) -> None:
    best = table.search([1.0] * DIMENSION, k=30, columns=["id", "size"]).to_list()

    found = table.search([1.0] * DIMENSION, k=30, where="size > 4", prefilter=False, columns=["id", "size"]).to_list()

    assert found == [row for row in best if row["size"] > 4]


def test_hybrid_ranks_by_reciprocal_rank(table: lp.PartitionedTable) -> None:
    vector, text = [1.0, 0.0, 0.0, 2.0], "ant fox"
    near = [row["id"] for row in table.search(vector, k=8, columns=["id"]).to_list()]
    matched = [row["id"] for row in table.search(text, "content", k=8, columns=["id"]).to_list()]
    scores = {
        number: sum(1 / (61 + ids.index(number)) for ids in (near, matched) if number in ids)
        for number in near + matched
    }

    found = table.search(hybrid=(vector, text), column=("v", "content"), k=8, columns=["id"]).to_list()

    assert [row["_relevance_score"] for row in found] == pytest.approx(sorted(scores.values(), reverse=True)[:8])
    assert all(row["_relevance_score"] == pytest.approx(scores[row["id"]]) for row in found)


@pytest.mark.parametrize("name", ["RRFReranker", "LinearCombinationReranker", "MRRReranker"])
def test_rerankers_of_lancedb_work_as_they_are(table: lp.PartitionedTable, name: str) -> None:
    rerankers = pytest.importorskip("lancedb.rerankers")

    found = table.search(
        hybrid=([1.0, 0, 0, 2], "ant"), column=("v", "title"), k=5, reranker=getattr(rerankers, name)()
    ).to_arrow()

    scores = found.column("_relevance_score").to_pylist()
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)


def test_a_search_stays_at_its_snapshot(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["tenant"])
    table.append(_rows(range(20)))
    before = table.search([1.0] * DIMENSION, k=40, columns=["id"])
    words = table.search("ant", "title", k=40, columns=["id"])
    old, old_words = before.to_list(), words.to_list()

    table.append(_rows(range(20, 40)))
    table.delete("id < 5")

    assert before.to_list() == old
    assert words.to_list() == old_words
    assert len(table.search([1.0] * DIMENSION, k=40).to_list()) != len(old)
    assert {row["id"] for row in table.search("ant", "title", k=40).to_list()} - set(range(5, 40)) == set()


@pytest.mark.slow
@pytest.mark.parametrize("transactions", ["strong", "weak"])
@pytest.mark.parametrize("layout", ["manifest", "hive"])
def test_every_layout_is_searched(tmp_path: Path, transactions: str, layout: str) -> None:
    if (transactions, layout) == ("weak", "hive"):
        pytest.skip("a Hive-style table has no transactions")
    table = lp.create_table(tmp_path / "t", SCHEMA, ["tenant"], transactions=transactions, layout=layout)
    rows = _rows(range(30))
    table.append(rows)
    held = rows.filter(pa.compute.field("v").is_valid())
    true = distances(np.stack(held.column("v").to_pylist()), [1] * 4)
    ids = held.column("id").to_pylist()

    found = table.search([1] * 4, k=9).to_arrow()
    words = table.search("ant", "title", k=30, where="tenant = 't2'").to_arrow()

    assert_same_ranking(found, ranking(ids, true, 9), "_distance", dict(zip(ids, true, strict=True)))
    scores = bm25(rows.column("title").to_pylist(), "ant")
    assert {row["id"]: pytest.approx(row["_score"]) for row in words.to_pylist()} == {
        at: scores[at] for at in range(30) if scores[at] > 0 and at % 7 == 2
    }


def test_what_is_wrong_is_said(table: lp.PartitionedTable) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"query": [1.0]}, "has 1 numbers, and column 'v' holds vectors of 4"),
        ({"query": [1.0, float("nan"), 0, 0]}, "NaN"),
        ({"query": object()}, "give a vector"),
        ({"query": "ant"}, "3 columns of text: it has tenant, title, content"),
        ({"query": "ant", "column": "size"}, "does not hold text"),
        ({"query": " ", "column": "title"}, "the text to search for is empty"),
        ({"query": [1] * 4, "column": "title"}, "does not hold vectors"),
        ({"query": [1] * 4, "k": 0}, "k is 0"),
        ({"query": [1] * 4, "k": True}, "k is True"),
        ({"query": [1] * 4, "offset": -1}, "offset is -1"),
        ({"query": [1] * 4, "distance_type": "far"}, "use one of l2, cosine"),
        ({"query": [1] * 4, "nprobes": 3, "minimum_nprobes": 2}, "nprobes sets"),
        ({"query": [1] * 4, "exact": True, "fast_search": True}, "exact uses no index"),
        ({"query": [1] * 4, "minimum_nprobes": 5, "maximum_nprobes": 2}, "less than the minimum"),
        ({"query": [1] * 4, "distance_range": 3}, "distance_range is 3"),
        ({"query": [1] * 4, "statistics": "tenant"}, "use 'table' or 'partition'"),
        ({"query": [1] * 4, "limit": 3}, "no option 'limit'"),
        ({"query": "ant", "column": "title", "nprobes": 3}, "nprobes is about vectors"),
        ({"query": [1] * 4, "reranker": object()}, "two rankings"),
        ({}, "give a query, or hybrid"),
        ({"hybrid": ([1] * 4,)}, "a pair of a vector and a text"),
        ({"hybrid": ([1] * 4, "ant"), "column": "v"}, "needs two columns"),
        ({"hybrid": ([[1] * 4], "ant"), "column": ("v", "title")}, "one vector, not a batch"),
        ({"hybrid": ([1] * 4, "ant"), "column": ("v", "title"), "reranker": object()}, "rerank_hybrid"),
    ]
    for arguments, message in wrong:
        with pytest.raises(InvalidInputError, match=message):
            table.search(**arguments)
    with pytest.raises(TableColumnNotFoundError, match="there is no column 'vec'"):
        table.search([1] * 4, "vec")


def test_a_plan_tells_what_is_searched(table: lp.PartitionedTable) -> None:
    told = table.search([1] * 4, where="tenant = 't3' AND id < 100").explain()

    assert "vectors: l2 distance" in told
    assert "flat, " in told
    assert "dropped" in told
    assert table.search([1] * 4, where="tenant = 't3'").recall(5) == 1.0


@pytest.mark.parametrize("where", [None, "id < 0"])
def test_rows_come_in_the_schema_that_a_search_shows(table: lp.PartitionedTable, where: str | None) -> None:
    vector, text = [1.0] * 4, "apple"
    for query, named in (
        (vector, {"column": "v"}),
        ([vector, vector], {"column": "v"}),
        (text, {"column": "content"}),
        (None, {"column": ("v", "content"), "hybrid": (vector, text)}),
    ):
        search = table.search(query, where=where, with_row_id=True, **named)
        assert search.to_arrow().schema.equals(search.schema)


def test_row_ids_of_a_search_are_those_that_take_knows(table: lp.PartitionedTable) -> None:
    for search in (
        table.search([1] * 4, k=3, columns=["id"], with_row_id=True),
        table.search("ant", "title", k=3, columns=["id"], with_row_id=True),
        table.search(hybrid=([1] * 4, "ant"), column=("v", "title"), k=3, columns=["id"], with_row_id=True),
    ):
        found = search.to_arrow()
        assert found.schema.names == search.schema.names
        assert table.take(found.column("_rowid"), columns=["id"]).column("id").equals(found.column("id"))


def test_a_warm_search_reads_nothing_more(table: lp.PartitionedTable) -> None:
    held = table.warm()
    assert held > 0
    table.search([1] * 4, columns=["id"]).to_arrow()
    assert table.warm() >= held
    with pytest.raises(TableColumnNotFoundError, match="no column 'nope'"):
        table.warm(columns=["nope"])


def test_texts_that_are_added_are_indexed_alone_and_scored_as_in_one_table(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("k", pa.string()), ("t", pa.string())])
    table = lp.create_table(tmp_path / "added", schema, ["k"])
    draw = np.random.default_rng(4)

    def add(start: int, count: int, leaves: str) -> None:
        texts = [" ".join(f"w{n}" for n in draw.integers(0, 12, 5)) for _ in range(count)]
        table.append([{"id": start + n, "k": leaves[n % len(leaves)], "t": text} for n, text in enumerate(texts)])

    def check(parts: int) -> None:
        held = table.scan().to_arrow()
        scores = dict(zip(held.column("id").to_pylist(), bm25(held.column("t").to_pylist(), "w3 w7"), strict=True))
        for where in (None, "k = 'a'"):
            shown = [n for n in table.scan(where).to_arrow().column("id").to_pylist() if scores[n] > 0]
            search = table.search("w3 w7", "t", k=8, where=where)
            best = ranking(shown, [scores[n] for n in shown], 8, highest=True)
            assert_same_ranking(search.to_arrow(), best, "_score", scores)
        corpus = search_text.corpus_of(search._run.counted, TextQuery(query="", columns=("t",)), {})
        assert len(corpus.starts) == parts

    add(0, 100, "abcd")
    check(1)
    add(100, 10, "b")
    check(2)
    add(110, 12, "aaz")
    check(3)
    table.delete("id = 5")
    check(1)
    add(122, 4, "d")
    check(2)
    table.maintenance.compact(progress=False)
    check(1)


def test_wrong_text_queries_are_refused_by_name(table: lp.PartitionedTable) -> None:
    with pytest.raises(InvalidInputError, match="nowhere"):
        table.search(MatchQuery("red", "nowhere"))
    with pytest.raises(InvalidInputError, match="at least one should/must"):
        table.search(BooleanQuery([(Occur.MUST_NOT, MatchQuery("red", "title"))]))
    with pytest.raises(InvalidInputError, match="give finite numbers"):
        table.search([1e300] * DIMENSION, "v")


def test_a_query_asks_only_the_columns_that_it_names(tmp_path: Path) -> None:
    schema = pa.schema([("t", pa.string()), ("body", pa.string())])
    made = lp.create_table(tmp_path / "t", schema, ["t"])
    for query, columns in (
        (MatchQuery("red t", "body"), ("body",)),
        (PhraseQuery("red", "t"), ("t",)),
        (MultiMatchQuery("red", ["t", "body"]), ("t", "body")),
        (BoostQuery(MatchQuery("red", "body"), MatchQuery("blue", "t")), ("t", "body")),
    ):
        assert made.search(query).text.columns == columns  # type: ignore[union-attr]
    assert made.search("red", "body").to_list() == []


def test_the_recall_of_no_rows_is_whole(tmp_path: Path) -> None:
    made = lp.create_table(tmp_path / "t", pa.schema([("k", pa.int32()), ("v", pa.list_(pa.float32(), 2))]), ["k"])
    assert made.search([0.0, 0.0]).recall(3) == 1.0


def test_a_text_is_found_in_the_column_that_has_the_name_now(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.int64()), ("text", pa.string()), ("note", pa.string())])
    table = lp.create_table(tmp_path / "t", schema, ["k"])
    table.append([{"k": number % 2, "text": f"apple {number}", "note": f"pear {number}"} for number in range(6)])
    assert table.search("apple", "text").count() == 6
    for name, new in (("text", "other"), ("note", "text"), ("other", "note")):
        table.rename_column(name, new)

    assert table.search("apple", "text").count() == 0
    assert table.search("pear", "text").count() == 6
    table.drop_column("text")
    table.add_column(pa.field("text", pa.string()))
    assert table.search("pear", "text").count() == 0


def test_searches_that_are_repeated_show_the_same_rows_from_one_block_of_all_leaves(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["tenant"])
    table.append(_rows(range(0, 200)))
    table.delete("id % 9 = 2")
    seen = []
    for at in range(12):
        if at == 6:
            table.append(_rows(range(200, 230)))
            table.delete("id = 35")
        query = np.array([at % 3, 1.5, -0.25, 0.125])
        found = table.search(query, "v", 30, columns=["size", "id"]).to_arrow()
        rows = table.scan().to_arrow().sort_by("id")
        held = rows.filter(rows.column("v").is_valid())
        true = distances(held.column("v").to_pylist(), query)
        near = dict(zip(held.column("id").to_pylist(), true, strict=True))
        np.testing.assert_allclose(found.column("_distance").to_numpy(), np.sort(true)[:30], rtol=1e-6)
        np.testing.assert_allclose([near[key] for key in found.column("id").to_pylist()], np.sort(true)[:30], rtol=1e-6)
        own = dict(zip(rows.column("id").to_pylist(), rows.column("size").to_pylist(), strict=True))
        assert [own[key] for key in found.column("id").to_pylist()] == found.column("size").to_pylist()
        seen.append(found.schema.names)
    assert {tuple(names) for names in seen} == {("size", "id", "_distance")}


def test_texts_of_the_same_partitions_are_found_again_after_a_change(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["tenant"])
    table.append(_rows(range(0, 140)))
    for last in (140, 160, 180):
        for where in ("tenant = 't1'", "tenant IN ('t2', 't5')", None):
            for _ in range(2):
                found = table.search("bee owl", "body", 500, where, ["id", "tenant"]).to_arrow()
                words = "body LIKE '%bee%' OR body LIKE '%owl%'"
                expected = table.scan(words if where is None else f"({where}) AND ({words})", ["id"]).to_arrow()
                assert sorted(found.column("id").to_pylist()) == sorted(expected.column("id").to_pylist())
        table.append(_rows(range(last, last + 20)))
