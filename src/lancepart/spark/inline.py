"""Small tables read by the planning service itself: their rows travel with the plan, and no Python worker is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lancepart.model.predicate import And, IsNull, Not, Predicate
from lancepart.spark.planning import Planned
from lancepart.spark.running import rows
from lancepart.spark.scan_sizes import row_width
from lancepart.spark.spark_plan import SparkTask
from lancepart.spark.types import arrow_schema, as_spark

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_FILTERED = 8
"""How many times the limit may be read where a filter leaves rows out."""

Streams = tuple[bytes, ...]
"""Arrow streams: one a key and then one with all rows, as the tasks of a plan are; without keys the latter alone."""


def inlined(found: Planned, schema: StructType, most: int) -> Streams | None:
    """The rows of a scan that has at most so many bytes; None for one that is, or turns out to be, larger.

    What can't be read is None too: it fails where Spark runs it, and not in a statement that only explains it.
    """
    if not _is_worthwhile(found, most):
        return None
    try:
        return _read(found, arrow_schema(schema), most)
    except Exception:
        return None


def _is_worthwhile(found: Planned, most: int) -> bool:
    scan = found.scan
    if scan.row_identity or not found.tasks or most <= 0:
        return False
    if scan.aggregates:
        return scan.counted is not None
    estimated = found.rows * row_width(found.schema)
    return estimated <= (most * _FILTERED if _leaves_out(scan.side.predicate) else most)


def _leaves_out(predicate: Predicate | None) -> bool:
    """Whether a filter is likely to leave rows out: that a key is there, which joins require, is nearly always so."""
    parts = predicate.operands if isinstance(predicate, And) else (predicate,)
    return not all(part is None or (isinstance(part, Not) and isinstance(part.operand, IsNull)) for part in parts)


def _read(found: Planned, schema: pa.Schema, most: int) -> Streams | None:
    groups: list[list[pa.RecordBatch]] = []
    for task in found.tasks:
        group = []
        for batch in _batches(found, task, schema):
            most -= batch.nbytes
            if most < 0:
                return None
            group.append(batch)
        groups.append(group)
    everything = _stream((batch for group in groups for batch in group), schema)
    return (*(_stream(group, schema) for group in groups), everything) if found.parts else (everything,)


def _batches(found: Planned, task: SparkTask, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in rows(found.scan, task):
        yield as_spark(batch, schema)


def _stream(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> bytes:
    """One batch, whatever they were: each costs its own headers."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        for batch in pa.Table.from_batches(list(batches), schema).combine_chunks().to_batches():
            stream.write_batch(batch)
    return bytes(sink.getvalue())


def task_count(found: Planned, streams: Sequence[bytes] | None) -> int:
    """How many tasks the scan has, with a key each if it has keys."""
    return len(found.tasks) if streams is None or found.parts else len(streams)
