"""Scans and joins on Spark's executors: planned and packed by the driver, read there by the same code as here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lancepart.errors import InvalidInputError
from lancepart.plan.pack import pack
from lancepart.read.group import GroupTask
from lancepart.read.join import Join
from lancepart.read.pieces import Piece, cut, leaf_bytes, packed
from lancepart.read.scan import Scan
from lancepart.read.split import split_groups
from lancepart.spark import handover
from lancepart.spark.spark_plan import (
    Group,
    Pickled,
    SparkJoin,
    SparkPlan,
    SparkScan,
    SparkTask,
    TableRead,
    pickled,
)
from lancepart.spark.types import read_schema, spark_schema

_PARALLELISM = ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism")


def scan(source: Scan, spark: SparkSession, tasks: int | None = None) -> DataFrame:
    """A scan as a Spark DataFrame."""
    parts = task_count(spark, tasks)
    leaves = [task.leaf for task in source.tasks()]
    pieces = cut(source.root, leaves, sum(map(leaf_bytes, leaves)) // parts)
    frame = _frame(spark, scan_plan(source), [SparkTask(pieces=each) for each in packed(pieces, parts)], source.schema)
    return frame if source.limit is None else frame.limit(int(source.limit))


def scan_plan(source: Scan) -> SparkScan:
    """What all tasks of a scan share."""
    side = TableRead(
        root=source.root,
        metadata=source.metadata,
        columns=tuple(source.schema.names),
        predicate=source.predicate,
    )
    return SparkScan(side=side, limit=None if source.limit is None else int(source.limit))


def join(source: Join, spark: SparkSession, tasks: int | None = None) -> DataFrame:
    """A join as a Spark DataFrame."""
    parts = task_count(spark, tasks)
    groups = split_groups(source.tasks(), parts)
    dealt = pack([group.bytes for group in groups], parts)
    planned = [SparkTask(groups=tuple(group_of(groups[at]) for at in each)) for each in dealt]
    return _frame(spark, join_plan(source), planned, source.schema)


def join_plan(source: Join) -> SparkJoin:
    """What all tasks of a join share."""
    query, *makers = source.makers()
    left, right = (
        TableRead(root=each.scan.root, metadata=each.scan.metadata, columns=each.columns, predicate=each.predicate)
        for each in makers
    )
    return SparkJoin(left=left, right=right, query=query, memory=source.memory)


def group_of(task: GroupTask) -> Group:
    """A group of a join without what is the same for all of them."""
    left, right = (
        tuple(Piece(leaf=each.leaf, bytes=leaf_bytes(each.leaf), fragments=each.fragments) for each in side)
        for side in (task.left, task.right)
    )
    return left, right


def task_count(spark: SparkSession, tasks: int | None = None) -> int:
    """The number of tasks: the requested one, or the number of cores of the session."""
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


def _frame(spark: SparkSession, plan: SparkPlan, tasks: Sequence[SparkTask], schema: pa.Schema) -> DataFrame:
    """A plan passed to the data source, which reports its columns to Spark and reads those that are needed."""
    options = {**handover.plan_options(plan, tasks), handover.COLUMNS: spark_schema(schema).json()}
    root = plan.side.root if isinstance(plan, SparkScan) else plan.left.root
    return spark.read.format("lancepart").options(**options).load(root.uri)


def handed(options: Mapping[str, str], columns: Sequence[str] | None) -> tuple[StructType, Pickled]:
    """The columns and the plan that were passed, projected; Spark needs at least one column and one task."""
    if handover.COLUMNS not in options:
        raise InvalidInputError(f"option {handover.PLAN!r} needs {handover.COLUMNS!r} beside it")
    whole = read_schema(options[handover.COLUMNS])
    plan, tasks = handover.read_plan(options)
    names = whole.names if columns is None else list(columns) or whole.names[:1]
    chosen = StructType([whole[name] for name in names])
    return chosen, pickled(plan.narrowed(names), tasks or [SparkTask()])
