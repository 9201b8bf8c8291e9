"""Partitioned tables on Spark: a session with everything set, and the data source ``lancepart``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lancepart.maintain.leaf_maintenance import MaintenanceResult
    from lancepart.spark.importing import Imported
    from lancepart.table import PartitionedTable

__all__ = ["cancel", "configure", "import_table", "jar", "remove_orphans", "session", "upsert_batches"]


def session(master: str | None = None, *, warehouse: str | None = None, **conf: object) -> SparkSession:
    """A Spark session that reads partitioned tables; ``conf`` are further settings, under their full names.

    Without a ``master`` it is the one that ``spark-submit``, the settings or ``SPARK_MASTER`` name, or that of the
    session which runs already, or ``local[*]``.
    """
    from lancepart.spark import session_builder

    return session_builder.session(master, warehouse=warehouse, **conf)


def configure(builder: SparkSession.Builder, *, warehouse: str | None = None) -> SparkSession.Builder:
    """Configure a session's builder for partitioned tables: the jar, the workers' Python, the settings of joins.

    With a warehouse, a path or a URI, its tables are those of the catalog ``lance``. A builder that connects to a
    running Spark Connect server gets only what a client may set there. A JVM or a session that runs already, as under
    ``spark-submit``, is given the jar.
    """
    from lancepart.spark import session_builder

    return session_builder.configure(builder, warehouse=warehouse)


def jar() -> str:
    """The path of the jar, for a server or cluster that another program starts with it."""
    from lancepart.spark import session_builder

    return session_builder.jar()


def cancel(spark: SparkSession, *, group: str | None = None, tag: str | None = None) -> int:
    """Cancel statements such as ``DELETE`` and ``CALL`` that run without a Spark job; how many there were.

    Those of a job group (``sparkContext.setJobGroup``), those with a job tag (``sparkContext.addJobTag``; a tag that
    ``spark.addTag`` set may not be found), or all of the driver. A statement stops at its next step.
    """
    from lancepart.spark import cancelling

    return cancelling.cancel(spark, group=group, tag=tag)


def import_table(spark: Any, source: Any, root: Any, partition_by: Any = (), **options: Any) -> Imported:
    """Import Parquet, Delta, Iceberg or anything that Spark reads; run again, it continues with what is left."""
    from lancepart.spark.importing import import_table as run

    return run(spark, source, root, partition_by, **options)


def remove_orphans(
    warehouse: str | os.PathLike[str],
    older_than: timedelta | datetime = timedelta(days=3),
    dry_run: bool = False,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> MaintenanceResult:
    """Remove directories of a warehouse that statements which failed left behind, and that no row of it names.

    ``older_than`` must be longer than the longest statement that makes a table.
    """
    from lancepart.queries.warehouse import Warehouse
    from lancepart.spark.garbage import remove_orphans as run

    return run(Warehouse.at(warehouse, storage_options), older_than, dry_run=dry_run)


def upsert_batches(table: PartitionedTable, on: Sequence[str], **options: Any) -> Callable[[Any, int], None]:
    """A function for ``foreachBatch`` that upserts each batch of a query exactly once."""
    from lancepart.spark.sink import upsert_batches as made

    return made(table, on, **options)
