"""Partitioned Lance tables for Python and Spark."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from lancepart import errors
from lancepart.catalog import DirectoryNamespace
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.table import PartitionedTable, create_table, open_table, upgrade

if TYPE_CHECKING:
    from lancepart import spark

__all__ = [
    "DirectoryNamespace",
    "PartitionField",
    "PartitionSpec",
    "PartitionedTable",
    "create_table",
    "errors",
    "open_table",
    "spark",
    "upgrade",
]


def __getattr__(name: str) -> ModuleType:
    """Import ``lancepart.spark`` when it is first used: not everyone who reads tables has Spark."""
    if name == "spark":
        return import_module("lancepart.spark")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
