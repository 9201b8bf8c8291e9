"""Defer the import of ``lance_namespace``'s REST client, which takes a second, when only its errors are needed."""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType
from typing import Any

_LOCK = RLock()
_PENDING = "__lancepart_pending__"


class _Deferred(ModuleType):
    """A package whose ``__init__`` runs when one of its names is first used; its submodules can be imported before.

    The standard library's ``LazyLoader`` does not do: importing a submodule would run the package's ``__init__``.
    """

    def __getattr__(self, name: str) -> Any:
        with _LOCK:
            loader = self.__dict__.pop(_PENDING, None)
            if loader is not None:
                try:
                    loader.exec_module(self)
                except BaseException:
                    self.__dict__[_PENDING] = loader
                    raise
                self.__class__ = ModuleType  # type: ignore[assignment]
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def defer(package: str) -> None:
    """Defer a package's ``__init__`` until one of its names is used; nothing happens if it was imported before."""
    if package in sys.modules:
        return
    spec = find_spec(package)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    module.__dict__[_PENDING] = spec.loader
    module.__class__ = _Deferred
    sys.modules[package] = module
    parent, _, name = package.rpartition(".")
    if parent:
        setattr(sys.modules[parent], name, module)


for _package in ("lance_namespace", "lance_namespace_urllib3_client", "lance_namespace_urllib3_client.models"):
    defer(_package)
