"""Partitioned Lance tables for Python and Spark."""

from lancepart.catalog import DirectoryNamespace

__all__ = ["DirectoryNamespace"]
