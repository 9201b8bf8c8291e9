"""A lazy scan: planned when first asked, read on threads, in bounded memory."""

from __future__ import annotations

import html
import os
import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import pyarrow as pa

from lancepart.errors import InvalidInputError, TableColumnNotFoundError
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.nested import field_of, path_of
from lancepart.model.parse import parse
from lancepart.model.predicate import Predicate
from lancepart.model.suggest import near
from lancepart.plan import planner
from lancepart.plan.planner import Plan
from lancepart.read import leaf
from lancepart.read.elsewhere import spark_tasks
from lancepart.read.leaf import LeafTask
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot

THREADS = max(2, os.cpu_count() or 2)
_HELD_BATCHES = 4
_END = object()


@dataclass(frozen=True, kw_only=True)
class Scan:
    """Rows of a table at one snapshot: those that a filter matches, some columns of them."""

    root: Root
    snapshot: Snapshot
    metadata: TableMetadata
    where: str | None = None
    columns: tuple[str, ...] | None = None
    limit: int | None = None
    planned: Plan | None = None

    @classmethod
    def of(
        cls,
        root: Root,
        snapshot: Snapshot,
        metadata: TableMetadata,
        where: str | None,
        columns: Sequence[str] | None,
        limit: int | None,
    ) -> Scan:
        """Check what is asked for; nothing is read yet."""
        if isinstance(columns, str) or not isinstance(columns, Iterable | None):
            raise InvalidInputError(f"columns is {columns!r}: give a list of names")
        unknown = [name for name in columns or () if path_of(name, metadata.plain_schema) is None]
        if unknown:
            known = ", ".join(metadata.schema.names)
            raise TableColumnNotFoundError(
                f"there is no column {unknown[0]!r}: the table has {known}{near(unknown[0], metadata.schema.names)}"
            )
        twice = [name for name in columns or () if list(columns or ()).count(name) > 1]
        if twice or (columns is not None and not len(columns)):
            fault = f"has {twice[0]!r} twice" if twice else "is empty"
            raise InvalidInputError(f"columns {fault}: name each column to be read once, or leave it out for all")
        if not _is_count(limit):
            raise InvalidInputError(f"limit is {limit!r}: give a whole number from 0 up")
        chosen = None if columns is None else tuple(columns)
        scan = cls(root=root, snapshot=snapshot, metadata=metadata, where=where, columns=chosen, limit=limit)
        _ = scan.predicate
        return scan

    @cached_property
    def predicate(self) -> Predicate | None:
        """The filter as a tree."""
        return None if self.where is None else parse(self.where, self.metadata.plain_schema)

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        plain = self.metadata.plain_schema
        names = plain.names if self.columns is None else self.columns
        return pa.schema([field_of(name, plain) for name in names])

    @cached_property
    def _plan(self) -> Plan:
        return self.planned or planner.plan(self.snapshot, self.metadata, self.predicate)

    def plan(self) -> Plan:
        """Which leaves are read, and why."""
        return self._plan

    def explain(self) -> str:
        """The plan in words."""
        return self._plan.explain(planner.leaf_counts(self.snapshot, self.metadata))

    def count(self) -> int:
        """How many rows there are; without a filter the manifest knows, and no leaf is opened."""
        if self.predicate is None and self.planned is None:
            known = planner.count_all(self.snapshot, self.metadata)
            if known is not None:
                return known if self.limit is None else min(known, self.limit)
        tasks = self.tasks()
        with ThreadPoolExecutor(THREADS) as pool:
            total = sum(pool.map(leaf.count, tasks))
        return total if self.limit is None else min(total, self.limit)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, leaf after leaf; few batches are held at a time."""
        remaining = self.limit
        if remaining == 0:
            return
        tasks = self.tasks()
        for batch in _in_order(tasks):
            if remaining is None:
                yield batch
                continue
            yield batch.slice(0, remaining)
            remaining -= min(remaining, batch.num_rows)
            if remaining == 0:
                return

    def to_arrow(self) -> pa.Table:
        """All rows as a table."""
        return pa.Table.from_batches(list(self.to_batches()), schema=self.schema)

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_spark(self, spark: Any, *, tasks: int | None = None) -> Any:
        """The rows as a Spark DataFrame, read by the executors in about as many tasks as there are cores."""
        return spark_tasks().scan(self, spark, tasks)

    def tasks(self) -> list[LeafTask]:
        """What is to be read, a leaf each."""
        return [self.task_of(item) for item in self._plan.leaves]

    def task_of(self, item: Leaf) -> LeafTask:
        """What is to be read of one leaf."""
        return LeafTask(
            root=self.root,
            metadata=self.metadata,
            leaf=item,
            columns=tuple(self.schema.names),
            predicate=self.predicate,
            limit=self.limit,
        )

    def __repr__(self) -> str:
        parts = [f"where={self.where!r}"] if self.where is not None else []
        parts += [f"columns={list(self.columns)!r}"] if self.columns is not None else []
        parts += [f"limit={self.limit}"] if self.limit is not None else []
        return f"Scan({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"


class _Stream:
    """The batches of one leaf, read ahead by a thread as far as a short queue holds."""

    def __init__(self, task: LeafTask, stopped: threading.Event) -> None:
        self._task = task
        self._stopped = stopped
        self._queue: queue.Queue[Any] = queue.Queue(maxsize=_HELD_BATCHES)

    def run(self) -> None:
        try:
            for batch in leaf.read(self._task):
                if not self._put(batch):
                    return
            self._put(_END)
        except BaseException as error:
            self._put(error)

    def _put(self, item: Any) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (item := self._queue.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            yield item


def _in_order(tasks: Sequence[LeafTask]) -> Iterator[pa.RecordBatch]:
    """The batches of all leaves in their order, a few leaves being read at once."""
    stopped = threading.Event()
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            waiting: list[_Stream] = []
            rest = iter(tasks)
            for task in rest:
                stream = _Stream(task, stopped)
                pool.submit(stream.run)
                waiting.append(stream)
                if len(waiting) >= THREADS:
                    yield from waiting.pop(0)
            for stream in waiting:
                yield from stream
        finally:
            stopped.set()


def _is_count(limit: Any) -> bool:
    return limit is None or (not isinstance(limit, bool) and isinstance(limit, Integral) and int(limit) >= 0)
