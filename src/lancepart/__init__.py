"""Partitioned Lance tables for Python and Spark."""

from lancepart import errors
from lancepart.catalog import DirectoryNamespace

__all__ = ["DirectoryNamespace", "errors"]
