"""The front door: ``PartitionedTable`` and the functions that create, open, fill and remove tables."""

from lancepart.table.functions import (
    Partitioning,
    create_table,
    discard_new_table,
    drop_table,
    exists,
    is_same_snapshot,
    open_held,
    open_pinned,
    open_table,
    scan_polars,
    upgrade,
)
from lancepart.table.partitioned import PartitionedTable

__all__ = [
    "PartitionedTable",
    "Partitioning",
    "create_table",
    "discard_new_table",
    "drop_table",
    "exists",
    "is_same_snapshot",
    "open_held",
    "open_pinned",
    "open_table",
    "scan_polars",
    "upgrade",
]
