"""Table directories: what the listing sees of them, and how they go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TypeVar

from lancepart.catalog.context import Catalog
from lancepart.errors import LanceNamespaceError
from lancepart.model.versions import DIRECTORY, version_of
from lancepart.storage import refs
from lancepart.storage.rows import TABLE, Row

RESERVED = refs.RESERVED
DEREGISTERED = ".lance-deregistered"
SUFFIX = ".lance"

_DROPPED = b"dropped by lancepart\n"
_LEFTOVER_AGE = timedelta(hours=1)
_PARALLEL = 16

Answer = TypeVar("Answer")


class State(Enum):
    """What stands in a table directory."""

    ABSENT = "absent"
    STRAY = "stray"
    DECLARED = "declared"
    CREATED = "created"
    DEREGISTERED = "deregistered"


def v1_location(name: str) -> str:
    """Where a table of the root lives for clients that only list directories."""
    return name + SUFFIX


def state(catalog: Catalog, location: str) -> State:
    """What stands at a location, by one listing.

    A directory that has files, but neither a version nor a mark, is a table to the listing alone. Beside the manifest
    it is not: a writer leaves such files behind when the table that it writes to is renamed or dropped meanwhile.
    """
    directories, files = catalog.files.children(location)
    names = {info.path.rsplit("/", 1)[-1] for info in files}
    if DEREGISTERED in names:
        return State.DEREGISTERED
    if DIRECTORY in directories and _has_data(catalog, location):
        return State.CREATED
    if RESERVED in names:
        return State.DECLARED
    if names or any(not catalog.files.is_empty(f"{location}/{directory}") for directory in directories):
        return State.STRAY if catalog.manifest_enabled else State.DECLARED
    return State.ABSENT


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
    """For each location, whether a finished version stands there, hidden from the listing or not."""
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


def reserve(catalog: Catalog, location: str) -> bool:
    """Mark a directory as that of a declared table; say whether no other writer had done so."""
    try:
        return catalog.files.claim(f"{location}/{RESERVED}")
    except FileNotFoundError:
        return False


def unreserve(catalog: Catalog, location: str) -> None:
    """Take the mark of a declaration away, and the directory if nothing else is in it."""
    catalog.files.delete(f"{location}/{RESERVED}")
    catalog.files.prune(location)


def hide(catalog: Catalog, location: str, *, dropped: bool) -> None:
    """Mark a directory so that the listing no longer counts it as a table.

    The mark of a deregistration, which keeps the data, holds against that of a drop, whichever comes first.
    """
    if dropped:
        catalog.files.put_new(f"{location}/{DEREGISTERED}", _DROPPED)
    else:
        catalog.files.put(f"{location}/{DEREGISTERED}")


def unhide(catalog: Catalog, location: str) -> bool:
    """Take the mark away; say whether it was there."""
    return catalog.files.delete(f"{location}/{DEREGISTERED}")


def tidy(catalog: Catalog, location: str) -> None:
    """Remove a mark that was put into a directory after another writer had emptied it."""
    if [info.path for info in catalog.files.walk(location)] == [f"{location}/{DEREGISTERED}"]:
        delete(catalog, location)


def is_leftover(catalog: Catalog, location: str) -> bool:
    """Whether a directory is what remains of a table whose drop did not come to its end."""
    try:
        return catalog.files.read(f"{location}/{DEREGISTERED}") == _DROPPED
    except FileNotFoundError:
        return False


def sweep_leftover(catalog: Catalog, location: str) -> None:
    """Finish a drop that was cut short long ago; a recent one may still be at work."""
    _, files = catalog.files.children(location)
    mark = next((info for info in files if info.path.endswith(DEREGISTERED)), None)
    if mark and datetime.now(UTC) - mark.modified > _LEFTOVER_AGE and is_leftover(catalog, location):
        delete(catalog, location)


def delete(catalog: Catalog, location: str) -> None:
    """Remove a table directory; the mark that hides it goes last."""
    catalog.root.uri_of(location)
    catalog.files.delete_directory(location, last=DEREGISTERED)


def delete_tables(catalog: Catalog, rows: Iterable[Row]) -> None:
    """Remove the directories of tables that the manifest no longer names; a failure leaves only garbage."""
    locations = [row.location for row in rows if row.object_type == TABLE and row.location]
    named = {row.location for row in catalog.snapshot().at_locations(locations)}
    for location in locations:
        if location not in named:
            try:
                delete(catalog, location)
            except (LanceNamespaceError, OSError):
                continue
