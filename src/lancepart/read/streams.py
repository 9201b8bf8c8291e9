"""Leaves as a table that DataFusion reads lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from lancepart.read import leaf
from lancepart.read.hash_slices import WHOLE, HashSlice
from lancepart.read.leaf import LeafTask
from lancepart.read.prefetch import Ahead

_RUNS = 2


class LeafSource(ds.Dataset):  # type: ignore[misc]
    """Leaves of one table, read batch by batch on demand; its columns are numbered: ``c0``, ``c1``."""

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
        """The scanner from which DataFusion takes the schema of projected columns."""
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
