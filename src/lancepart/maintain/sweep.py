"""The files of one directory that nothing needs any more: found first, removed later, here or on an executor.

Only files of kinds that Lance is known to write are ever removed, each because no version that is kept needs it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lancepart.errors import InvalidInputError, LanceNamespaceError
from lancepart.storage import leaf_files
from lancepart.storage.files import FileInfo, Files
from lancepart.storage.leaf_files import Kind, LeafFile
from lancepart.storage.root import Root

BLOBS_FIRST = timedelta(days=7)

_NEVER = (Kind.FIXED, Kind.REFERENCE)
_ORDER = list(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A table or a branch beneath a directory, the versions that are kept of it, and those that may be its own.

    ``perhaps`` are versions recorded without a directory for a partition that was created more than once.
    """

    location: str
    versions: frozenset[int]
    perhaps: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """A directory to look through; ``members`` is empty for one that no kept snapshot names."""

    root: Root
    top: str
    members: tuple[Member, ...]
    cutoff: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """A file that nothing needed when it was looked at."""

    path: str
    key: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The outcome of inspecting a directory: garbage, and files kept because they are of an unknown kind."""

    top: str
    garbage: tuple[Garbage, ...] = ()
    unknown: tuple[str, ...] = ()
    broken: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removing:
    """Garbage of a directory, and the versions of its tables committed since it was found."""

    root: Root
    top: str
    garbage: tuple[Garbage, ...]
    newer: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """How many files went, how large they were, and what kept a directory from being touched."""

    files: int = 0
    bytes: int = 0
    broken: str | None = None


def look(task: Looking) -> Found:
    """Find the garbage of a directory; one whose kept versions can't all be opened has none."""
    try:
        task.root.uri_of(task.top)
        seen = [(info, leaf_files.parse(info.path[len(task.top) + 1 :])) for info in Files(task.root).walk(task.top)]
    except InvalidInputError as error:
        return Found(top=task.top, broken=str(error))
    unknown = tuple(info.path for info, file in seen if file is None)
    known = [(info, file) for info, file in seen if file is not None]
    if not task.members:
        return _unnamed(task, known, unknown)
    named = {_prefix(task.top, member.location) for member in task.members} | {""}
    old = _old([(info, file) for info, file in known if file.member in named and file.kind not in _NEVER], task.cutoff)
    try:
        garbage = _unneeded(task, [file for _, file in known], old)
    except (LanceNamespaceError, OSError, ValueError) as error:
        return Found(top=task.top, unknown=unknown, broken=str(error))
    return Found(top=task.top, garbage=garbage, unknown=unknown)


def _unnamed(task: Looking, known: Sequence[tuple[FileInfo, LeafFile]], unknown: tuple[str, ...]) -> Found:
    """A directory that no kept snapshot names is removed as a whole: all its files are of known kinds, and old."""
    references = [info.path for info, file in known if file.kind is Kind.REFERENCE]
    if unknown or references:
        return Found(top=task.top, unknown=(*unknown, *references))
    garbage = _old(known, task.cutoff)
    return Found(top=task.top, garbage=garbage if len(garbage) == len(known) else ())


def _unneeded(task: Looking, files: Sequence[LeafFile], old: tuple[Garbage, ...]) -> tuple[Garbage, ...]:
    """Those old files that the directory's tables do not need; versions are opened for as long as any are left."""
    left = {item.key for item in old}
    for location, version in _versions(task, files) if left else ():
        transactions = any(key.startswith("_transactions/") for key in left)
        left -= leaf_files.needed(task.root, location, version, complete=True, transactions=transactions)
        if not left:
            break
    return tuple(item for item in old if item.key in left)


def _versions(task: Looking, files: Sequence[LeafFile]) -> Iterator[tuple[str, int | None]]:
    """The tables and versions whose files are kept.

    Those are what kept snapshots, the latest of each main branch, tags, and branches that no snapshot names read.
    """
    present: dict[str, set[int]] = defaultdict(set)
    for file in files:
        if file.version is not None:
            present[file.member].add(file.version)
    wanted: dict[str, set[int | None]] = defaultdict(set)
    for member in task.members:
        prefix = _prefix(task.top, member.location)
        wanted[prefix] |= {*member.versions, *(member.perhaps & present[prefix])}
    for prefix, versions in present.items():
        wanted[prefix] |= {None} if prefix in wanted or not prefix else versions
    if present[""] and any(file.kind is Kind.REFERENCE and file.key.startswith("_refs/tags/") for file in files):
        for branch, version in leaf_files.tagged(task.root, task.top):
            wanted[f"tree/{branch}/" if branch else ""].add(version)
    yield from (
        (f"{task.top}/{prefix}".rstrip("/"), number) for prefix, numbers in wanted.items() for number in numbers
    )


def _prefix(top: str, location: str) -> str:
    """The directory of a branch, relative to that of its table; empty for the table itself."""
    return "" if location == top else f"{location[len(top) + 1 :]}/"


def _old(files: Iterable[tuple[FileInfo, LeafFile]], cutoff: datetime) -> tuple[Garbage, ...]:
    """The files of which all that belong together are old, in the order in which they may go.

    Blobs are written before their data file, which may be in the making: without one they are kept for longer.
    """
    together: dict[tuple[str, str], list[tuple[FileInfo, LeafFile]]] = defaultdict(list)
    for info, file in files:
        together[file.member, file.key].append((info, file))
    chosen = []
    for group in together.values():
        limit = cutoff - BLOBS_FIRST if all(file.kind is Kind.BLOB for _, file in group) else cutoff
        if all(info.modified < limit for info, _ in group):
            chosen += group
    chosen.sort(key=lambda pair: (_ORDER.index(pair[1].kind), pair[0].path))
    return tuple(Garbage(path=info.path, key=file.key, size=info.size) for info, file in chosen)


def remove(task: Removing) -> Removed:
    """Remove garbage, but for what versions that were published since need after all."""
    try:
        live = {
            key
            for member in task.newer
            for version in (*member.versions, None)
            for key in leaf_files.needed(task.root, member.location, version, complete=True)
        }
    except (LanceNamespaceError, OSError, ValueError) as error:
        return Removed(broken=str(error))
    store = Files(task.root)
    doomed = [item for item in task.garbage if item.key not in live]
    for item in doomed:
        store.delete(item.path)
    store.prune(task.top)
    return Removed(files=len(doomed), bytes=sum(item.size for item in doomed))
