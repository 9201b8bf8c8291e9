"""The cache of searches: bounded in bytes, each value made once."""

from __future__ import annotations

import pytest

from lancepart.errors import InvalidInputError
from lancepart.model.config import Config
from lancepart.storage.cache import ByteCache, HashedKey


def test_a_value_is_made_once_and_the_least_recently_used_is_dropped_first() -> None:
    cache, made = ByteCache(20), []

    def make(name: str) -> str:
        return cache.get(name, lambda: made.append(name) or name, lambda _: 5)

    assert [make(name) for name in ("a", "b", "a", "c", "a", "b")] == ["a", "b", "a", "c", "a", "b"]
    assert made == ["a", "b", "c", "b"]
    assert cache.held_bytes == 10


def test_a_value_larger_than_half_of_the_capacity_is_not_kept() -> None:
    cache, made = ByteCache(20), []

    for _ in range(2):
        cache.get("large", lambda: made.append(1), lambda _: 11)

    assert (len(made), cache.held_bytes) == (2, 0)


def test_a_value_that_could_not_be_made_is_tried_again() -> None:
    cache = ByteCache(20)
    with pytest.raises(ZeroDivisionError):
        cache.get("k", lambda: 1 // 0, lambda _: 1)

    assert cache.get("k", lambda: 7, lambda _: 1) == 7


@pytest.mark.parametrize("wrong", [-1, True, "1", 1.5, None])
def test_a_bound_that_is_no_number_of_bytes_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInputError, match="cache_bytes"):
        Config().cache_bytes = wrong


def test_a_hashed_key_finds_the_value_of_an_equal_one() -> None:
    cache = ByteCache(20)
    kept = cache.get(HashedKey(("a", (1, 2))), lambda: "first", lambda _: 1)

    assert cache.get(HashedKey(("a", (1, 2))), lambda: "second", lambda _: 1) == kept
    assert cache.get(HashedKey(("a", (1, 3))), lambda: "third", lambda _: 1) == "third"
    assert HashedKey(("a",)) != ("a",)
