"""Running a task on an executor."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lancepart.errors import LanceNamespaceError
from lancepart.read import packs
from lancepart.read.leaf import LEAF, LeafTask, in_large_batches, with_addresses
from lancepart.read.memory import default_memory
from lancepart.read.pieces import Piece
from lancepart.spark.aggregates import aggregate_schema, aggregated
from lancepart.spark.spark_plan import Group, SparkJoin, SparkPlan, SparkScan, SparkTask, TableRead
from lancepart.spark.types import arrow_schema, as_spark
from lancepart.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


_MOST_ROWS = 65_536
_FEWEST_ROWS, _FEWEST_BYTES = 4_096, 1 << 20


def run(work: bytes, task: bytes, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a task of a plan, in the Arrow types in which Spark takes a schema's columns."""
    wanted = arrow_schema(schema)
    planned, what = pickle.loads(work), pickle.loads(task)
    found = rows(planned, what) if isinstance(planned, SparkPlan) else planned.rows(what)
    yield from gathered(as_spark(batch, wanted) for batch in found)


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in order, small batches put together: to Spark one of twenty rows costs as much as a large one."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _FEWEST_ROWS or size >= _FEWEST_BYTES:
            yield _together(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _together(waiting)


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def rows(plan: SparkPlan, task: SparkTask) -> Iterator[pa.RecordBatch]:
    """The rows of one task of a plan."""
    return _joined(plan, task.groups) if isinstance(plan, SparkJoin) else _scanned(plan, task.pieces)


def _joined(join: SparkJoin, groups: Sequence[Group]) -> Iterator[pa.RecordBatch]:
    from lancepart.read.group import LEAST_MEMORY, join_group

    memory = join.memory or max(LEAST_MEMORY, default_memory() // (os.cpu_count() or 1))
    for group in groups:
        yield from join_group(join.task(group), memory)


def _scanned(scan: SparkScan, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    """The rows of some leaves, no more than the limit of them; or their aggregates."""
    if scan.partial is not None:
        plain = scan.side.metadata.plain_schema
        yield from scan.partial.of_batches(
            _batches(scan, pieces), pa.schema([plain.field(name) for name in scan.side.columns])
        )
        return
    if not scan.aggregates:
        yield from _limited(_batches(scan, pieces), scan.limit)
        return
    schema = aggregate_schema(scan.aggregates, scan.side.metadata.plain_schema)
    if any("column" in each for each in scan.aggregates):
        yield aggregated(_batches(scan, pieces), scan.aggregates, schema)
        return
    total = sum(map(packs.count, _packs(scan, pieces))) if scan.counted is None else scan.counted
    yield pa.RecordBatch.from_arrays([pa.array([total]) for _ in schema], schema=schema)


def _batches(scan: SparkScan, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    if scan.row_identity:
        for piece in pieces:
            yield from _identified(scan, piece)
        return
    for pack in _packs(scan, pieces):
        yield from packs.read(pack)


def _packs(scan: SparkScan, pieces: Sequence[Piece]) -> list[packs.Pack]:
    """Pieces to be read together: the snapshot records the files of small leaves, so that not each is opened."""
    tasks = [_task(scan, piece) for piece in pieces]
    snapshot = _snapshot(scan.side) if len(tasks) >= packs.LEAST_LEAVES and scan.limit is None else None
    return [packs.Pack(tasks=(task,)) for task in tasks] if snapshot is None else packs.packed(tasks, snapshot)


def _snapshot(side: TableRead) -> Snapshot | None:
    """The snapshot that the leaves of a plan are of; none where it is gone, or another table is there now."""
    from lancepart.table import open_pinned

    if side.version is None:
        return None
    try:
        table = open_pinned(side.root.uri, side.version, storage_options=side.root.storage_options)
        return table.scan().snapshot if table.metadata.salt == side.metadata.salt else None
    except LanceNamespaceError:
        return None


def _identified(scan: SparkScan, piece: Piece) -> Iterator[pa.RecordBatch]:
    """Rows with their identity: the leaf that they are read from, and their address in it."""
    leaf = pa.scalar(piece.leaf.identity, pa.int64())
    for batch in with_addresses(_task(scan, piece)):
        yield batch.append_column(LEAF, pa.repeat(leaf, batch.num_rows))


def _task(scan: SparkScan, piece: Piece) -> LeafTask:
    return in_large_batches(scan.side.task(piece, scan.limit), _MOST_ROWS)


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    if limit is None:
        yield from batches
        return
    for batch in batches:
        yield batch.slice(0, limit)
        limit -= min(limit, batch.num_rows)
        if not limit:
            return
