"""Partitioned Lance tables for Python and Spark."""

from lancepart import errors
from lancepart.catalog import DirectoryNamespace
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.table import PartitionedTable, create_table, open_table, upgrade

__all__ = [
    "DirectoryNamespace",
    "PartitionField",
    "PartitionSpec",
    "PartitionedTable",
    "create_table",
    "errors",
    "open_table",
    "upgrade",
]
