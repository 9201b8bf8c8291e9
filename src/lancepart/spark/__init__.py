"""Partitioned tables on Spark: a session with everything set, and the data source ``lancepart``."""

from collections.abc import Callable, Sequence
from typing import Any

from lancepart.spark.session import configure, session
from lancepart.table import PartitionedTable

__all__ = ["configure", "session", "upsert_batches"]


def upsert_batches(table: PartitionedTable, on: Sequence[str], **options: Any) -> Callable[[Any, int], None]:
    """A function for ``foreachBatch`` that upserts each batch of a query exactly once."""
    from lancepart.spark.sink import upsert_batches as made

    return made(table, on, **options)
