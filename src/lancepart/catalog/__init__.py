"""The directory catalog."""

from lancepart.catalog.namespace import DirectoryNamespace

__all__ = ["DirectoryNamespace"]
