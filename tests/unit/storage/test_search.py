"""Searches of one open dataset: addresses, distances and scores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from lancepart.storage import search


@pytest.fixture
def handle() -> object:
    """Four rows in memory, with vectors on a line and texts."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 0, 1, 0, 2, 0, 3, 0], pa.float32()), 2)
    texts = ["red fox", "blue fox", "red hen", "grey owl"]
    return search.in_memory(pa.table({"id": [10, 11, 12, 13], "v": vectors, "text": texts}))


def test_the_nearest_rows_come_first_and_only_those_that_are_allowed(handle: object) -> None:
    query = pa.array([0.9, 0.0], pa.float32())
    _, addresses, distances = search.nearest(handle, "v", query, 2)
    assert addresses[:2].tolist() == [1, 0]
    assert distances[:2] == pytest.approx([0.01, 0.81], abs=1e-6)

    _, some, _ = search.nearest(handle, "v", query, 2, allowed=np.array([2, 3], dtype=np.uint64))
    assert some.tolist() == [2, 3]


def test_texts_are_found_and_rows_read_in_the_order_of_their_addresses(handle: object) -> None:
    search.index_text(handle, "text", {})
    addresses, scores = search.matches(handle, "red fox", ["text"], 3)

    assert addresses[0] == 0
    assert list(scores) == sorted(scores, reverse=True)
    assert search.rows_at(handle, ["id"], addresses[::-1]).column("id").to_pylist()[-1] == 10
    assert [search.details_of(each) is not None for each in search.indices_on(handle, "text")] == [True]
    assert search.indices_on(handle, "id") == []


def test_offsets_of_live_rows_become_addresses(handle: object) -> None:
    handle.delete("id = 10")
    assert search.addresses_at(handle, [0, 2]).tolist() == [1, 3]
    assert search.addresses_at(handle, []).tolist() == []


def test_a_dataset_is_read_by_others_while_texts_of_it_are_indexed() -> None:
    held = search.in_memory(pa.table({"t": [f"word{n % 900} word{n % 37}" for n in range(20_000)]}))
    with ThreadPoolExecutor(1) as pool:
        longer = pool.submit(search.with_text_part, held, "t", "t_idx", [0], {})
        while not longer.done():
            assert held.scanner(limit=1).to_table().num_rows == 1

    assert len(search.matches(longer.result(), "word7", ["t"], 600)[0]) > 500
    assert held.describe_indices() == []
