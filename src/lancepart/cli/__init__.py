"""The command ``lancepart``."""

from importlib import import_module
from typing import Any


def register(module: str, app: Any) -> None:
    """Add the commands of a module to an application; it is imported now, since few runs need more than one."""
    import_module(f"{__name__}.{module}").register(app)
