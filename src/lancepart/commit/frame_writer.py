"""Who writes the rows of a Spark DataFrame: handed in by the package, so that commits depend on no engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from lancepart.errors import UnsupportedOperationError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from lancepart.commit.write_job import WriteJob, WriteResult


class FrameWriter(Protocol):
    """An engine whose tasks write fragments for a commit."""

    def stage(self, job: WriteJob, frame: DataFrame, schema: pa.Schema, distribution: str) -> list[WriteResult]:
        """Write the rows of a DataFrame; what each task reports."""


class NoFrameWriter:
    """What there is before an engine is handed in."""

    def stage(self, job: WriteJob, frame: DataFrame, schema: pa.Schema, distribution: str) -> list[WriteResult]:
        """Refuse it."""
        raise UnsupportedOperationError("Spark DataFrames are written by lancepart.spark: import lancepart first")


_writers: list[FrameWriter] = [NoFrameWriter()]


def install(writer: FrameWriter) -> None:
    """Hand in the engine that writes DataFrames from now on."""
    _writers[0] = writer


def frame_writer() -> FrameWriter:
    """The engine that writes DataFrames."""
    return _writers[0]
