"""Partitioned Lance tables for Python and Spark."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lancepart import deferred as _deferred  # noqa: F401
from lancepart import errors
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.table import PartitionedTable, create_table, open_table, upgrade

if TYPE_CHECKING:
    from lancepart import spark
    from lancepart.catalog import DirectoryNamespace
    from lancepart.storage.cache import config

__all__ = [
    "DirectoryNamespace",
    "PartitionField",
    "PartitionSpec",
    "PartitionedTable",
    "config",
    "create_table",
    "errors",
    "open_table",
    "spark",
    "upgrade",
]


def __getattr__(name: str) -> Any:
    """Import what not everyone who reads tables needs when it is first used: the catalog, Spark, the settings."""
    if name == "spark":
        return import_module("lancepart.spark")
    if name == "DirectoryNamespace":
        return import_module("lancepart.catalog").DirectoryNamespace
    if name == "config":
        return import_module("lancepart.storage.cache").config
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
