"""Running a task on an executor."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lancepart.read.leaf import LEAF, LeafTask, count, in_large_batches, read, with_addresses
from lancepart.spark.aggregates import aggregate_schema, aggregated
from lancepart.spark.scan_spec import Piece, ScanSpec
from lancepart.spark.types import arrow_schema, as_spark

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


_MOST_ROWS = 65_536


def run(work: bytes, task: bytes, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a task of a plan, in the Arrow types in which Spark takes a schema's columns."""
    wanted = arrow_schema(schema)
    planned, what = pickle.loads(work), pickle.loads(task)
    found = rows(planned, what) if isinstance(planned, ScanSpec) else planned.rows(what)
    for batch in found:
        yield as_spark(batch, wanted)


def rows(work: ScanSpec, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    """The rows of some leaves, no more than the limit of them; or the one row of their aggregates."""
    if not work.aggregates:
        yield from _limited(_batches(work, pieces), work.limit)
        return
    schema = aggregate_schema(work.aggregates, work.metadata.plain_schema)
    if any("column" in each for each in work.aggregates):
        yield aggregated(_batches(work, pieces), work.aggregates, schema)
        return
    total = sum(count(_task(work, piece)) for piece in pieces) if work.counted is None else work.counted
    yield pa.RecordBatch.from_arrays([pa.array([total]) for _ in schema], schema=schema)


def _batches(work: ScanSpec, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    for piece in pieces:
        yield from _placed(work, piece) if work.row_addresses else read(_task(work, piece))


def _placed(work: ScanSpec, piece: Piece) -> Iterator[pa.RecordBatch]:
    """Rows that say where they stand: in which leaf, and where in it."""
    for batch in with_addresses(_task(work, piece)):
        yield batch.append_column(LEAF, pa.repeat(pa.scalar(piece.number, pa.int32()), batch.num_rows))


def _task(work: ScanSpec, piece: Piece) -> LeafTask:
    task = LeafTask(
        root=work.root,
        metadata=work.metadata,
        leaf=piece.leaf,
        columns=work.columns,
        predicate=work.predicate,
        limit=work.limit,
        fragments=piece.fragments,
    )
    return in_large_batches(task, _MOST_ROWS)


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    if limit is None:
        yield from batches
        return
    for batch in batches:
        yield batch.slice(0, limit)
        limit -= min(limit, batch.num_rows)
        if not limit:
            return
