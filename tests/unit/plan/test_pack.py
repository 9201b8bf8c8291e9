from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lancepart.plan.pack import pack


def test_large_work_comes_first_into_the_lightest_bin() -> None:
    assert pack([1, 10, 2, 9], 2) == [[1, 0], [3, 2]]


def test_there_are_no_more_bins_than_work_and_none_is_empty() -> None:
    assert pack([3, 3], 8) == [[0], [1]]
    assert pack([], 4) == []
    assert pack([0, 0, 0, 0], 2) == [[0, 2], [1, 3]]


@given(sizes=st.lists(st.integers(0, 1000), max_size=40), bins=st.integers(1, 12))
def test_everything_is_packed_once_and_about_evenly(sizes: list[int], bins: int) -> None:
    packed = pack(sizes, bins)

    assert sorted(index for group in packed for index in group) == list(range(len(sizes)))
    assert len(packed) == min(bins, len(sizes))
    weights = [sum(max(1, sizes[index]) for index in group) for group in packed]
    assert max(weights, default=0) - min(weights, default=0) <= max([*sizes, 1])
