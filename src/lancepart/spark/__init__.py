"""Partitioned tables on Spark: a session with everything set, and the data source ``lancepart``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lancepart.spark.session import configure, session
from lancepart.table import PartitionedTable

if TYPE_CHECKING:
    from lancepart.maintain.leaf_maintenance import MaintenanceResult
    from lancepart.spark.importing import Imported

__all__ = ["configure", "import_table", "remove_orphans", "session", "upsert_batches"]


def import_table(spark: Any, source: Any, root: Any, partition_by: Any = (), **options: Any) -> Imported:
    """Import Parquet, Delta, Iceberg or anything that Spark reads; run again it does only what is left to do."""
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
