"""Table directories: how listing finds them, and how they are reserved and removed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from enum import Enum
from functools import partial
from typing import TypeVar

from lancepart.catalog import partitioned
from lancepart.catalog.context import Catalog
from lancepart.catalog.properties import identity, locations, own_root
from lancepart.errors import LanceNamespaceError
from lancepart.format.names import OWN
from lancepart.model.versions import DIRECTORY, version_of
from lancepart.storage import refs, removal
from lancepart.storage.leaf_files import has_all_data
from lancepart.storage.manifest import NAME
from lancepart.storage.manifest_rows import NAMESPACE, TABLE, Row
from lancepart.storage.snapshot import Snapshot

RESERVED = refs.RESERVED
DEREGISTERED = ".lance-deregistered"
SUFFIX = ".lance"

_DATA = "data"
_KEPT = "_kept_locations"
_DROPPED = b"dropped by lancepart\n"
_LEFTOVER_AGE = timedelta(hours=1)
_PARALLEL = 16

Answer = TypeVar("Answer")


class State(Enum):
    """The contents of a table directory."""

    ABSENT = "absent"
    STRAY = "stray"
    DECLARED = "declared"
    CREATED = "created"
    DEREGISTERED = "deregistered"


def v1_location(name: str) -> str:
    """The directory of a table of the root for clients that only list directories."""
    return name + SUFFIX


def state(catalog: Catalog, location: str) -> State:
    """The contents of a location, by one listing.

    A directory that has any files, but no mark, is a table to the listing. Where the manifest has once kept a table in
    it, it must hold one whole: a writer leaves files behind when its table is renamed or dropped meanwhile.
    """
    directories, files = catalog.files.children(location)
    names = {info.path.rsplit("/", 1)[-1] for info in files}
    if DEREGISTERED in names:
        return State.DEREGISTERED
    if DIRECTORY in directories and _has_data(catalog, location):
        stray = _is_kept(catalog, location) and not has_all_data(catalog.root, location)
        return State.STRAY if stray else State.CREATED
    if RESERVED in names:
        return State.DECLARED
    if names or any(not catalog.files.is_empty(f"{location}/{directory}") for directory in directories):
        return State.STRAY if _is_kept(catalog, location) else State.DECLARED
    return State.ABSENT


def keep(catalog: Catalog, location: str) -> None:
    """Mark permanently that the manifest owns a directory which the listing would count by its data files alone.

    The mark is written before the first file and before the last row is removed, so that a client that sees such files
    without a row sees the mark.
    """
    if catalog.manifest_enabled and _has_v1_name(location):
        catalog.files.put_new(_note(location))


def is_listed(catalog: Catalog, location: str) -> bool:
    """Whether the listing would take a directory for a table of the root."""
    return catalog.dir_listing_enabled and _has_v1_name(location)


def _has_v1_name(location: str) -> bool:
    return location.endswith(SUFFIX) and "/" not in location


def _is_kept(catalog: Catalog, location: str) -> bool:
    return catalog.manifest_enabled and catalog.files.exists(_note(location))


def _note(location: str) -> str:
    return f"{NAME}/{_KEPT}/{location}"


def is_lance(catalog: Catalog, location: str) -> bool:
    """Whether a directory has what a Lance table has: versions, data files, or a mark of the catalog's."""
    directories, files = catalog.files.children(location)
    marks = {info.path.rsplit("/", 1)[-1] for info in files} & {RESERVED, DEREGISTERED}
    inside = [f"{location}/{name}" for name in (DIRECTORY, _DATA) if name in directories]
    return bool(marks) or any(not catalog.files.is_empty(place) for place in inside)


def exists(catalog: Catalog, location: str) -> bool:
    """Whether the listing counts a directory as a table: it has a file, and is not deregistered."""
    return state(catalog, location) in (State.DECLARED, State.CREATED)


def list_names(catalog: Catalog, *, known: Iterable[str] = ()) -> list[str]:
    """The tables that the listing finds in the root; directories of ``known`` names are not looked into."""
    directories, _ = catalog.files.children()
    named = {directory[: -len(SUFFIX)] for directory in directories if directory.endswith(SUFFIX)} - {""}
    unknown = sorted(name for name in named - set(known) if not catalog.root.leads_outside(v1_location(name)))
    return [
        name for name, found in zip(unknown, _states(catalog, map(v1_location, unknown)), strict=True) if _counts(found)
    ]


def have_data(catalog: Catalog, locations: Iterable[str]) -> list[bool]:
    """For each location, whether a finished version is there, hidden from the listing or not."""
    return _each(catalog, lambda location: _has_data(catalog, location), locations)


def _has_data(catalog: Catalog, location: str) -> bool:
    names = (info.path.rsplit("/", 1)[-1] for info in catalog.files.walk(f"{location}/{DIRECTORY}"))
    return any(version_of(name) is not None for name in names)


def _states(catalog: Catalog, locations: Iterable[str]) -> list[State]:
    return _each(catalog, lambda location: state(catalog, location), locations)


def _each(catalog: Catalog, ask: Callable[[str], Answer], locations: Iterable[str]) -> list[Answer]:
    wanted = list(locations)
    if catalog.root.is_local or len(wanted) < 2:
        return [ask(location) for location in wanted]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(ask, wanted))


def _counts(found: State) -> bool:
    return found in (State.DECLARED, State.CREATED)


def reserve(catalog: Catalog, location: str) -> bytes | None:
    """Mark a directory as that of a declared table; the mark's identity, None if another writer has marked it."""
    keep(catalog, location)
    try:
        return catalog.files.claim(f"{location}/{RESERVED}")
    except FileNotFoundError:
        return None


def restore_reservation(catalog: Catalog, location: str, token: bytes) -> None:
    """Mark a declared table's directory again if a drop that had not seen its row removed it; no data is lost by it."""
    if not is_standing(catalog, location, token):
        unhide(catalog, location)
        catalog.files.put(f"{location}/{RESERVED}", token)


def unreserve(catalog: Catalog, location: str, token: bytes | None = None) -> None:
    """Take the mark of a declaration away, and the directory if nothing else is in it; with a token only that mark.

    A drop may have removed the mark of a declaration that fails, and another declaration may have put its own there.
    """
    if token is None or _is_reserved(catalog, location, token):
        catalog.files.delete(f"{location}/{RESERVED}")
    catalog.files.prune(location)


def hide(catalog: Catalog, location: str, *, dropped: bool) -> bool:
    """Mark a directory so that the listing no longer counts it as a table; say whether the mark is this caller's.

    The mark of a deregistration, which keeps the data, takes precedence over that of a drop.
    """
    if dropped:
        return catalog.files.put_new(f"{location}/{DEREGISTERED}", _DROPPED)
    catalog.files.put(f"{location}/{DEREGISTERED}")
    return True


def unhide(catalog: Catalog, location: str) -> bool:
    """Take the mark away; say whether it was there."""
    return catalog.files.delete(f"{location}/{DEREGISTERED}")


def tidy(catalog: Catalog, location: str) -> None:
    """Remove a mark that was put into a directory after another writer had emptied it."""
    if [info.path for info in catalog.files.walk(location)] == [f"{location}/{DEREGISTERED}"]:
        unhide(catalog, location)
        catalog.files.prune(location)


def is_standing(catalog: Catalog, location: str, token: bytes | None = None) -> bool:
    """Whether a directory that has just got its row still holds its table: a version, or the mark of its declaration.

    A drop marks a directory before it looks for rows that name it, and removes its own mark last. So a row that is
    inserted too late finds that mark, or no file of the table. Only a name that the listing knows is used for two
    tables.
    """
    if not _has_v1_name(location):
        return True
    _, files = catalog.files.children(location)
    names = {info.path.rsplit("/", 1)[-1] for info in files}
    if DEREGISTERED in names:
        return False
    return _is_reserved(catalog, location, token) or not catalog.files.is_empty(f"{location}/{DIRECTORY}")


def _is_reserved(catalog: Catalog, location: str, token: bytes | None) -> bool:
    try:
        return token is not None and catalog.files.read(f"{location}/{RESERVED}") == token
    except FileNotFoundError:
        return False


def remove_unnamed(catalog: Catalog, location: str) -> bool:
    """Mark and remove a directory that no row names; a row that is inserted meanwhile is removed by its writer."""
    marked = hide(catalog, location, dropped=True)
    if is_named(catalog.snapshot(), location):
        if marked:
            unhide(catalog, location)
        return False
    delete(catalog, location)
    return True


def is_leftover(catalog: Catalog, location: str) -> bool:
    """Whether a directory is left over from a drop that did not finish."""
    try:
        return catalog.files.read(f"{location}/{DEREGISTERED}") == _DROPPED
    except FileNotFoundError:
        return False


def sweep_leftover(catalog: Catalog, location: str) -> None:
    """Finish a drop that was cut short long ago; a recent one may still be at work, or not have taken the row."""
    _, files = catalog.files.children(location)
    mark = next((info for info in files if info.path.endswith(DEREGISTERED)), None)
    if mark is None or not is_leftover(catalog, location) or is_named(catalog.snapshot(), location):
        return
    if catalog.files.clock(f"{NAME}/{_KEPT}") - mark.modified > _LEFTOVER_AGE:
        delete(catalog, location)


def delete(catalog: Catalog, location: str) -> None:
    """Remove a table directory; the mark that hides it is removed last."""
    catalog.root.uri_of(location)
    catalog.files.delete_directory(location, last=DEREGISTERED)


def refuse_other(catalog: Catalog, row: Row) -> None:
    """Refuse to drop a table whose directory may not be removed, or holds something else than the row means."""
    place = own_root(row.metadata) if row.object_type == NAMESPACE else None
    if place is not None:
        removal.refuse_other_table(catalog.root, place, meant(row))
    elif row.object_type == TABLE and row.location:
        catalog.files.refuse_removal(row.location)


def hide_rows(catalog: Catalog, snapshot: Snapshot, rows: Collection[Row]) -> None:
    """Hide the directories of tables that are dropped with their namespace, if the listing would count them."""
    going = {row.object_id for row in rows}
    locations = {row.location for row in rows if row.object_type == TABLE and row.location}
    for location in sorted(filter(_has_v1_name, locations)):
        if all(row.object_id in going for row in named_at(snapshot, location)):
            keep(catalog, location)
            hide(catalog, location, dropped=True)


def unhide_rows(catalog: Catalog, rows: Iterable[Row]) -> None:
    """Take back what :func:`hide_rows` did, where the tables have stayed."""
    for row in rows:
        if row.object_type == TABLE and row.location and is_leftover(catalog, row.location):
            unhide(catalog, row.location)


def meant(row: Row) -> removal.Meant:
    """The identity of a partitioned table, by which a row's table is distinguished from another one at its location."""
    return partial(partitioned.is_table, identity=identity(row.metadata))


def delete_tables(catalog: Catalog, rows: Iterable[Row]) -> None:
    """Remove the directories of tables that the manifest no longer names; a failure leaves only garbage."""
    dropped = [row for row in rows if row.object_type in (TABLE, NAMESPACE)]
    locations = [row.location for row in dropped if row.object_type == TABLE and row.location]
    roots = [(place, row) for row in dropped if row.object_type == NAMESPACE and (place := own_root(row.metadata))]
    if not locations and not roots:
        return
    snapshot = catalog.snapshot()
    for location in locations:
        if not is_named(snapshot, location):
            with contextlib.suppress(LanceNamespaceError, OSError):
                delete(catalog, location)
    for place, row in roots:
        if not is_named(snapshot, place):
            with contextlib.suppress(LanceNamespaceError, OSError):
                removal.remove_root(catalog.files, catalog.root, place, meant(row))


def is_named(snapshot: Snapshot, location: str, *, besides: str | None = None) -> bool:
    """Whether a row, ``besides`` one of some id, names a directory, one inside it, or one that it is inside of."""
    return any(row.object_id != besides for row in named_at(snapshot, location))


def named_at(snapshot: Snapshot, location: str) -> list[Row]:
    """The rows that name a directory, one inside it, or one that it is inside of; of whichever kind of table."""
    found = [*snapshot.at_locations([location]), *snapshot.overlapping(location)]
    return found + [row for row in snapshot.mentioning(OWN) if any(_overlap(location, p) for p in locations(row))]


def _overlap(one: str, other: str) -> bool:
    first, second = f"{one}/", f"{other}/"
    return first.startswith(second) or second.startswith(first)
