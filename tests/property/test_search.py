"""Searches of random tables: the rows, order and values that one plain Lance table gives for the same rows."""

from __future__ import annotations

import tempfile
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance.query import BooleanQuery, FullTextOperator, MatchQuery, MultiMatchQuery, Occur, PhraseQuery

import lancepart as lp
from tests.support.search import assert_same_ranking, ranking

WORDS = ("ant", "bee", "cow", "dog", "the", "running", "Äpfel", "x1")
DIMENSION = 3
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("tenant", pa.string()),
        ("old", pa.int16()),
        ("title", pa.string()),
        ("text", pa.string()),
        ("v", pa.list_(pa.float32(), DIMENSION)),
    ]
)
TEXTS = st.one_of(st.none(), st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join))
VECTORS = st.one_of(
    st.none(),
    st.lists(st.sampled_from((-2.0, -1.0, 0.0, 0.5, 1.0, 3.0)), min_size=DIMENSION, max_size=DIMENSION),
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "tenant": st.sampled_from(("a", "b", "c", None)),
            "old": st.one_of(st.none(), st.integers(-3, 3)),
            "title": TEXTS,
            "text": TEXTS,
            "v": VECTORS,
        }
    ),
    min_size=1,
    max_size=25,
)
STEPS = st.lists(
    st.sampled_from(("append", "append", "delete", "respec", "rename", "widen", "index", "compact")), max_size=6
)
FILTERS = st.sampled_from(
    (None, None, "tenant = 'a'", "tenant IS NULL OR id > 9", "number > 0", "id % 2 = 0 AND tenant <> 'b'", "id < 0")
)
QUERIES = st.one_of(
    st.tuples(st.just("vector"), VECTORS.filter(bool), st.sampled_from(("l2", "dot"))),
    st.tuples(st.just("text"), st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), st.sampled_from(range(5))),
)


def _table(root: str, rows: list[dict[str, Any]], steps: list[str], chunks: int) -> lp.PartitionedTable:
    """A table that got its rows little by little while it changed; at its end one column is renamed and wider."""
    table = lp.create_table(root, SCHEMA, ["tenant"])
    numbered = [{"id": at, **row} for at, row in enumerate(rows)]
    parts = [numbered[at::chunks] for at in range(chunks)]
    specs = iter((["bucket(id, 2)"], ["truncate(id, 10)", "tenant"]))
    for step in ["append", *steps, "append", "rename", "widen", *["append"] * chunks]:
        _do(table, step, parts, specs)
    return table


def _do(table: lp.PartitionedTable, step: str, parts: list[list[dict[str, Any]]], specs: Any) -> None:
    names = table.schema.names
    match step:
        case "append" if parts:
            fresh = [
                {("number" if key == "old" and "number" in names else key): row[key] for key in row}
                for row in parts.pop()
            ]
            if fresh:
                table.append(pa.Table.from_pylist(fresh, schema=table.schema))
        case "delete":
            table.delete("id % 4 = 1")
        case "respec" if (spec := next(specs, None)) is not None:
            table.update_spec(spec)
        case "rename" if "old" in names:
            table.rename_column("old", "number")
        case "widen":
            table.widen_column("old" if "old" in names else "number", pa.int64())
        case "index" if table.scan().count():
            table.maintenance.create_index("text", "INVERTED", progress=False)
        case "compact":
            table.maintenance.compact(progress=False)


def _text_query(words: list[str], kind: int) -> Any:
    text = " ".join(words)
    return (
        MatchQuery(text, "text"),
        MatchQuery(text, "text", operator=FullTextOperator.AND),
        PhraseQuery(text, "text", slop=1),
        MultiMatchQuery(text, ["title", "text"]),
        BooleanQuery([(Occur.SHOULD, MatchQuery(words[0], "text")), (Occur.MUST_NOT, MatchQuery(words[-1], "title"))]),
    )[kind]


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=ROWS,
    steps=STEPS,
    chunks=st.integers(1, 3),
    queries=st.lists(st.tuples(QUERIES, FILTERS, st.integers(1, 12)), min_size=1, max_size=6),
)
def test_a_search_over_leaves_is_that_of_one_table(
    rows: list[dict[str, Any]], steps: list[str], chunks: int, queries: list[Any]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        table = _table(f"{root}/t", rows, steps, chunks)
        held = table.scan().to_arrow()
        plain = lance.write_dataset(held, "memory://")
        for name in ("title", "text"):
            plain.create_scalar_index(name, "INVERTED", with_position=True)
        for (kind, asked, how), where, k in queries:
            if kind == "vector":
                _check_vector(table, plain, asked, how, where, k)
            else:
                _check_text(table, plain, _text_query(asked, how), where, k)


def _check_vector(table: lp.PartitionedTable, plain: Any, vector: Any, metric: str, where: str | None, k: int) -> None:
    asked = {"column": "v", "q": np.array(vector, np.float32), "k": 1_000, "metric": metric}
    answer = plain.scanner(columns=["id", "_distance"], nearest=asked, filter=where, prefilter=True).to_table()
    known = dict(zip(answer.column("id").to_pylist(), answer.column("_distance").to_pylist(), strict=True))

    found = table.search(vector, k=k, where=where, distance_type=metric).to_arrow()

    assert_same_ranking(found, ranking(list(known), list(known.values()), k), "_distance", known)


def _check_text(table: lp.PartitionedTable, plain: Any, query: Any, where: str | None, k: int) -> None:
    answer = plain.scanner(columns=["id", "_score"], full_text_query=query, filter=where, prefilter=True).to_table()
    known = dict(zip(answer.column("id").to_pylist(), answer.column("_score").to_pylist(), strict=True))

    found = table.search(query, k=k, where=where).to_arrow()

    assert_same_ranking(found, ranking(list(known), list(known.values()), k, highest=True), "_score", known)
