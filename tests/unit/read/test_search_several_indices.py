"""Columns with several indices: one of them answers, and none changes what is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.read import search_vectors
from tests.support.search import assert_same_ranking, distances, ranking

WIDTH, ROWS = 8, 700
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("t", pa.string()), ("v", pa.list_(pa.float32(), WIDTH))])
WORDS = ("run", "running", "ant", "ants", "the", "cow")


def rows(start: int, count: int) -> pa.Table:
    draw = np.random.default_rng(start)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(draw.normal(size=count * WIDTH).astype("f4")), WIDTH)
    texts = [" ".join(draw.choice(WORDS, 4)) for _ in range(count)]
    return pa.table([range(start, start + count), np.arange(count, dtype="i4") % 2, texts, vectors], schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> lp.PartitionedTable:
    for name in ("LEAF_BYTES", "UNION_BYTES", "_INDEX_BYTES"):
        monkeypatch.setattr(search_vectors, name, 0)
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    made.append(rows(0, ROWS))
    return made


@pytest.mark.parametrize("scope", ["leaf", "table"])
@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"kind": "IVF_PQ", "num_sub_vectors": 2}, {"kind": "IVF_FLAT"}),
        ({"kind": "IVF_FLAT", "metric": "cosine"}, {"kind": "IVF_FLAT"}),
    ],
    ids=["quantized", "other distance"],
)
def test_of_two_indices_on_vectors_the_one_that_a_search_needs_is_used(
    table: lp.PartitionedTable, first: dict[str, Any], later: dict[str, Any], scope: Any
) -> None:
    """Lance takes the first one; the names are in the other order, in which indices are listed."""
    for name, options in (("z", first), ("a", later)):
        table.maintenance.create_index(
            "v", scope=scope, name=name, progress=False, **{"num_partitions": 2, "metric": "l2", **options}
        )
    whole = table.search(rows(5, 1)["v"][0].as_py(), k=ROWS * 2, distance_type="l2", nprobes=2)
    assert "'a' (IVF_FLAT)" in whole.explain()
    assert sorted(whole.to_arrow()["id"].to_pylist()) == list(range(ROWS))
    table.append(rows(ROWS, 20))
    held = table.scan().to_arrow()
    vectors, ids = np.stack(held["v"].to_numpy(zero_copy_only=False)), held["id"].to_pylist()
    query = rows(ROWS, 20)["v"][3].as_py()
    for where, kept in (("true", ids), ("id % 3 = 0", [number for number in ids if number % 3 == 0])):
        every = dict(zip(ids, distances(vectors, query).tolist(), strict=True))
        known = {number: every[number] for number in kept}
        search = table.search(query, k=12, where=where, distance_type="l2")

        assert "'a' (IVF_FLAT), " in search.explain()
        assert_same_ranking(search.to_arrow(), ranking(kept, list(known.values()), 12), "_distance", known)
    fast = table.search(query, k=ROWS * 2, distance_type="l2", fast_search=True).to_arrow()
    assert sorted(fast["id"].to_pylist()) == list(range(ROWS))


def test_of_two_indices_on_texts_the_one_that_was_declared_last_says_what_words_are(
    table: lp.PartitionedTable,
) -> None:
    upkeep = table.maintenance
    upkeep.create_index("t", "FTS", scope="table", name="z", progress=False)
    table.append(rows(ROWS, 30))
    upkeep.create_index("t", "FTS", scope="table", name="a", stem=False, progress=False)
    table.append(rows(ROWS + 30, 30))

    def scores() -> list[float]:
        search = table.search("running ants", "t", k=2 * ROWS)
        partition = table.search("running ants", "t", k=2 * ROWS, statistics="partition")
        found = search.to_arrow()
        assert "table-wide index" in search.explain()
        texts = dict(
            zip(*(table.scan(columns=["id", "t"]).to_arrow()[name].to_pylist() for name in ("id", "t")), strict=True)
        )
        is_stemmed = any(not {"running", "ants"} & set(texts[number].split()) for number in found["id"].to_pylist())
        assert found["_score"].to_pylist() == pytest.approx(partition.to_arrow()["_score"].to_pylist(), rel=1e-5)
        return [found.num_rows, float(is_stemmed)]

    plain, stemmed = scores()
    assert not stemmed
    upkeep.drop_index("a", progress=False)
    more, stemmed = scores()
    assert stemmed
    assert more > plain
