"""Batches read ahead on threads, in order or as they are ready: a bounded queue between producers and consumer."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pyarrow as pa

from lancepart.model.config import config

_HELD_BATCHES = 4
_PATIENCE = 0.1

Task = TypeVar("Task")
Batches = Iterator[pa.RecordBatch]


class _End:
    """Says that one source has no more batches."""


class Prefetch:
    """A short queue that a number of sources fill on threads and one reader takes from, until either side closes it."""

    def __init__(self, *, sources: int = 1, held: int = _HELD_BATCHES, closed: threading.Event | None = None) -> None:
        self.error: BaseException | None = None
        self._sources = sources
        self._held: queue.Queue[pa.RecordBatch | BaseException | _End] = queue.Queue(maxsize=held)
        self._closed = closed or threading.Event()

    def fill(self, read: Callable[[], Batches]) -> None:
        """Put all batches of a source into the queue, then its end or its error."""
        try:
            if not self._closed.is_set() and all(self._put(batch) for batch in read()):
                self._put(_End())
        except BaseException as error:
            self.error = error
            self._put(error)

    def _put(self, item: pa.RecordBatch | BaseException | _End) -> bool:
        """Wait for room in the queue; False if the consumer is gone."""
        while not self._closed.is_set():
            try:
                self._held.put(item, timeout=_PATIENCE)
                return True
            except queue.Full:
                continue
        return False

    def __iter__(self) -> Batches:
        waiting = self._sources
        while waiting and not self._closed.is_set():
            try:
                item = self._held.get(timeout=_PATIENCE)
            except queue.Empty:
                continue
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, _End):
                waiting -= 1
            else:
                yield item

    def close(self) -> None:
        """Wake up producers and the consumer."""
        self._closed.set()


class Ahead:
    """Batches of one source, read by a thread of its own from when the first is wanted until one side closes it."""

    def __init__(self, read: Callable[[], Batches]) -> None:
        self._queue = Prefetch()
        self._thread = threading.Thread(target=self._queue.fill, args=(read,), name="lancepart-read", daemon=True)

    @property
    def error(self) -> BaseException | None:
        """Why reading failed, if it did."""
        return self._queue.error

    def __iter__(self) -> Batches:
        self._thread.start()
        yield from self._queue

    def close(self) -> None:
        """End the thread."""
        self._queue.close()
        if self._thread.ident is not None:
            self._thread.join()


def in_order(tasks: Sequence[Task], read: Callable[[Task], Batches]) -> Batches:
    """The batches of all tasks in their order, a few tasks being read at once."""
    closed = threading.Event()
    with ThreadPoolExecutor(config.threads) as pool:
        try:
            waiting: list[Prefetch] = []
            for task in tasks:
                ahead = Prefetch(closed=closed)
                pool.submit(ahead.fill, partial(read, task))
                waiting.append(ahead)
                if len(waiting) >= config.threads:
                    yield from waiting.pop(0)
            for ahead in waiting:
                yield from ahead
        finally:
            closed.set()


def as_they_come(tasks: Sequence[Task], read: Callable[[Task], Batches], threads: int) -> Batches:
    """The batches of many tasks in whatever order they are ready, few of them held at a time."""
    ready = Prefetch(sources=len(tasks), held=_HELD_BATCHES * threads)
    with ThreadPoolExecutor(threads) as pool:
        try:
            for task in tasks:
                pool.submit(ready.fill, partial(read, task))
            yield from ready
        finally:
            ready.close()
