"""Libraries that only some calls need."""

from __future__ import annotations

from importlib.util import find_spec

from lancepart.errors import UnsupportedOperationError


def require(library: str, call: str) -> None:
    """Fail with the command that installs a library if it is missing.

    >>> require("pyarrow", "to_arrow")
    """
    if find_spec(library) is None:
        raise UnsupportedOperationError(f"{call} needs {library}, which is not installed: pip install {library}")
