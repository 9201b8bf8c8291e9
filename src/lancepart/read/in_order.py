"""Batches of many leaves in the order of the leaves, read ahead on threads."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from lancepart.read.leaf import LeafTask

THREADS = max(2, os.cpu_count() or 2)
_HELD_BATCHES = 4

Read = Callable[[LeafTask], Iterator[pa.RecordBatch]]


class _End:
    """Says that a leaf has no more batches."""


class _Stream:
    """The batches of one leaf, read ahead by a thread as far as a short queue holds."""

    def __init__(self, task: LeafTask, read: Read, stopped: threading.Event) -> None:
        self._task, self._read = task, read
        self._stopped = stopped
        self._queue: queue.Queue[pa.RecordBatch | BaseException | _End] = queue.Queue(maxsize=_HELD_BATCHES)

    def run(self) -> None:
        try:
            for batch in self._read(self._task):
                if not self._put(batch):
                    return
            self._put(_End())
        except BaseException as error:
            self._put(error)

    def _put(self, item: pa.RecordBatch | BaseException | _End) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while not isinstance(item := self._queue.get(), _End):
            if isinstance(item, BaseException):
                raise item
            yield item


def in_order(tasks: Sequence[LeafTask], read: Read) -> Iterator[pa.RecordBatch]:
    """The batches of all leaves in their order, a few leaves being read at once."""
    stopped = threading.Event()
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            waiting: list[_Stream] = []
            for task in tasks:
                stream = _Stream(task, read, stopped)
                pool.submit(stream.run)
                waiting.append(stream)
                if len(waiting) >= THREADS:
                    yield from waiting.pop(0)
            for stream in waiting:
                yield from stream
        finally:
            stopped.set()
