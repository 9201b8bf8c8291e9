"""The package where Spark finds Python data sources by itself: ``format("lancepart")`` needs no registration.

Spark runs this in four kinds of processes: one that only looks what sources there are, one that asks for the schema
(and in which scans are planned), one that only hands plans on, and those that read. So that the first and the third
start quickly, nothing here imports lancepart before it is needed, and plans travel as bytes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)

from pyspark_lancepart.messages import hush_own, plainly

if TYPE_CHECKING:
    from lancepart.model.aliases import JsonObject

__all__ = ["DefaultSource"]

Plan = tuple[bytes, list[bytes]]
"""What all tasks of a scan have in common, and the tasks."""

hush_own()


class DefaultSource(DataSource):
    """A partitioned table at a path, for users: what they give as options is data, and to read changes nothing."""

    _plan: Plan | None = None

    @classmethod
    def name(cls) -> str:
        """What the format is called."""
        return "lancepart"

    @plainly()
    def schema(self) -> Any:
        """The columns; a plan stays in the source itself."""
        from lancepart.spark.source import show

        settle()
        schema, self._plan = show(self._given())
        return schema

    def _given(self) -> dict[str, str]:
        """The options, unless there is one among them that only the jar may set."""
        if any(key.lower().startswith("lancepart.") for key in self.options):
            from lancepart.spark.source import refuse_own

            refuse_own(self.options)
        return dict(self.options)

    @plainly()
    def reader(self, schema: Any) -> DataSourceReader:
        """A reader of the plan, which moves there so that it is not sent twice; or of the columns that a user named."""
        plan, self._plan = self._plan, None
        if plan is None:
            from lancepart.spark.source import plan_columns

            plan = plan_columns(self._given(), schema.names)
        return Reader(plan, schema)

    @plainly()
    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        """A writer that plans at once, so that what can't be done is refused before any task starts."""
        from lancepart.spark import planned_writes
        from lancepart.spark.writing import plan, without_jar

        settle()
        return Writer(planned_writes.dumps(plan(self._given(), schema, without_jar(schema, overwrite))))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        """A reader of a stream, which imports lancepart only when offsets are requested or rows are read."""
        from pyspark_lancepart.streams import StreamReader

        self._plan = None
        return StreamReader(self._given(), schema)

    @plainly()
    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """A writer of one batch, planned at once."""
        from lancepart.spark.sink import sink
        from pyspark_lancepart.streams import StreamWriter

        settle()
        return StreamWriter(sink(self._given(), schema, overwrite).dumps())


class Writer(DataSourceArrowWriter):
    """Writes the rows of tasks, and publishes them in one commit; a task that fails leaves nothing to be seen."""

    def __init__(self, planned: bytes) -> None:
        self._planned = planned

    @plainly()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One task."""
        from lancepart.spark import planned_writes

        settle()
        return TaskReport(report=planned_writes.loads(self._planned).write(iterator))

    @plainly()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish what the tasks that succeeded wrote."""
        from lancepart.spark import planned_writes

        reports = [message.report for message in messages if isinstance(message, TaskReport)]
        planned = planned_writes.loads(self._planned)
        settle()
        planned.commit(reports)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Take back what the write made; rows that tasks wrote into a table that was there are found later."""
        from lancepart.spark import planned_writes

        planned_writes.loads(self._planned).abort()


@dataclass
class TaskReport(WriterCommitMessage):
    """What one task reports."""

    report: bytes


class Reader(DataSourceReader):
    """Reads the tasks of a plan; travels to the executors without them.

    It leaves ``pushFilters`` alone: Spark keeps a Python reader that acts on it for other uses of the same relation,
    which then give wrong rows. The jar makes up for it.
    """

    def __init__(self, plan: Plan, schema: Any) -> None:
        self._work, self._tasks = plan
        self._schema = schema

    def __getstate__(self) -> JsonObject:
        """All but the tasks, of which each executor is sent its own."""
        return {**self.__dict__, "_tasks": []}

    def partitions(self) -> list[InputPartition]:
        """One partition a task."""
        return [InputPartition(task) for task in self._tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in the Arrow types in which Spark takes them."""
        from lancepart.spark.running import run

        settle()
        with plainly():
            yield from run(self._work, partition.value, self._schema) if partition.value is not None else ()


@cache
def settle() -> None:
    """Freeze what a worker has loaded for the garbage collector, which Spark runs after each use.

    Done once, with a flag: asking the collector would make it count all frozen objects.
    """
    gc.collect()
    gc.freeze()
