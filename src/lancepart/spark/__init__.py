"""Partitioned tables on Spark: a session with everything set, and the data source ``lancepart``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lancepart.maintain.leaf_maintenance import MaintenanceResult
    from lancepart.model.aliases import Distribution
    from lancepart.spark.importing import Imported
    from lancepart.table import PartitionedTable, Partitioning

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


def import_table(
    spark: SparkSession,
    source: str | os.PathLike[str] | DataFrame,
    root: str | os.PathLike[str],
    partition_by: Partitioning = (),
    *,
    format: str | None = None,
    name: str | None = None,
    version: int | None = None,
    files_per_commit: int = 32,
    storage_options: Mapping[str, str] | None = None,
    progress: bool = True,
) -> Imported:
    """Import Parquet, Delta, Iceberg or anything that Spark reads; run again, it continues with what is left.

    Each commit imports some of the source's files, and records them; the rows of each are counted and compared.
    """
    from lancepart.spark.importing import import_table as run

    return run(
        spark,
        source,
        root,
        partition_by,
        format=format,
        name=name,
        version=version,
        files_per_commit=files_per_commit,
        storage_options=storage_options,
        progress=progress,
    )


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


def upsert_batches(
    table: PartitionedTable,
    on: Sequence[str],
    *,
    idempotency_key: str | None = None,
    distribution: Distribution = "auto",
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that upserts each batch of a query exactly once.

    The query is identified by its id, or by ``idempotency_key`` where the session has no id (Spark Connect) or where
    one query upserts into one table more than once.
    """
    from lancepart.spark.sink import upsert_batches as made

    return made(table, on, idempotency_key=idempotency_key, distribution=distribution)


def __dir__() -> list[str]:
    """The public names and nothing else, for completion."""
    return __all__
