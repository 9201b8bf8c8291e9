"""Streams in and out of tables, as Spark calls for them: imported only where there is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)

from pyspark_lancepart import TaskReport, settle

if TYPE_CHECKING:
    from lancepart.model.aliases import JsonObject

try:
    from pyspark.sql.streaming import datasource as admission
except ImportError:
    admission = None  # type: ignore[assignment]
"""What Spark 4.1 has not yet: limits to a batch, and all that is there now in several batches."""

_OFFSET, _TABLE = "version", "table"
_BASES = (DataSourceStreamReader, *([] if admission is None else [admission.SupportsTriggerAvailableNow]))


class StreamReader(*_BASES):  # type: ignore[misc]
    """Snapshots as offsets; travels to the executors with nothing but the columns."""

    def __init__(self, options: dict[str, str], schema: Any) -> None:
        self._options = options
        self._schema = schema
        self._stream: Any = None
        self._target: int | None = None

    def __getstate__(self) -> JsonObject:
        """All but the open table."""
        return {**self.__dict__, "_stream": None}

    @property
    def stream(self) -> Any:
        """The table, opened when it is first used."""
        if self._stream is None:
            from lancepart.spark.stream import Stream

            self._stream = Stream(self._options, self._schema)
        return self._stream

    def _offset(self, version: int) -> JsonObject:
        """A snapshot, and the table that it is of: one that takes its place has numbers of its own."""
        return {_OFFSET: version, _TABLE: self.stream.salt}

    def _number(self, offset: Any) -> int:
        """The snapshot that an offset names; a checkpoint is a file, and may say anything."""
        found = offset.get(_OFFSET) if isinstance(offset, dict) else None
        if type(found) is int and found >= 0:
            self.stream.refuse_other_table(offset.get(_TABLE))
            return found
        from lancepart.errors import InvalidInputError

        raise InvalidInputError(
            f"the checkpoint has the offset {offset!r}, which lancepart did not write: start with a new checkpoint"
        )

    def initialOffset(self) -> JsonObject:  # noqa: N802
        """Where a new query begins."""
        return self._offset(self.stream.initial())

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """How much a batch has at most; to Spark a snapshot is a file."""
        versions, rows = self.stream.limits()
        if versions is not None:
            return admission.ReadMaxFiles(versions)
        return admission.ReadAllAvailable() if rows is None else admission.ReadMaxRows(rows)

    def latestOffset(self, start: JsonObject | None = None, limit: Any = None) -> JsonObject:  # noqa: N802
        """Where the next batch ends; Spark 4.1 does not say where it starts, and takes all there is."""
        target = self.stream.latest() if self._target is None else self._target
        if start is None:
            self.stream.refuse_limits()
            return self._offset(target)
        versions = limit.max_files if isinstance(limit, admission.ReadMaxFiles) else None
        rows = limit.max_rows if isinstance(limit, admission.ReadMaxRows) else None
        return self._offset(self.stream.until(self._number(start), target, versions=versions, most=rows))

    def reportLatestOffset(self) -> JsonObject | None:  # noqa: N802
        """The newest snapshot there is."""
        return self._offset(self.stream.latest())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Go no further than to the newest snapshot of now."""
        self._target = self.stream.latest()

    def partitions(self, start: JsonObject, end: JsonObject) -> Sequence[InputPartition]:
        """The tasks of a batch; Spark needs at least one."""
        tasks = self.stream.tasks(self._number(start), self._number(end))
        return [InputPartition(task) for task in tasks] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        from lancepart.spark.stream import run

        settle()
        return run(partition.value, self._schema) if partition.value is not None else iter(())


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of a batch's tasks, and publishes them and the batch's number in one commit."""

    def __init__(self, planned: bytes) -> None:
        self._planned = planned

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One task."""
        from lancepart.spark.sink import Sink

        settle()
        return TaskReport(report=Sink.loads(self._planned).write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Publish what the tasks that succeeded wrote, unless the batch is there already."""
        from lancepart.spark.sink import Sink

        reports = [message.report for message in messages if isinstance(message, TaskReport)]
        planned = Sink.loads(self._planned)
        settle()
        planned.commit(reports, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing: no version names the files that were written, and remove_orphans removes them."""
