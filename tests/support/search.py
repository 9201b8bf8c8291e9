"""Oracles of searches: exact nearest vectors by numpy, BM25 from its formula, and rankings compared up to ties."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import lance
import numpy as np
import pyarrow as pa

K1, B = 1.2, 0.75


def distances(vectors: Any, query: Any, metric: str = "l2") -> Any:
    """The distance of each vector to a query, in double precision."""
    held, asked = np.asarray(vectors, np.float64), np.asarray(query, np.float64)
    if metric == "l2":
        return ((held - asked) ** 2).sum(axis=1)
    if metric == "dot":
        return 1 - held @ asked
    return 1 - (held @ asked) / (np.linalg.norm(held, axis=1) * np.linalg.norm(asked))


def bm25(texts: Sequence[str | None], query: str) -> Any:
    """The score of each text for the words of a query, as if the texts were all there are."""
    words = [Counter(token.text for token in lance.tokenize(text or "")) for text in texts]
    lengths = np.array([sum(counts.values()) for counts in words], np.float64)
    documents = int((lengths > 0).sum())
    average = lengths.sum() / max(1, documents)
    scores = np.zeros(len(texts))
    for word in dict.fromkeys(token.text for token in lance.tokenize(query)):
        holding = sum(word in counts for counts in words)
        rarity = math.log(1 + (documents - holding + 0.5) / (holding + 0.5))
        for at, counts in enumerate(words):
            if often := counts[word]:
                scores[at] += rarity * often * (K1 + 1) / (often + K1 * (1 - B + B * lengths[at] / average))
    return scores


def ranking(ids: Sequence[int], values: Any, k: int, *, highest: bool = False) -> list[tuple[int, float]]:
    """The k best, the best first."""
    order = np.argsort(-np.asarray(values) if highest else np.asarray(values), kind="stable")[:k]
    return [(int(ids[at]), float(values[at])) for at in order]


def assert_same_ranking(
    found: pa.Table, expected: Sequence[tuple[int, float]], value: str, among: dict[int, float], tolerance: float = 1e-5
) -> None:
    """Check the values in their order, and each row's own value; rows with equal values may change places."""
    ids, values = found.column("id").to_pylist(), found.column(value).to_numpy()
    assert len(ids) == len(set(ids)) == len(expected)
    np.testing.assert_allclose(values, [each for _, each in expected], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(values, [among[number] for number in ids], rtol=tolerance, atol=tolerance)
