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
from lancepart.read.hash_slices import WHOLE, HashSlice
from lancepart.read.leaf import LeafTask

Task = TypeVar("Task")
_HELD_BATCHES = 4
_RUNS = 2
_PATIENCE = 0.1
_END = object()


class LeafSource(ds.Dataset):  # type: ignore[misc]
    """Leaves of one table, read batch by batch when DataFusion asks; its columns are numbered: ``c0``, ``c1``."""

    def __init__(
        self,
        tasks: Sequence[LeafTask],
        schema: pa.Schema,
        batch_rows: int,
        keys: Sequence[tuple[str, Any]] = (),
        part: HashSlice = WHOLE,
        *,
        read: Callable[[LeafTask], Iterator[pa.RecordBatch]] = leaf.read,
    ) -> None:
        self._tasks, self._read = tasks, read
        self._keys, self._part = keys, part
        self._batch_rows = batch_rows
        self._runs: list[Ahead] = []
        self._columns = schema.names
        self._plain = pa.schema([pa.field(f"c{at}", storage_type(field.type)) for at, field in enumerate(schema)])

    @property
    def is_empty(self) -> bool:
        """Whether there is no leaf to read."""
        return not self._tasks

    @property
    def schema(self) -> pa.Schema:
        """The columns as DataFusion sees them."""
        return self._plain

    def scanner(self, columns: Sequence[str] | None = None, **_: Any) -> _Scanner:
        """What DataFusion asks for the schema of the columns that it wants."""
        return _Scanner(self._projected(columns), ())

    def get_fragments(self, filter: Any = None) -> list[_Fragment]:
        """The leaves in a few runs, each read one leaf after the other, so that few are open at a time."""
        runs = max(1, min(_RUNS, len(self._tasks)))
        return [_Fragment(self, self._tasks[at::runs]) for at in range(runs)]

    def scanned(self, tasks: Sequence[LeafTask], columns: Sequence[str] | None) -> _Scanner:
        """Some columns of a run of leaves, read on a thread of its own: DataFusion's may not call DataFusion again."""
        wanted = self._projected(columns)
        names = tuple(self._columns[int(name[1:])] for name in wanted.names)
        run = Ahead(lambda: self._rows(tasks, names, wanted))
        self._runs.append(run)
        return _Scanner(wanted, run)

    @property
    def error(self) -> BaseException | None:
        """Why reading failed, if it did: DataFusion only passes on the words."""
        return next((run.error for run in self._runs if run.error is not None), None)

    def close(self) -> None:
        """Stop reading, even if a consumer still waits for rows."""
        for run in self._runs:
            run.close()

    def _rows(self, tasks: Sequence[LeafTask], names: tuple[str, ...], wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        keys = [(names.index(name), kind) for name, kind in self._keys] if self._part.of > 1 else []
        for task in tasks:
            for read in self._read(replace(task, columns=names)):
                batch = self._part.rows(read, keys)
                for at in range(0, batch.num_rows, self._batch_rows):
                    yield _stored(batch.slice(at, self._batch_rows), wanted)

    def _projected(self, columns: Sequence[str] | None) -> pa.Schema:
        return self._plain if columns is None else pa.schema([self._plain.field(name) for name in columns])


class Ahead:
    """Batches read by a thread of its own, a few before they are asked for, until one side closes it."""

    def __init__(self, read: Callable[[], Iterator[Any]]) -> None:
        self.error: BaseException | None = None
        self._read = read
        self._held: queue.Queue[Any] = queue.Queue(maxsize=_HELD_BATCHES)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="lancepart-read", daemon=True)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._thread.start()
        while not self._closed.is_set():
            try:
                item = self._held.get(timeout=_PATIENCE)
            except queue.Empty:
                continue
            if item is _END:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        try:
            if all(_put(self._held, batch, self._closed) for batch in self._read()):
                _put(self._held, _END, self._closed)
        except BaseException as error:
            self.error = error
            _put(self._held, error, self._closed)


def _put(ready: queue.Queue[Any], item: Any, closed: threading.Event) -> bool:
    """Wait for room; False once nobody takes anything any more."""
    while not closed.is_set():
        try:
            ready.put(item, timeout=_PATIENCE)
            return True
        except queue.Full:
            continue
    return False


class _Fragment:
    def __init__(self, source: LeafSource, tasks: Sequence[LeafTask]) -> None:
        self._source, self._tasks = source, tasks

    def scanner(self, schema: pa.Schema = None, columns: Sequence[str] | None = None, **_: Any) -> _Scanner:
        return self._source.scanned(self._tasks, columns)


class _Scanner:
    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.projected_schema = schema
        self._batches = batches

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return iter(self._batches)


def storage_type(data_type: pa.DataType) -> pa.DataType:
    """A type as DataFusion takes it: an extension by what it is stored as."""
    return data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type


def _stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if not schema.names:
        return batch
    arrays = [array.storage if isinstance(array, pa.ExtensionArray) else array for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def as_they_come(
    tasks: Sequence[Task], read: Callable[[Task], Iterator[Any]], threads: int
) -> Iterator[pa.RecordBatch]:
    """The batches of many tasks in whatever order they are ready, few of them held at a time."""
    ready: queue.Queue[Any] = queue.Queue(maxsize=_HELD_BATCHES * threads)
    stopped = threading.Event()

    def work(task: Task) -> None:
        try:
            if not stopped.is_set() and all(_put(ready, batch, stopped) for batch in read(task)):
                _put(ready, _END, stopped)
        except BaseException as error:
            _put(ready, error, stopped)

    with ThreadPoolExecutor(threads) as pool:
        try:
            for task in tasks:
                pool.submit(work, task)
            waiting = len(tasks)
            while waiting:
                item = ready.get()
                if isinstance(item, BaseException):
                    raise item
                if item is _END:
                    waiting -= 1
                else:
                    yield item
        finally:
            stopped.set()
