"""Partitioned tables on Spark: a session with everything set, and the data source ``lancepart``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lancepart.spark.session import configure, session
from lancepart.table import PartitionedTable

if TYPE_CHECKING:
    from lancepart.spark.importing import Imported

__all__ = ["configure", "import_table", "session", "upsert_batches"]


def import_table(spark: Any, source: Any, root: Any, partition_by: Any = (), **options: Any) -> Imported:
    """Import Parquet, Delta, Iceberg or anything that Spark reads; run again it does only what is left to do."""
    from lancepart.spark.importing import import_table as run

    return run(spark, source, root, partition_by, **options)


def upsert_batches(table: PartitionedTable, on: Sequence[str], **options: Any) -> Callable[[Any, int], None]:
    """A function for ``foreachBatch`` that upserts each batch of a query exactly once."""
    from lancepart.spark.sink import upsert_batches as made

    return made(table, on, **options)
