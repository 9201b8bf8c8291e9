"""Batches read ahead on threads: in order or as they come, few at a time, with errors passed on and threads ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lancepart.read.prefetch import Ahead, as_they_come, in_order


def batch(value: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": [value]})


def numbers(found: Iterator[pa.RecordBatch]) -> list[int]:
    return [each.column(0)[0].as_py() for each in found]


def three(task: int) -> Iterator[pa.RecordBatch]:
    return (batch(10 * task + at) for at in range(3))


def failing(task: int) -> Iterator[pa.RecordBatch]:
    yield batch(task)
    raise OSError(f"task {task} failed")


def test_batches_come_in_the_order_of_their_tasks() -> None:
    assert numbers(in_order(range(20), three)) == [10 * task + at for task in range(20) for at in range(3)]


def test_batches_come_as_they_are_ready_each_once() -> None:
    assert sorted(numbers(as_they_come(range(20), three, 4))) == sorted(numbers(in_order(range(20), three)))
    assert numbers(as_they_come([], three, 2)) == []


@pytest.mark.parametrize("way", [in_order, lambda tasks, read: as_they_come(tasks, read, 2)])
def test_an_error_is_raised_where_the_batches_are_taken(way: object) -> None:
    with pytest.raises(OSError, match=r"task \d failed"):
        numbers(way([1, 2], failing))  # type: ignore[operator]


@pytest.mark.parametrize("way", [in_order, lambda tasks, read: as_they_come(tasks, read, 2)])
def test_who_takes_no_more_ends_the_threads_and_few_batches_were_held(way: object) -> None:
    read: list[int] = []

    def endless(task: int) -> Iterator[pa.RecordBatch]:
        for at in range(10_000):
            read.append(at)
            yield batch(at)

    found = way([1, 2], endless)  # type: ignore[operator]
    next(found)
    found.close()

    assert len(read) < 100


def test_a_source_is_read_from_when_it_is_wanted_until_it_is_closed() -> None:
    begun = threading.Event()

    def endless() -> Iterator[pa.RecordBatch]:
        begun.set()
        while True:
            yield batch(1)

    ahead = Ahead(endless)
    assert not begun.is_set()
    assert next(iter(ahead)).num_rows == 1
    ahead.close()
    assert ahead.error is None
    assert not [thread for thread in threading.enumerate() if thread.name == "lancepart-read" and thread.is_alive()]


def test_a_failed_source_says_why() -> None:
    ahead = Ahead(lambda: failing(7))
    with pytest.raises(OSError, match=r"task \d failed"):
        list(ahead)
    assert "task 7" in str(ahead.error)
    ahead.close()
