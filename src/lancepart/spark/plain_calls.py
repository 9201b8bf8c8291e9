"""The procedures on plain Lance tables: Lance does the work, in one process, and its answer becomes rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from lancepart.errors import (
    InvalidInputError,
    TableIndexNotFoundError,
    TableTagNotFoundError,
    UnsupportedOperationError,
)
from lancepart.layout.declared_indices import Index, kind_of
from lancepart.layout.plain import open_plain
from lancepart.maintain import indices
from lancepart.maintain.leaf_maintenance import MaintenanceResult
from lancepart.model.aliases import Value
from lancepart.model.suggest import near
from lancepart.storage import plain_upkeep
from lancepart.storage.root import Root

Given = Mapping[str, Value]


def compact(root: Root, location: str, given: Given) -> MaintenanceResult:
    """Put small fragments together."""
    removed, version = plain_upkeep.compact(root, location, given["target_rows"])
    return MaintenanceResult(action="compact", changed=int(removed > 0), version=version)


def create_index(root: Root, location: str, given: Given) -> MaintenanceResult:
    """Build an index over the table."""
    schema, column = open_plain(root, location, None).schema, given["column"]
    if column not in schema.names:
        raise InvalidInputError(f"there is no column {column!r} to index{near(str(column), schema.names)}")
    if given["where"] is not None:
        raise InvalidInputError("a plain Lance table has no partitions: leave out where")
    kind = indices.default_kind(schema.field(column).type) if given["kind"] is None else kind_of(given["kind"])
    index = Index(name=given["name"] or f"{column}_idx", column=0, kind=kind, params=dict(given["params"]))
    indices.check(index, schema.field(column).type)
    rows = open_plain(root, location, None).count_rows()
    params = indices.fitted(index, rows)
    if params is None:
        raise InvalidInputError(
            f"{rows} rows are too few for an index of the kind {kind}: at least {indices.least_rows(index)}"
        )
    version = plain_upkeep.create_index(root, location, column, kind, index.name, **params)
    return MaintenanceResult(action="create_index", changed=1, version=version)


def optimize_indices(root: Root, location: str, given: Given) -> MaintenanceResult:
    """Let indices cover rows that came since."""
    found, version = plain_upkeep.optimize_indices(root, location)
    return MaintenanceResult(action="optimize_indices", changed=int(found > 0), version=version)


def drop_index(root: Root, location: str, given: Given) -> MaintenanceResult:
    """Remove an index."""
    version = plain_upkeep.drop_index(root, location, given["name"])
    if version is None:
        raise TableIndexNotFoundError(f"there is no index {given['name']!r}")
    return MaintenanceResult(action="drop_index", changed=1, version=version)


def expire(root: Root, location: str, given: Given) -> MaintenanceResult:
    """Forget old versions, with the files that only they needed."""
    limit = given["limit"]
    age = limit if isinstance(limit, timedelta) else datetime.now(UTC) - limit
    done = plain_upkeep.cleanup(root, location, age)
    return MaintenanceResult(
        action="expire",
        changed=done.old_versions,
        removed_files=done.data_files_removed,
        freed_bytes=done.bytes_removed,
    )


def rollback(root: Root, location: str, given: Given) -> Mapping[str, Value]:
    """Bring back the rows of an older version."""
    wanted = given["snapshot"]
    if isinstance(wanted, datetime):
        raise UnsupportedOperationError("a plain Lance table goes back to a version or a tag, not to a moment")
    open_plain(root, location, wanted)
    return {"version": plain_upkeep.restore(root, location, wanted)}


def create_tag(root: Root, location: str, given: Given) -> Mapping[str, Value]:
    """Name a version."""
    return {"name": given["name"], "version": plain_upkeep.create_tag(root, location, given["name"], given["version"])}


def drop_tag(root: Root, location: str, given: Given) -> Mapping[str, Value]:
    """Take a name away."""
    version = plain_upkeep.drop_tag(root, location, given["name"])
    if version is None:
        raise TableTagNotFoundError(f"there is no tag {given['name']!r}")
    return {"name": given["name"], "version": version}


PROCEDURES: Mapping[str, Callable[[Root, str, Given], MaintenanceResult | Mapping[str, Value]]] = {
    each.__name__: each
    for each in (compact, create_index, optimize_indices, drop_index, expire, rollback, create_tag, drop_tag)
}


def refusal(procedure: str, table: str) -> UnsupportedOperationError:
    """The error for a procedure that a plain table has no use for."""
    return UnsupportedOperationError(
        f"table {table} is a plain Lance table, for which there is no {procedure}: of procedures it has "
        f"{', '.join(PROCEDURES)}; CREATE TABLE … PARTITIONED BY … AS SELECT makes a partitioned one of it"
    )
