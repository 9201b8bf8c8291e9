"""Two rankings made into one: by reciprocal rank, or by any reranker that works as LanceDB's do."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError
from lancepart.storage.search import DISTANCE, SCORE

RELEVANCE, ROW_ID = "_relevance_score", "_rowid"
_CONSTANT = 60


class Reranker(Protocol):
    """What makes one ranking of two, as LanceDB's rerankers do."""

    def rerank_hybrid(self, query: str, vector_results: pa.Table, fts_results: pa.Table) -> pa.Table:
        """Rows of either ranking with a relevance, the best first."""


class ReciprocalRank:
    """The default: each row scores 1 / (60 + its rank) in each of the rankings that has it."""

    def rerank_hybrid(self, query: str, vector_results: pa.Table, fts_results: pa.Table) -> pa.Table:
        """Rows of either ranking, the best first; of equal ones those that are nearer."""
        both = pa.concat_tables([vector_results, fts_results], promote_options="default")
        scores: dict[int, float] = {}
        first: dict[int, int] = {}
        for ids in (vector_results.column(ROW_ID).to_pylist(), fts_results.column(ROW_ID).to_pylist()):
            for rank, number in enumerate(ids, 1):
                scores[number] = scores.get(number, 0.0) + 1 / (_CONSTANT + rank)
        for at, number in enumerate(both.column(ROW_ID).to_pylist()):
            first.setdefault(number, at)
        order = sorted(scores, key=lambda number: (-scores[number], first[number]))
        rows = both.take(pa.array([first[number] for number in order], pa.int64()))
        kept = rows.drop_columns([name for name in (DISTANCE, SCORE) if name in rows.schema.names])
        return kept.append_column(RELEVANCE, pa.array([scores[number] for number in order], pa.float32()))


def check_reranker(reranker: object) -> None:
    """Refuse what can't rerank."""
    if reranker is not None and not callable(getattr(reranker, "rerank_hybrid", None)):
        raise InvalidInputError(
            f"reranker is a {type(reranker).__name__}: give one with rerank_hybrid(query, vector_results, fts_results)"
        )


def reranked(reranker: Reranker | None, text: str, vector: pa.Table, fts: pa.Table) -> pa.Table:
    """Two rankings as one; as in LanceDB a reranker sees values between 0 and 1; the true ones are restored."""
    if not vector.num_rows and not fts.num_rows:
        empty = vector.drop_columns([DISTANCE])
        return empty.append_column(RELEVANCE, pa.array([], pa.float32()))
    seen = [_normalized(vector, DISTANCE), _normalized(fts, SCORE)]
    found = (reranker or ReciprocalRank()).rerank_hybrid(text, *seen)
    if not isinstance(found, pa.Table) or not {RELEVANCE, ROW_ID} <= set(found.schema.names):
        raise InvalidInputError(f"rerank_hybrid must return a pyarrow.Table with the columns {RELEVANCE} and {ROW_ID}")
    return _restored(_restored(found, vector, DISTANCE), fts, SCORE)


def _normalized(rows: pa.Table, name: str) -> pa.Table:
    values = rows.column(name).to_numpy()
    if not len(values):
        return rows
    low, high = values.min(), values.max()
    spread = (values - low) / (high - low) if high > low else values - low
    return rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), [spread.astype(np.float32)])


def _restored(found: pa.Table, rows: pa.Table, name: str) -> pa.Table:
    if name not in found.schema.names:
        return found
    positions = pc.index_in(found.column(ROW_ID), rows.column(ROW_ID).combine_chunks())
    return found.set_column(found.schema.get_field_index(name), name, rows.column(name).take(positions))
