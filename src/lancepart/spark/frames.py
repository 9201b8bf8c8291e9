"""Writing Spark DataFrames through a table's own methods: executors write fragments and report them to the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from lancepart.commit.distributed_write import WriteJob, WriteResult
from lancepart.layout import create
from lancepart.plan import planner
from lancepart.spark import planned_writes
from lancepart.spark.results import loads
from lancepart.spark.tasks import task_count
from lancepart.spark.types import from_spark
from lancepart.spark.writing import Writing, columns_of
from lancepart.storage.manifest import Manifest
from lancepart.write.conform import check, check_complete, fit
from lancepart.write.frames import AUTO, NONE, check_distribution
from lancepart.write.route import partition_numbers

_PLACE = "__lancepart_place"
_TASKS_A_CORE = 2
_MANY_FRAGMENTS = 10_000


def stage(job: WriteJob, frame: Any, schema: pa.Schema, distribution: str = AUTO) -> list[WriteResult]:
    """Write a DataFrame's rows on the executors; the reports of the tasks."""
    check_distribution(distribution)
    columns = columns_of(frame.schema, schema)
    (check if job.partial else check_complete)(columns, schema)
    packed = planned_writes.dumps(Writing(job=job, schema=columns))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from lancepart.spark.frames import reported

        yield reported(packed, batches)

    reports = _distributed(job, frame, packed, distribution).mapInArrow(run, "report binary").collect()
    return [loads(row["report"]) for row in reports]


def reported(packed: bytes, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """One task, on the executor that it was sent to."""
    return pa.RecordBatch.from_pydict({"report": [planned_writes.loads(packed).write(batches)]})


def _distributed(job: WriteJob, frame: Any, packed: bytes, distribution: str) -> Any:
    """The frame repartitioned so that a write makes few small files."""
    if distribution == NONE:
        return frame
    tasks = _TASKS_A_CORE * task_count(frame.sparkSession)
    if job.partial or (distribution == AUTO and _leaves(job) * tasks < _MANY_FRAGMENTS):
        return frame.coalesce(tasks)
    from pyspark.sql.types import IntegerType, StructField, StructType

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from lancepart.spark.frames import placed

        return placed(packed, batches)

    wider = StructType([*frame.schema.fields, StructField(_PLACE, IntegerType())])
    return frame.mapInArrow(run, wider).repartition(tasks, _PLACE).drop(_PLACE)


def placed(packed: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows with a number that is the same for all rows of a partition."""
    writing = planned_writes.loads(packed)
    assert isinstance(writing, Writing)
    manifest = Manifest(writing.job.root)
    metadata = create.load(manifest.snapshot(writing.job.version))
    for batch in batches:
        rows = fit(pa.Table.from_batches([from_spark(batch, writing.schema)]), metadata.plain_schema)
        found = partition_numbers(rows, metadata.schema, metadata.spec)
        yield batch.append_column(_PLACE, pa.array(found.astype(np.int32)))


def _leaves(job: WriteJob) -> int:
    manifest = Manifest(job.root)
    snapshot = manifest.snapshot(job.version)
    return sum(planner.leaf_counts(snapshot, create.load(snapshot)).values())
