"""Scans and joins on Spark's executors: planned and packed by the driver, read there by the same code as here."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lancepart.errors import InvalidInputError
from lancepart.plan.pack import pack
from lancepart.read import leaf
from lancepart.read.group import LEAST_MEMORY, GroupTask, join_group
from lancepart.read.join import Join
from lancepart.read.leaf import LeafTask
from lancepart.read.memory import default_memory
from lancepart.read.scan import Scan
from lancepart.read.split import sized_pieces, split_groups
from lancepart.spark import handover
from lancepart.spark.types import arrow_schema, as_spark, read_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_MOST_ROWS = 65_536
_PARALLELISM = ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTask:
    """What one Spark task does: leaves to read or groups to join, and the schema to hand over."""

    schema: pa.Schema
    leaves: tuple[LeafTask, ...] = ()
    groups: tuple[GroupTask, ...] = ()
    memory: int | None = None

    def narrowed(self) -> SparkTask:
        """The same work for the columns of its schema only."""
        columns = tuple(self.schema.names)
        return replace(
            self,
            leaves=tuple(replace(each, columns=columns) for each in self.leaves),
            groups=tuple(replace(each, query=replace(each.query, shown=columns)) for each in self.groups),
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as Spark takes them."""
        for task in self.leaves:
            for batch in leaf.read(leaf.in_large_batches(task, _MOST_ROWS)):
                yield as_spark(batch, self.schema)
        memory = self.memory or max(LEAST_MEMORY, default_memory() // (os.cpu_count() or 1))
        for group in self.groups:
            for batch in join_group(group, memory):
                yield as_spark(batch, self.schema)


def scan(source: Scan, spark: SparkSession, tasks: int | None = None) -> DataFrame:
    """A scan as a Spark DataFrame."""
    parts = task_count(spark, tasks)
    pieces = sized_pieces(source.tasks(), parts)
    packed = [[pieces[at][0] for at in places] for places in pack([size for _, size in pieces], parts)]
    frame = _frame(spark, source.root.uri, handover.scan_options(source, packed), source.schema)
    return frame if source.limit is None else frame.limit(int(source.limit))


def join(source: Join, spark: SparkSession, tasks: int | None = None) -> DataFrame:
    """A join as a Spark DataFrame."""
    parts = task_count(spark, tasks)
    groups = split_groups(source.tasks(), parts)
    packed = [[groups[at] for at in places] for places in pack([group.bytes for group in groups], parts)]
    return _frame(spark, source.left.root.uri, handover.join_options(source, packed), source.schema)


def task_count(spark: SparkSession, tasks: int | None = None) -> int:
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
        setting = spark.conf.get(name, None)
        if setting:
            return max(1, int(setting))
    return max(1, int(spark.range(0, 1 << 16).selectExpr("spark_partition_id()").distinct().count()))


def _frame(spark: SparkSession, root: str, plan: Mapping[str, str], schema: pa.Schema) -> DataFrame:
    """What was planned here, handed to the data source, which tells Spark of the columns and reads those it needs."""
    options = {**plan, handover.COLUMNS: spark_schema(schema).json()}
    return spark.read.format("lancepart").options(**options).load(root)


@dataclass(frozen=True, slots=True)
class Handed:
    """A plan that was made elsewhere; its tasks know all that they need."""

    def rows(self, work: SparkTask) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        yield from work.batches()


def handed(options: Mapping[str, str], columns: Sequence[str] | None) -> tuple[StructType, tuple[bytes, list[bytes]]]:
    """The columns and the plan that were handed over, of some columns; Spark wants one column and one task at least."""
    if handover.COLUMNS not in options:
        raise InvalidInputError(f"option {handover.PLAN!r} needs {handover.COLUMNS!r} beside it")
    whole = read_schema(options[handover.COLUMNS])
    scans, joins, memory = handover.read_plan(options)
    names = whole.names if columns is None else list(columns) or whole.names[:1]
    chosen = StructType([whole[name] for name in names])
    schema = arrow_schema(chosen)
    tasks = [SparkTask(schema=schema, leaves=leaves).narrowed() for leaves in scans]
    tasks += [SparkTask(schema=schema, groups=groups, memory=memory).narrowed() for groups in joins]
    return chosen, (pickle.dumps(Handed()), [pickle.dumps(task) for task in tasks or [SparkTask(schema=schema)]])
