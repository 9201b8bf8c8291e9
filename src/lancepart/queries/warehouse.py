"""A warehouse: a directory catalog of many tables, in which a partitioned table is one namespace row.

The row says in ``lancepart.root`` in which directory the table has its own root, so that any client still reads a valid
catalog. A table is there when its row is: a directory without a row is garbage, and a drop removes the row first.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lance_namespace import (
    CreateNamespaceRequest,
    DropNamespaceRequest,
    DropTableRequest,
    ListTablesRequest,
    RenameTableRequest,
)

from lancepart.catalog import directories, dropping, namespaces, partitioned, rename, tables
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.properties import as_properties, identity, own_root, refuse_own
from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    LanceNamespaceError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from lancepart.format.names import IDENTITY, LOCATION, METADATA, OBJECT_TYPE, OWN_ROOT, SALT
from lancepart.format.rows import namespace_row
from lancepart.layout.opening import moved
from lancepart.model.aliases import JsonMapping
from lancepart.model.ids import check_path, hashed_location, object_id
from lancepart.storage import removal
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import NAMESPACE, Change, Row, RowUpdate, metadata_update, now
from lancepart.storage.snapshot import Snapshot

_OPTION, _STORAGE = "option.", "storage."
Path = Sequence[str]
Properties = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A table of the warehouse: in which directory, what the catalog keeps of it, and whether it is partitioned."""

    location: str
    properties: Properties
    partitioned: bool = True
    identity: str | None = None


def _is_partitioned(entry: Entry | None) -> bool:
    return entry is not None and entry.partitioned


@dataclass(frozen=True, slots=True)
class Warehouse:
    """What SQL does with namespaces and tables, each in one commit of the catalog."""

    catalog: Catalog

    @classmethod
    def at(cls, root: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Warehouse:
        """The warehouse at a path or a URI; touches no storage."""
        options = {f"storage.{key}": value for key, value in (storage_options or {}).items()}
        return cls(Catalog.of({"root": root, **options}))

    def namespaces(self, path: Path) -> list[str]:
        """The names directly beneath a namespace, without those of tables."""
        snapshot = self.catalog.snapshot()
        self._require(snapshot, path)
        return [name for name, root in _children(snapshot, path) if root is None]

    def properties(self, path: Path) -> dict[str, str]:
        """The properties of a namespace; the root has none to show."""
        row = self._require(self.catalog.snapshot(), path)
        return {} if row is None else as_properties(row.metadata)

    def create_namespace(self, path: Path, properties: Properties) -> None:
        """Make a namespace."""
        self._require(self.catalog.snapshot(), path[:-1])
        request = CreateNamespaceRequest(id=list(path), properties=dict(_allowed(properties)))
        namespaces.create(self.catalog, request)

    def alter_namespace(self, path: Path, changes: Mapping[str, str | None]) -> None:
        """Set or, with ``None``, remove properties of a namespace."""
        if not check_path(path, what="namespace", root_allowed=True):
            raise InvalidInputError("the root of the warehouse has no properties to change")
        self._require(self.catalog.snapshot(), path)
        self._alter(path, changes)

    def alter_properties(self, path: Path, changes: Mapping[str, str | None]) -> None:
        """Set or, with ``None``, remove properties of a partitioned table."""
        if not self.find(path).partitioned:
            raise InvalidInputError(f"table {shown(path)} is a plain Lance table: its properties can't be changed here")
        self._alter(path, changes)

    def _alter(self, path: Path, changes: Mapping[str, str | None]) -> None:
        _allowed(changes)
        identifier = object_id(path)

        def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
            row = self.catalog.require_namespace(snapshot, path)
            assert row is not None
            kept = {**(row.metadata or {}), **changes}
            metadata = {key: value for key, value in kept.items() if value is not None}
            return Change(updates=(metadata_update(identifier, metadata),)), None

        self.catalog.manifest.transact(plan)

    def drop_namespace(self, path: Path, *, cascade: bool) -> None:
        """Remove a namespace, with its content if ``cascade`` is set; files are removed after rows."""
        self._require(self.catalog.snapshot(), path)
        behavior = "Cascade" if cascade else "Restrict"
        namespaces.drop(self.catalog, DropNamespaceRequest(id=list(path), behavior=behavior))

    def tables(self, path: Path) -> list[str]:
        """The names of the tables directly in a namespace, partitioned or not."""
        snapshot = self.catalog.snapshot()
        self._require(snapshot, path)
        plain = tables.list_tables(self.catalog, ListTablesRequest(id=list(path))).tables
        return sorted({*plain, *(name for name, root in _children(snapshot, path) if root is not None)})

    def find(self, path: Path, snapshot: Snapshot | None = None) -> Entry:
        """A table, or TableNotFound; in the newest snapshot of the catalog, unless the caller has it already.

        A snapshot keeps what it said of a partitioned table. Plain ones are found by listing files, which may change.
        """
        names, among = tuple(check_path(path, what="table")), snapshot or self.catalog.snapshot()
        found = among.derived(("entry", names), lambda: self._find(among, names), _is_partitioned)
        if found is None:
            raise TableNotFoundError(f"table {shown(path)} does not exist")
        return found

    def _find(self, snapshot: Snapshot, path: Path) -> Entry | None:
        row = snapshot.row(object_id(path))
        location = own_root(row.metadata or {}) if row is not None and row.object_type == NAMESPACE else None
        if row is not None and location is not None:
            metadata = row.metadata
            return Entry(location=location, properties=as_properties(metadata), identity=identity(metadata))
        located = tables.find(self.catalog, snapshot, path)
        if located is None or located.is_published:
            return None
        return Entry(location=located.location, properties=located.properties, partitioned=False)

    def place(self, path: Path) -> tuple[str, Entry | None]:
        """A directory for a new table, and the table that has its name now."""
        check_path(path, what="table")
        snapshot = self.catalog.snapshot()
        self._require(snapshot, path[:-1])
        there = self._find(snapshot, path)
        if there is None and snapshot.row(object_id(path)) is not None:
            raise TableAlreadyExistsError(f"{shown(path)} already exists, and is a namespace")
        return hashed_location(object_id(path)).removesuffix(".lance"), there

    def publish(self, path: Path, location: str, properties: Properties, *, replaced: str | None) -> None:
        """Insert the row of a directory; it replaces the row of that name if ``replaced`` is its location."""
        identifier = object_id(path)
        metadata = {**self._identified(location), **_allowed(properties)}
        fresh = namespace_row(identifier, metadata=metadata)

        def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, str | None]:
            self._require(snapshot, path[:-1])
            touches = (object_id(path[:-1]),) if len(path) > 1 else ()
            there = self._find(snapshot, path)
            if there is not None and there.location == location:
                return Change(), None
            if replaced is None:
                if snapshot.row(identifier) is not None or there is not None:
                    raise TableAlreadyExistsError(f"table {shown(path)} already exists")
                return Change(inserts=(fresh,), touches=touches), None
            if there is None or there.location != replaced:
                raise ConcurrentModificationError(f"table {shown(path)} was replaced or dropped by another writer")
            if not there.partitioned:
                return replace(self._instead_of_plain(snapshot, path, fresh), touches=touches), None
            update = metadata_update(identifier, metadata)
            return Change(updates=(update,), touches=touches), there.identity

        before = self.catalog.snapshot().row(identifier)
        self._claim(path, location)
        known = self.catalog.manifest.transact(plan)
        try:
            self._claim(path, location)
        except ConcurrentModificationError:
            self._take_back(path, location, before)
            raise
        if replaced is not None and before is not None and own_root(before.metadata) is not None:
            self.discard(replaced, known)
        elif replaced is not None:
            directories.remove_unnamed(self.catalog, replaced)

    def _instead_of_plain(self, snapshot: Snapshot, path: Path, fresh: Row) -> Change:
        """The change by which a partitioned table takes the name of a plain one, and its row if that has one."""
        row = snapshot.row(fresh.object_id)
        if row is None:
            return Change(inserts=(fresh,))
        if snapshot.below(fresh.object_id, limit=1):
            raise UnsupportedOperationError(
                f"the catalog keeps the versions of table {shown(path)}, which is a plain Lance table: drop it first"
            )
        values = {name: fresh.value(name) for name in (OBJECT_TYPE, LOCATION, METADATA)}
        return Change(updates=(RowUpdate(object_id=row.object_id, values=values),))

    def _claim(self, path: Path, location: str) -> None:
        """Refuse to publish a table that took so long to make that a sweep of the warehouse has begun to remove it."""
        if not removal.claim(self.catalog.files, self.catalog.root, location):
            raise ConcurrentModificationError(
                f"table {shown(path)} took longer to make than remove_orphans keeps files of a table that is not "
                "finished, so that it may be gone: run it again, and let remove_orphans keep files longer"
            )

    def _take_back(self, path: Path, location: str, before: Row | None) -> None:
        """Remove the row of a table that a sweep removed at this moment, or put back the one that it replaced."""

        def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
            there = self._find(snapshot, path)
            if there is None or there.location != location:
                return Change(), None
            if before is None or own_root(before.metadata) == location:
                return Change(deletes=(object_id(path),)), None
            values = {name: before.value(name) for name in (OBJECT_TYPE, LOCATION, METADATA)}
            return Change(updates=(RowUpdate(object_id=before.object_id, values=values),)), None

        self.catalog.manifest.transact(plan)

    def _identified(self, location: str) -> dict[str, str]:
        """What a row says of its table: where it is, and the random id that its own manifest has too."""
        known = Manifest(moved(self.catalog.root, location)).snapshot().properties.get(SALT)
        return {OWN_ROOT: location, **({IDENTITY: known} if known else {})}

    def drop(self, path: Path) -> bool:
        """Remove a table: its row first, then its files; say whether there was one."""
        found = self._find(self.catalog.snapshot(), path)
        if found is None:
            return False
        if not found.partitioned:
            dropping.drop(self.catalog, DropTableRequest(id=list(path)))
            return True

        def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, Entry | None]:
            there = self._find(snapshot, path)
            if there is None or not there.partitioned:
                return Change(), found if retry and not directories.is_named(snapshot, found.location) else None
            _refuse_inner(snapshot, path)
            removal.refuse_other_table(self.catalog.root, there.location, _meant(there.identity))
            return Change(deletes=(object_id(path),)), there

        dropped = self.catalog.manifest.transact(plan)
        if dropped is not None:
            self.discard(dropped.location, dropped.identity)
        return dropped is not None

    def rename(self, path: Path, target: Path) -> None:
        """Give a table another name or namespace; a partitioned one stays where it is."""
        check_path(target, what="table")
        if not self.find(path).partitioned:
            request = RenameTableRequest(id=list(path), new_namespace_id=list(target[:-1]), new_table_name=target[-1])
            rename.rename(self.catalog, request)
            return

        def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
            row = snapshot.row(object_id(path))
            if row is None or own_root(row.metadata or {}) is None:
                raise TableNotFoundError(f"table {shown(path)} does not exist")
            _refuse_inner(snapshot, path)
            self._require(snapshot, target[:-1])
            if snapshot.row(object_id(target)) is not None or self._find(snapshot, target) is not None:
                raise TableAlreadyExistsError(f"table {shown(target)} already exists")
            touches = (object_id(target[:-1]),) if len(target) > 1 else ()
            moved = replace(row, object_id=object_id(target), created_at=now())
            return Change(inserts=(moved,), deletes=(row.object_id,), touches=touches), None

        self.catalog.manifest.transact(plan)

    def discard(self, location: str, identity: str | None = None) -> None:
        """Remove a directory that no row names any more, if it holds a partitioned table of ours.

        A directory that can't be read or removed is left to a sweep of the warehouse, and must not hide the outcome of
        the statement.
        """
        with contextlib.suppress(LanceNamespaceError, OSError):
            if not self.names(location):
                removal.remove_root(self.catalog.files, self.catalog.root, location, _meant(identity))

    def names(self, location: str) -> bool:
        """Whether a row of the catalog, as it is now, names a directory, one in it, or one that it is in."""
        return directories.is_named(self.catalog.snapshot(), location)

    def _require(self, snapshot: Snapshot, path: Path) -> Row | None:
        """The row of a namespace that is no table, ``None`` for the root, or NamespaceNotFound."""
        row = self.catalog.require_namespace(snapshot, check_path(path, what="namespace", root_allowed=True))
        if row is not None and own_root(row.metadata or {}) is not None:
            raise NamespaceNotFoundError(f"{shown(path)} is a table, not a namespace")
        return row


def _children(snapshot: Snapshot, path: Path) -> list[tuple[str, str | None]]:
    """The namespaces directly beneath one, each with the directory of its table."""
    names = snapshot.names(object_id(path), NAMESPACE)
    rows = snapshot.rows(object_id([*path, name]) for name in names)
    return [(name, own_root(rows[object_id([*path, name])].metadata or {})) for name in names]


def _meant(identity: str | None) -> removal.Meant:
    return partial(partitioned.is_table, identity=identity)


def _refuse_inner(snapshot: Snapshot, path: Path) -> None:
    """Leave alone a table that was upgraded from a tree inside this catalog as long as the old leaves are there."""
    if snapshot.below(object_id(path), limit=1):
        raise UnsupportedOperationError(
            f"table {shown(path)} still has its older layout beside it: lancepart.upgrade(…, remove_old=True) first"
        )


def _allowed(properties: JsonMapping) -> JsonMapping:
    """Properties that users may set: none that lancepart reads, and none that would show credentials to all readers."""
    refuse_own({key.lower().removeprefix(_OPTION): value for key, value in properties.items()})
    for key in properties:
        if key.lower().removeprefix(_OPTION).startswith(_STORAGE):
            raise InvalidInputError(
                f"property {key!r}: everybody can read the properties of a table; set storage options for the catalog, "
                f"as spark.sql.catalog.<name>.{_STORAGE}<option>"
            )
    return properties
