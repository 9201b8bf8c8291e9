"""Keys found by their offset give what keys found by hashing give, at the ends of each type too."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lancepart.commit import dense_keys
from lancepart.commit.dense_keys import DenseKeys
from lancepart.commit.upsert_keys import KeyIndex

ENDS = {
    pa.int8(): (-128, 127),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.uint64(): (0, 2**64 - 1),
    pa.int32(): (-(2**31), 2**31 - 1),
}


@pytest.mark.parametrize("kind", ENDS, ids=str)
def test_keys_at_the_ends_of_a_type_are_found_and_no_others(kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_keys, "_LEAST_KEYS", 1)
    low, high = ENDS[kind]
    for start in (low, high - 20, max(low, -10)):
        keys = pa.table({"k": pa.array([None, *range(start, start + 20, 2), start + 20], kind)})
        asked = pa.array([None, low, high, low + 1, high - 1, *range(start, start + 21)], kind)
        index = KeyIndex.of(keys)
        assert index.dense is not None
        hashed = KeyIndex(levels=index.levels, rows=index.rows).find(pa.table({"k": asked}))
        assert index.find(pa.table({"k": asked})).tolist() == hashed.tolist()
        assert (hashed >= 0).sum() >= 11


def test_keys_that_are_few_far_apart_or_no_integers_are_hashed() -> None:
    many = np.arange(5_000)
    assert DenseKeys.of(pa.array(many)) is not None
    assert DenseKeys.of(pa.array(many * 1_000_000)) is None
    assert DenseKeys.of(pa.array(many[:10])) is None
    assert DenseKeys.of(pa.array(many.astype(float))) is None
    assert DenseKeys.of(pa.nulls(5_000, pa.int64())) is None
    two = KeyIndex.of(pa.table({"a": many, "b": many}))
    assert two.dense is None
    assert KeyIndex.of(pa.table({"a": many})).find(pa.table({"a": pa.array(many.astype(np.int32))})).tolist() == list(
        many
    )
