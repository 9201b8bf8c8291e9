"""Renaming tables, and migrating tables that only directory listing knows into the manifest."""

from __future__ import annotations

import contextlib
import dataclasses

from lance_namespace import RenameTableRequest, RenameTableResponse

from lancepart.catalog import declaring, directories, partitioned, tables
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.tables import Located
from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    LanceNamespaceError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from lancepart.format.names import MANIFEST_PATH
from lancepart.format.rows import table_row
from lancepart.model.ids import check_path, hashed_location, object_id
from lancepart.storage.manifest_rows import TABLE, TABLE_VERSION, Change, Row, now
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import UnreadableError

_LOST = "table {} was removed by another writer at this moment"


def rename(catalog: Catalog, request: RenameTableRequest) -> RenameTableResponse:
    """Give a table another name, or another namespace, in one commit.

    A table in ``<name>.lance`` moves to a hashed directory: its files are cloned there, the manifest is switched over,
    and the old directory is removed. A crash leaves either the old name or the new one, never both or neither.
    """
    catalog.require_manifest("RenameTable")
    path = check_path(request.id, what="table")
    namespace = path[:-1] if request.new_namespace_id is None else tuple(request.new_namespace_id)
    target = check_path([*namespace, request.new_table_name], what="table")
    if target == path:
        raise InvalidInputError(f"table {shown(path)} has that name already")
    try:
        _rename(catalog, path, target)
    except UnreadableError:
        if tables.find(catalog, catalog.snapshot(), path) is None:
            raise TableNotFoundError(_LOST.format(shown(path))) from None
        raise
    return RenameTableResponse()


def _rename(catalog: Catalog, path: tuple[str, ...], target: tuple[str, ...]) -> None:
    snapshot = catalog.snapshot()
    located = tables.require(catalog, snapshot, path)
    tables.refuse_published(located, "rewrite", weak=True)
    partitioned.refuse_owned(snapshot, target, "append")
    _refuse_taken(catalog, snapshot, target)
    if located.row is None:
        located = _adopted(catalog, path)
    if not directories.is_listed(catalog, located.location) or tables.is_shared(snapshot, located):
        _switch(catalog, located, target, located.location)
    else:
        _move(catalog, located, target)


def _refuse_taken(catalog: Catalog, snapshot: Snapshot, target: tuple[str, ...]) -> None:
    tables.require_parent(catalog, snapshot, target)
    if tables.find(catalog, snapshot, target) is not None or snapshot.row(object_id(target)) is not None:
        raise TableAlreadyExistsError(f"table {shown(target)} already exists")


def _move(catalog: Catalog, located: Located, target: tuple[str, ...]) -> None:
    """Rename a table that must leave its ``<name>.lance`` directory."""
    old, new = located.location, hashed_location(object_id(target))
    skip = (directories.RESERVED, directories.DEREGISTERED)
    catalog.files.clone_directory(old, new, skip=skip)
    if catalog.files.is_empty(new):
        catalog.files.put(f"{new}/{directories.RESERVED}")
    directories.keep(catalog, old)
    directories.hide(catalog, old, dropped=True)
    try:
        _switch(catalog, located, target, new)
    except LanceNamespaceError:
        row = catalog.snapshot().row(located.identifier)
        if row is not None and row.location == old:
            directories.unhide(catalog, old)
        else:
            directories.tidy(catalog, old)
        directories.delete(catalog, new)
        raise
    catalog.files.clone_directory(old, new, skip=skip)
    directories.delete(catalog, old)


def _switch(catalog: Catalog, located: Located, target: tuple[str, ...], location: str) -> None:
    """One commit that replaces the old row and its versions' rows by new ones."""
    renamed = object_id(target)
    stamp = now()

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        row = snapshot.row(located.identifier)
        if row is None or row.location != located.location:
            raise TableNotFoundError(_LOST.format(shown(located.path)))
        touches = tables.require_parent(catalog, snapshot, target)
        if snapshot.row(renamed) is not None:
            message = f"table {shown(target)} already exists"
            raise ConcurrentModificationError(message) if retry else TableAlreadyExistsError(message)
        versions = snapshot.below(located.identifier, TABLE_VERSION)
        moved = [dataclasses.replace(row, object_id=renamed, location=location, created_at=stamp)]
        moved += [_moved_version(version, located, renamed, location) for version in versions]
        gone = (located.identifier, *(version.object_id for version in versions))
        return Change(inserts=tuple(moved), deletes=gone, touches=touches), None

    catalog.manifest.transact(plan)


def _moved_version(version: Row, located: Located, renamed: str, location: str) -> Row:
    metadata = dict(version.metadata or {})
    staged = metadata.get(MANIFEST_PATH)
    if isinstance(staged, str) and f"{located.location}/" in staged:
        metadata[MANIFEST_PATH] = staged.replace(f"{located.location}/", f"{location}/", 1)
    number = version.object_id.rsplit("$", 1)[-1]
    return dataclasses.replace(version, object_id=f"{renamed}${number}", metadata=metadata)


def _adopted(catalog: Catalog, path: tuple[str, ...]) -> Located:
    """A table known by listing only, now with a row, on which concurrent renames conflict."""
    _adopt(catalog, [path[0]])
    return tables.require(catalog, catalog.snapshot(), path)


def migrate(catalog: Catalog) -> int:
    """Give every table that only the listing knows a row in the manifest; how many got one."""
    catalog.require_manifest("migrate")
    snapshot = catalog.snapshot()
    known = snapshot.names("", TABLE)
    names = directories.list_names(catalog, known=known)
    return _adopt(catalog, tables.without_rows(snapshot, names))


def _adopt(catalog: Catalog, names: list[str]) -> int:
    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, tuple[Row, ...]]:
        found = snapshot.rows(names)
        rows = tuple(
            table_row(name, directories.v1_location(name))
            for name in names
            if name not in found and directories.exists(catalog, directories.v1_location(name))
        )
        return Change(inserts=rows), rows

    adopted = 0
    for row in catalog.manifest.transact(plan):
        with contextlib.suppress(ConcurrentModificationError):
            declaring.confirm(catalog, row, directories.exists(catalog, row.location or ""))
            adopted += 1
    return adopted
