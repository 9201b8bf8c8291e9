"""Partitioned Lance tables for Python and Spark."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lancepart import deferred as _deferred  # noqa: F401
from lancepart import errors
from lancepart.spark import engine as _engine

if TYPE_CHECKING:
    from lancepart import spark
    from lancepart.catalog import DirectoryNamespace
    from lancepart.commit.merge import Merge
    from lancepart.commit.result import CommitResult
    from lancepart.commit.transaction import Transaction
    from lancepart.maintain.changes import Changes
    from lancepart.maintain.describe import TableDescription
    from lancepart.maintain.inspect import Inspect
    from lancepart.maintain.leaf_maintenance import MaintenanceResult
    from lancepart.maintain.maintenance import Maintenance
    from lancepart.maintain.tags import Tags
    from lancepart.model.config import config
    from lancepart.model.spec import PartitionField, PartitionSpec
    from lancepart.plan.planner import Plan
    from lancepart.queries.connection import Connection, connect, sql
    from lancepart.queries.query import Query
    from lancepart.read.dataset import PartitionedDataset
    from lancepart.read.join import Join
    from lancepart.read.result import Result
    from lancepart.read.scan import Scan
    from lancepart.read.search import Search
    from lancepart.table import PartitionedTable, create_table, drop_table, exists, open_table, scan_polars, upgrade
    from lancepart.table.loading import create_table_from, load

    __version__: str

_engine.install()

__all__ = [
    "Changes",
    "CommitResult",
    "Connection",
    "DirectoryNamespace",
    "Inspect",
    "Join",
    "Maintenance",
    "MaintenanceResult",
    "Merge",
    "PartitionField",
    "PartitionSpec",
    "PartitionedDataset",
    "PartitionedTable",
    "Plan",
    "Query",
    "Result",
    "Scan",
    "Search",
    "TableDescription",
    "Tags",
    "Transaction",
    "__version__",
    "config",
    "connect",
    "create_table",
    "create_table_from",
    "drop_table",
    "errors",
    "exists",
    "load",
    "open_table",
    "scan_polars",
    "spark",
    "sql",
    "upgrade",
]

_MODULES = {
    "Changes": "lancepart.maintain.changes",
    "CommitResult": "lancepart.commit.result",
    "Connection": "lancepart.queries.connection",
    "DirectoryNamespace": "lancepart.catalog",
    "Inspect": "lancepart.maintain.inspect",
    "Join": "lancepart.read.join",
    "Maintenance": "lancepart.maintain.maintenance",
    "MaintenanceResult": "lancepart.maintain.leaf_maintenance",
    "Merge": "lancepart.commit.merge",
    "PartitionField": "lancepart.model.spec",
    "PartitionSpec": "lancepart.model.spec",
    "PartitionedDataset": "lancepart.read.dataset",
    "PartitionedTable": "lancepart.table",
    "Plan": "lancepart.plan.planner",
    "Query": "lancepart.queries.query",
    "Result": "lancepart.read.result",
    "Scan": "lancepart.read.scan",
    "Search": "lancepart.read.search",
    "TableDescription": "lancepart.maintain.describe",
    "Tags": "lancepart.maintain.tags",
    "Transaction": "lancepart.commit.transaction",
    "config": "lancepart.model.config",
    "connect": "lancepart.queries.connection",
    "create_table": "lancepart.table",
    "create_table_from": "lancepart.table.loading",
    "drop_table": "lancepart.table",
    "exists": "lancepart.table",
    "load": "lancepart.table.loading",
    "open_table": "lancepart.table",
    "scan_polars": "lancepart.table",
    "sql": "lancepart.queries.connection",
    "upgrade": "lancepart.table",
}


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is first used, so that ``import lancepart`` costs little."""
    if name == "spark":
        return import_module("lancepart.spark")
    if name == "__version__":
        return import_module("importlib.metadata").version("lancepart")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names and nothing else, for completion; most of them are not imported yet."""
    return sorted(__all__)
