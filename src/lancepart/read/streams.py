"""Leaves as a table that DataFusion reads as it goes, and work done ahead on threads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.dataset as ds

from lancepart.read import leaf
from lancepart.read.leaf import LeafTask

Task = TypeVar("Task")
_HELD_BATCHES = 4
_END = object()


class LeafSource(ds.Dataset):
    """Leaves of one table, read batch by batch when DataFusion asks; its columns are numbered: ``c0``, ``c1``."""

    def __init__(self, tasks: Sequence[LeafTask], schema: pa.Schema) -> None:
        self._tasks = tasks
        self._columns = schema.names
        self._plain = pa.schema([pa.field(f"c{at}", storage_type(field.type)) for at, field in enumerate(schema)])

    @property
    def schema(self) -> pa.Schema:
        """The columns as DataFusion sees them."""
        return self._plain

    def scanner(self, columns: Sequence[str] | None = None, **_: Any) -> _Scanner:
        """What DataFusion asks for the schema of the columns that it wants."""
        return _Scanner(self._projected(columns), ())

    def get_fragments(self, filter: Any = None) -> list[_Fragment]:
        """One piece a leaf."""
        return [_Fragment(self, task) for task in self._tasks]

    def scanned(self, task: LeafTask, columns: Sequence[str] | None) -> _Scanner:
        """Some columns of one leaf."""
        wanted = self._projected(columns)
        names = tuple(self._columns[int(name[1:])] for name in wanted.names)
        rows = leaf.read(replace(task, columns=names))
        return _Scanner(wanted, (_stored(batch, wanted) for batch in rows))

    def _projected(self, columns: Sequence[str] | None) -> pa.Schema:
        return self._plain if columns is None else pa.schema([self._plain.field(name) for name in columns])


class _Fragment:
    def __init__(self, source: LeafSource, task: LeafTask) -> None:
        self._source, self._task = source, task

    def scanner(self, schema: Any = None, columns: Sequence[str] | None = None, **_: Any) -> _Scanner:
        return self._source.scanned(self._task, columns)


class _Scanner:
    def __init__(self, schema: pa.Schema, batches: Iterable[Any]) -> None:
        self.projected_schema = schema
        self._batches = batches

    def to_batches(self) -> Iterator[Any]:
        return iter(self._batches)


def storage_type(data_type: Any) -> Any:
    """A type as DataFusion takes it: an extension by what it is stored as."""
    return data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type


def _stored(batch: Any, schema: pa.Schema) -> Any:
    if not schema.names:
        return batch
    arrays = [array.storage if isinstance(array, pa.ExtensionArray) else array for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def as_they_come(tasks: Sequence[Task], read: Callable[[Task], Iterator[Any]], threads: int) -> Iterator[Any]:
    """The batches of many tasks in whatever order they are ready, few of them held at a time."""
    held: queue.Queue[Any] = queue.Queue(maxsize=_HELD_BATCHES * threads)
    stopped = threading.Event()

    def put(item: Any) -> bool:
        while not stopped.is_set():
            try:
                held.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work(task: Task) -> None:
        try:
            if not stopped.is_set() and all(put(batch) for batch in read(task)):
                put(_END)
        except BaseException as error:
            put(error)

    with ThreadPoolExecutor(threads) as pool:
        try:
            for task in tasks:
                pool.submit(work, task)
            waiting = len(tasks)
            while waiting:
                item = held.get()
                if isinstance(item, BaseException):
                    raise item
                if item is _END:
                    waiting -= 1
                else:
                    yield item
        finally:
            stopped.set()
