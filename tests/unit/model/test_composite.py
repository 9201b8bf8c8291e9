"""Hashes of nested values."""

from __future__ import annotations

from typing import Any

import mmh3
import pyarrow as pa
import pytest

from lancepart.model.composite import joined, murmur3_any
from lancepart.model.hashing import murmur3


def long(number: int) -> bytes:
    return number.to_bytes(8, "little", signed=True)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([[1, 2], None, [], [None, 3]]), [long(1) + long(2), None, b"", long(3)]),
        (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), [long(1) + long(2), None]),
        (pa.array([["a", "b"]], pa.large_list(pa.string())), [b"ab"]),
        (pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None]), [long(1) + b"x", b"y", None]),
        (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())), [b"k" + long(1), None]),
        (pa.array([[{"a": ["x", "y"]}, {"a": None}]]), [b"xy"]),
        (pa.array([5], pa.duration("s")), [long(5)]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_the_bytes_of_all_that_is_in_it(array: Any, expected: list[bytes | None]) -> None:
    assert joined(array).to_pylist() == expected
    assert joined(array.slice(len(array) - 1)).to_pylist() == expected[-1:]
    hashes = [None if item is None else mmh3.hash(item, 0, signed=True) for item in expected]
    assert murmur3_any(array).to_pylist() == hashes


def test_a_flat_value_has_the_hash_that_it_has_anyway() -> None:
    values = pa.chunked_array([["a"], [None, "b"]])

    assert murmur3_any(values) == murmur3(values)
