"""Scans and joins on Spark's executors: planned and packed by the driver, read there by the same code as here."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lancepart.errors import InvalidInputError
from lancepart.plan.pack import pack
from lancepart.read import leaf
from lancepart.read.group import LEAST_MEMORY, GroupTask, join_group
from lancepart.read.join import Join, default_memory
from lancepart.read.leaf import LeafTask
from lancepart.read.scan import Scan
from lancepart.read.split import sized_pieces, split_groups
from lancepart.spark.types import arrow_schema, as_spark, spark_schema

_PARALLELISM = ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one Spark task does: leaves to read or groups to join, and the schema to hand over."""

    schema: Any
    leaves: tuple[LeafTask, ...] = ()
    groups: tuple[GroupTask, ...] = ()
    memory: int | None = None

    def batches(self) -> Iterator[Any]:
        """The rows as Spark takes them."""
        for task in self.leaves:
            for batch in leaf.read(task):
                yield as_spark(batch, self.schema)
        memory = self.memory or max(LEAST_MEMORY, default_memory() // (os.cpu_count() or 1))
        for group in self.groups:
            for batch in join_group(group, memory):
                yield as_spark(batch, self.schema)


def scan(source: Scan, spark: Any, tasks: int | None = None) -> Any:
    """A scan as a Spark DataFrame."""
    parts = task_count(spark, tasks)
    shown = spark_schema(source.schema)
    schema = arrow_schema(shown)
    pieces = sized_pieces(source.tasks(), parts)
    works = [
        Work(schema=schema, leaves=tuple(pieces[at][0] for at in places))
        for places in pack([size for _, size in pieces], parts)
    ]
    frame = _frame(spark, works, shown)
    return frame if source.limit is None else frame.limit(int(source.limit))


def join(source: Join, spark: Any, tasks: int | None = None) -> Any:
    """A join as a Spark DataFrame."""
    parts = task_count(spark, tasks)
    shown = spark_schema(source.schema)
    schema = arrow_schema(shown)
    groups = split_groups(source.tasks(), parts)
    works = [
        Work(schema=schema, groups=tuple(groups[at] for at in places), memory=source.memory)
        for places in pack([group.bytes for group in groups], parts)
    ]
    return _frame(spark, works, shown)


def task_count(spark: Any, tasks: int | None = None) -> int:
    """How many tasks to make: as many as asked for, or as the session has cores; under Connect it has to be asked."""
    if tasks is not None:
        if isinstance(tasks, bool) or not isinstance(tasks, int) or tasks < 1:
            raise InvalidInputError(f"tasks is {tasks!r}: give a whole number from 1 up")
        return tasks
    from pyspark.errors import PySparkException

    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except PySparkException:
        pass
    for name in _PARALLELISM:
        told = spark.conf.get(name, None)
        if told:
            return max(1, int(told))
    return max(1, int(spark.range(0, 1 << 16).selectExpr("spark_partition_id()").distinct().count()))


def _frame(spark: Any, works: Sequence[Work], schema: Any) -> Any:
    """One row and one partition a task, each turned into the task's rows by an executor."""
    packed = [pickle.dumps(work, protocol=pickle.HIGHEST_PROTOCOL) for work in works]

    def rows(batches: Iterator[Any]) -> Iterator[Any]:
        from lancepart.spark.tasks import done

        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from done(packed[number])

    numbers = spark.range(0, len(packed), 1, numPartitions=max(1, len(packed)))
    return numbers.mapInArrow(rows, schema)


def done(packed: bytes) -> Iterator[Any]:
    """The rows of one task, on the executor that it was sent to."""
    work: Work = pickle.loads(packed)
    yield from work.batches()
