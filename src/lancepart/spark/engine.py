"""Where the package puts its parts together: Spark does what the rooms below it hand over, imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lancepart.commit import frame_writer
from lancepart.read import engine

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from lancepart.commit.write_job import WriteJob, WriteResult
    from lancepart.read.engine import Executor
    from lancepart.read.join import Join
    from lancepart.read.scan import Scan
    from lancepart.read.search_request import BatchRequest


class SparkEngine:
    """Scans, joins, writes and maintenance on Spark's executors."""

    def scan(self, scan: Scan, session: SparkSession, tasks: int | None) -> DataFrame:
        """The rows of a scan."""
        from lancepart.spark import tasks as plans

        return plans.scan(scan, session, tasks)

    def join(self, join: Join, session: SparkSession, tasks: int | None) -> DataFrame:
        """The rows of a join."""
        from lancepart.spark import tasks as plans

        return plans.join(join, session, tasks)

    def search(self, scan: Scan, queries: DataFrame, request: BatchRequest) -> DataFrame:
        """The best rows of a scan for each row of a DataFrame."""
        from lancepart.spark import searching

        return searching.search_batch(scan, queries, request)

    def executor(self, session: SparkSession) -> Executor:
        """What does work in pieces."""
        from lancepart.spark.spread import SparkExecutor

        return SparkExecutor(session)

    def stage(self, job: WriteJob, frame: DataFrame, schema: pa.Schema, distribution: str) -> list[WriteResult]:
        """Write the rows of a DataFrame; what each task reports."""
        from lancepart.spark import frames

        return frames.stage(job, frame, schema, distribution)


def install() -> None:
    """Hand Spark to the rooms that run plans on it."""
    spark = SparkEngine()
    engine.install(spark)
    frame_writer.install(spark)
