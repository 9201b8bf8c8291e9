"""What Spark's Python workers run for a scan or a write that the planning service planned: plain values and a call."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyspark_lancepart.messages import plainly


def command(function: Any, schema: Any) -> bytes:
    """A function of batches and the schema of what it returns, as a worker of Spark's reads them."""
    return pickle.dumps((function, schema))


@dataclass(frozen=True, slots=True)
class ReadFunction:
    """The rows of one task, in the Arrow types in which Spark takes a schema's columns."""

    work: bytes
    schema: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the task that the only value of the only batch says."""
        from lancepart.spark.running import run
        from lancepart.spark.types import read_schema
        from pyspark_lancepart import settle

        settle()
        (task,) = [value.as_py() for batch in batches for value in batch.column(0)]
        with plainly():
            yield from run(self.work, task, read_schema(self.schema))


@dataclass(frozen=True, slots=True)
class WriteFunction:
    """One task of a write, which returns its report for the commit."""

    planned: bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The report on the rows, as the only value of a batch."""
        from lancepart.spark import planned_writes
        from pyspark_lancepart import settle

        settle()
        with plainly():
            report = planned_writes.loads(self.planned).write(batches)
        yield pa.record_batch([pa.array([report], pa.binary())], names=["message"])

    @staticmethod
    def schema() -> Any:
        """What Spark expects of a Python data source's write."""
        from pyspark.sql.types import BinaryType, StructField, StructType

        return StructType([StructField("message", BinaryType())])
