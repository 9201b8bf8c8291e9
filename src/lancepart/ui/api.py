"""The routes of the explorer: each reads, none writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lancepart.errors import (
    InvalidInputError,
    LanceNamespaceError,
    NamespaceNotFoundError,
    TableNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)
from lancepart.ui import about, history, partitions, rows
from lancepart.ui.explorer import Explorer
from lancepart.ui.params import Params
from lancepart.ui.partitions import Answer

Route = Callable[[Explorer, Params], Answer]

ROUTES: Mapping[str, Route] = {
    "tables": about.tables,
    "table": about.table,
    "indices": about.indices,
    "health": about.health,
    "tree": partitions.tree,
    "map": partitions.map_of,
    "plan": partitions.plan,
    "skew": partitions.skew,
    "snapshots": history.snapshots,
    "diff": history.diff,
    "changes": history.changes,
    "schema": history.schema,
    "rows": rows.rows,
    "search": rows.search,
}
IMAGE = "image"

_MISSING = (NamespaceNotFoundError, TableNotFoundError, TableTagNotFoundError, TableVersionNotFoundError)


def params_of(query: Mapping[str, list[str]]) -> Params:
    """The parameters of a URL; one that is given twice is refused."""
    for name, values in query.items():
        if len(values) > 1:
            raise InvalidInputError(f"the parameter {name!r} is given {len(values)} times")
    return Params({name: values[0] for name, values in query.items()})


def status_of(error: Exception) -> int:
    """The HTTP status of an error."""
    if isinstance(error, _MISSING):
        return 404
    return 400 if isinstance(error, LanceNamespaceError) else 500


def message_of(error: Exception) -> str:
    """What the page says of an error: our own errors in full, of others only the kind."""
    if isinstance(error, LanceNamespaceError):
        return " ".join(str(error).split())[:2000]
    return f"{type(error).__name__}: the log of the server says more"
