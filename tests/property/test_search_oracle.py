"""Searches of fifty leaves with a history: what one plain Lance table gives, and at each moment of one snapshot."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lancepart as lp
from lancepart.read import search_vectors
from tests.support.search import assert_same_ranking, bm25, distances, ranking

pytestmark = pytest.mark.slow
DIMENSION, TENANTS = 6, 25
WORDS = [f"w{n}" for n in range(40)]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("tenant", pa.int32()),
        ("old", pa.int16()),
        ("body", pa.string()),
        ("v", pa.list_(pa.float32(), DIMENSION)),
    ]
)


def rows(start: int, count: int, schema: pa.Schema = SCHEMA) -> pa.Table:
    """Clustered vectors and texts of common and rare words."""
    draw = np.random.default_rng(start)
    centers = np.random.default_rng(1).normal(scale=3, size=(12, DIMENSION))
    vectors = (centers[draw.integers(0, 12, count)] + draw.normal(size=(count, DIMENSION))).astype("f4")
    often = 1 / np.arange(1, len(WORDS) + 1)
    texts = [" ".join(draw.choice(WORDS, draw.integers(1, 9), p=often / often.sum())) for _ in range(count)]
    columns = [
        pa.array(range(start, start + count)),
        pa.array(draw.integers(0, TENANTS, count), pa.int32()),
        pa.array(draw.integers(-9, 9, count)).cast(schema.field(2).type),
        pa.array(texts),
        pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIMENSION),
    ]
    return pa.table(columns, schema=schema)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> lp.PartitionedTable:
    """Two specs, a renamed and a widened column, deletions, indices, and rows that these do not cover."""
    made = lp.create_table(tmp_path_factory.mktemp("oracle") / "t", SCHEMA, ["tenant"])
    made.append(rows(0, 1_500))
    made.maintenance.create_index("body", "FTS", progress=False)
    made.maintenance.create_index("v", num_partitions=2, progress=False)
    made.delete("id % 11 = 3")
    made.rename_column("old", "number")
    made.widen_column("number", pa.int64())
    made.update_spec(["truncate(tenant, 5)", "bucket(id, 5)"])
    made.append(rows(10_000, 1_000, made.schema))
    made.delete("id % 13 = 5")
    assert len(made.scan().plan().leaves) >= 50
    return made


@pytest.fixture(scope="module")
def plain(table: lp.PartitionedTable) -> Any:
    held = lance.write_dataset(table.scan().to_arrow(), "memory://")
    held.create_scalar_index("body", "INVERTED", with_position=True)
    return held


@pytest.fixture(params=["memory", "read"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Leaves are searched in memory, or read."""
    if request.param == "read":
        monkeypatch.setattr(search_vectors, "LEAF_BYTES", 0)
        monkeypatch.setattr(search_vectors, "UNION_BYTES", 0)
    return str(request.param)


FILTERS = st.sampled_from(
    (None, "tenant = 3", "tenant < 9", "number > 0", "tenant IN (1, 7) AND id % 2 = 0", "id < 700", "id = -1")
)


@pytest.mark.usefixtures("way")
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 1_000),
    k=st.integers(1, 40),
    where=FILTERS,
    metric=st.sampled_from(("l2", "cosine", "dot")),
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True),
)
def test_all_kinds_of_searches_are_those_of_one_table(
    table: lp.PartitionedTable, plain: Any, seed: int, k: int, where: str | None, metric: str, words: list[str]
) -> None:
    query = np.random.default_rng(seed).normal(scale=3, size=DIMENSION).astype("f4")
    asked = {"column": "v", "q": query, "k": 5_000, "metric": metric, "use_index": False}
    near = plain.scanner(columns=["id", "_distance"], nearest=asked, filter=where, prefilter=True).to_table()
    known = dict(zip(near.column("id").to_pylist(), near.column("_distance").to_pylist(), strict=True))
    found = table.search(query, k=k, where=where, distance_type=metric, exact=True).to_arrow()
    assert_same_ranking(found, ranking(list(known), list(known.values()), k), "_distance", known)

    text = " ".join(words)
    matched = plain.scanner(
        columns=["id", "_score"], full_text_query={"query": text, "columns": ["body"]}, filter=where, prefilter=True
    ).to_table()
    scores = dict(zip(matched.column("id").to_pylist(), matched.column("_score").to_pylist(), strict=True))
    best = table.search(text, "body", k=k, where=where).to_arrow()
    assert_same_ranking(best, ranking(list(scores), list(scores.values()), k, highest=True), "_score", scores)

    both = table.search(hybrid=(query, text), column=("v", "body"), k=k, where=where, distance_type=metric, exact=True)
    _check_fused(both.to_arrow(), found, best, k)


def _check_fused(fused: pa.Table, near: pa.Table, matched: pa.Table, k: int) -> None:
    """Reciprocal ranks, computed anew from the two rankings."""
    scores: dict[int, float] = {}
    for each in (near, matched):
        for rank, number in enumerate(each.column("id").to_pylist(), 1):
            scores[number] = scores.get(number, 0.0) + 1 / (60 + rank)
    expected = sorted(scores.values(), reverse=True)[:k]
    np.testing.assert_allclose(fused.column("_relevance_score").to_numpy(), expected, rtol=1e-5)
    for number, score in zip(*(fused.column(name).to_pylist() for name in ("id", "_relevance_score")), strict=True):
        assert score == pytest.approx(scores[number], rel=1e-5)


def test_scores_agree_with_the_formula_over_the_table_and_over_a_partition(table: lp.PartitionedTable) -> None:
    searched = "(id < 10000 AND tenant = 2) OR (id >= 10000 AND tenant < 5)"
    for where, statistics, counted in (
        (None, "table", None),
        ("tenant = 2", "table", None),
        ("tenant = 2", "partition", searched),
    ):
        held = table.scan(counted).to_arrow()
        scores = dict(zip(held.column("id").to_pylist(), bm25(held.column("body").to_pylist(), "w3 w17"), strict=True))
        shown = table.scan(where).to_arrow().column("id").to_pylist()
        among = {number: scores[number] for number in shown if scores[number] > 0}
        found = table.search("w3 w17", "body", k=20, where=where, statistics=statistics).to_arrow()
        assert_same_ranking(found, ranking(list(among), list(among.values()), 20, highest=True), "_score", among)


def test_recall_with_defaults_is_high_on_clustered_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["truncate(tenant, 12)"])
    made.append(rows(0, 20_000))
    monkeypatch.setattr(search_vectors, "LEAF_BYTES", 0)
    monkeypatch.setattr(search_vectors, "UNION_BYTES", 0)
    monkeypatch.setattr(search_vectors, "_INDEX_BYTES", 0)
    made.maintenance.create_index("v", progress=False)
    query = [0.0] * DIMENSION
    assert "index 'v_idx'" in made.search(query).explain()
    assert made.search(query, k=10).recall(50) >= 0.95
    assert made.search(query, k=10, where="tenant < 12").recall(50) >= 0.95

    made.maintenance.create_index("v", scope="table", name="whole", progress=False)

    assert "table-wide index 'whole'" in made.search(query).explain()
    assert made.search(query, k=10).recall(50) >= 0.95


@pytest.mark.parametrize("where", [None, "tenant = 7"])
def test_recall_with_defaults_is_at_least_that_of_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str | None
) -> None:
    held = rows(0, 30_000)
    made = lp.create_table(tmp_path / "t", SCHEMA, ["truncate(tenant, 12)"])
    made.append(held)
    plain = lance.write_dataset(held, tmp_path / "plain.lance")
    for name in ("LEAF_BYTES", "UNION_BYTES", "_INDEX_BYTES"):
        monkeypatch.setattr(search_vectors, name, 0)
    made.maintenance.create_index("v", progress=False)
    made.maintenance.create_index("v", scope="table", name="whole", progress=False)
    plain.create_index("v", "IVF_FLAT", num_partitions=round(len(held) ** 0.5))
    plain.create_scalar_index("tenant", "BITMAP")
    kept = made.scan(where).to_arrow()
    vectors = np.stack(kept.column("v").to_numpy(zero_copy_only=False))
    ours, theirs = [], []
    for query in vectors[:: len(vectors) // 60]:
        last = np.sort(distances(vectors, query))[9] + 1e-4
        nearest = {"column": "v", "q": query, "k": 10, "nprobes": 20}
        other = plain.scanner(columns=["_distance"], nearest=nearest, filter=where, prefilter=True).to_table()
        own = made.search(query, k=10, where=where, columns=["id"]).to_arrow()
        for found, shares in ((own, ours), (other, theirs)):
            shares.append(np.count_nonzero(found.column("_distance").to_numpy() <= last) / 10)

    assert np.mean(ours) >= max(0.95, np.mean(theirs) - 0.005)


def test_searches_beside_writers_and_upkeep_are_each_of_one_snapshot(tmp_path: Path) -> None:
    """Every commit moves all rows of one generation to the next and adds some, so that a mixture would show."""
    made = lp.create_table(tmp_path / "t", SCHEMA, ["tenant"])
    made.append(rows(0, 300).set_column(2, SCHEMA.field(2), pa.array([0] * 300, pa.int16())))
    made.maintenance.create_index("v", scope="table", num_partitions=2, progress=False)
    made.maintenance.create_index("body", "FTS", scope="table", progress=False)
    over, faults = threading.Event(), []

    def search() -> None:
        table = lp.open_table(made.root)
        while not over.is_set():
            try:
                near = table.search([0.0] * DIMENSION, k=400, columns=["id", "old"]).to_arrow()
                texts = table.search("w0 w1 w2", "body", k=400, columns=["id", "old"]).to_arrow()
                for found in (near, texts):
                    assert len(set(found.column("old").to_pylist())) <= 1
                generation = near.column("old")[0].as_py()
                assert sorted(near.column("id").to_pylist()) == list(range(300 + 5 * generation))
            except BaseException as error:
                faults.append(error)
                return

    threads = [threading.Thread(target=search) for _ in range(3)]
    for each in threads:
        each.start()
    try:
        for generation in range(1, 5):
            fresh = rows(295 + 5 * generation, 5).set_column(2, SCHEMA.field(2), pa.array([generation] * 5, pa.int16()))
            with made.transaction() as tx:
                tx.update({"old": str(generation)}, "true")
                tx.append(fresh)
            if generation % 2:
                made.maintenance.compact(progress=False)
                made.maintenance.optimize_indices(progress=False)
            else:
                made.maintenance.create_index("body", "FTS", scope="table", progress=False)
            made.maintenance.expire(timedelta(hours=2), progress=False)
    finally:
        over.set()
        for each in threads:
            each.join()
    assert not faults, faults[0]


def test_distances_of_vectors_kept_in_memory_are_exact(table: lp.PartitionedTable) -> None:
    held = table.scan().to_arrow()
    vectors = np.stack(held.column("v").to_numpy(zero_copy_only=False))
    ids = held.column("id").to_pylist()
    for metric in ("l2", "cosine", "dot"):
        for query in vectors[::500]:
            known = dict(zip(ids, distances(vectors, query, metric).tolist(), strict=True))
            found = table.search(query, k=25, distance_type=metric).to_arrow()
            assert_same_ranking(found, ranking(ids, list(known.values()), 25), "_distance", known)
