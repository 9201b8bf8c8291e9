"""The directory catalog."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lancepart.catalog.namespace import DirectoryNamespace

__all__ = ["DirectoryNamespace"]


def __getattr__(name: str) -> Any:
    """Import the catalog's facade, and the models of all requests with it, when it is first used."""
    if name == "DirectoryNamespace":
        return import_module("lancepart.catalog.namespace").DirectoryNamespace
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
