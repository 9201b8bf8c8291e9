"""Scans and joins on Spark's executors: planned and packed by the driver, read there by the same code as here."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from lancepart.errors import InvalidInputError
from lancepart.plan.pack import pack
from lancepart.read import leaf
from lancepart.read.group import LEAST_MEMORY, GroupTask, join_group
from lancepart.read.join import Join, default_memory
from lancepart.read.leaf import LeafTask
from lancepart.read.scan import Scan
from lancepart.read.split import sized_pieces, split_groups
from lancepart.spark.types import arrow_schema, as_spark, spark_schema
from lancepart.storage.root import Root

_MOST_ROWS = 65_536
PLAN, COLUMNS = "lancepart.plan", "lancepart.columns"
_PARALLELISM = ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one Spark task does: leaves to read or groups to join, and the schema to hand over."""

    schema: Any
    leaves: tuple[LeafTask, ...] = ()
    groups: tuple[GroupTask, ...] = ()
    memory: int | None = None

    def narrowed(self, columns: Sequence[str]) -> Work:
        """The same work for some of the columns only."""
        return replace(
            self,
            schema=pa.schema([self.schema.field(name) for name in columns]),
            leaves=tuple(replace(each, columns=tuple(columns)) for each in self.leaves),
            groups=tuple(replace(each, query=replace(each.query, shown=tuple(columns))) for each in self.groups),
        )

    def batches(self) -> Iterator[Any]:
        """The rows as Spark takes them."""
        for task in self.leaves:
            for batch in leaf.read(leaf.in_large_batches(task, _MOST_ROWS)):
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
    frame = _frame(spark, source.root, works, shown)
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
    return _frame(spark, source.left.root, works, shown)


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


def _frame(spark: Any, root: Root, works: Sequence[Work], schema: Any) -> Any:
    """What was planned here, handed to the data source, which tells Spark of the columns and reads those it needs."""
    packed = pickle.dumps(tuple(works), protocol=pickle.HIGHEST_PROTOCOL)
    text = base64.b64encode(zlib.compress(packed)).decode()
    reader = spark.read.format("lancepart").option(PLAN, text).option(COLUMNS, schema.json())
    return reader.load(root.uri)


@dataclass(frozen=True, slots=True)
class Handed:
    """A plan that was made elsewhere; its tasks know all that they need."""

    def rows(self, work: Work) -> Iterator[Any]:
        """The rows of one task."""
        yield from work.batches()


def handed(options: Mapping[str, str], columns: Sequence[str] | None) -> tuple[Any, tuple[bytes, list[bytes]]]:
    """The columns and the plan that were handed over, of some columns; Spark wants one column and one task at least."""
    whole = StructType.fromJson(json.loads(options[COLUMNS]))
    works: tuple[Work, ...] = pickle.loads(zlib.decompress(base64.b64decode(options[PLAN])))
    names = whole.names if columns is None else list(columns) or whole.names[:1]
    chosen = StructType([whole[name] for name in names])
    tasks = [work.narrowed(names) for work in works] or [Work(schema=arrow_schema(chosen))]
    return chosen, (pickle.dumps(Handed()), [pickle.dumps(task) for task in tasks])
