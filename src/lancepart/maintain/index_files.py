"""Parts of table-wide indices that no kept snapshot declares: what replaced indices and unfinished ones leave behind.

A part is a directory of its own, made under a random name. Only directories with such names and with files of known
kinds alone are removed, each because neither the latest snapshot nor any kept one declares it. What says what a part is
is removed first: a reader that misses it searches without the part, and never reads half of one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lancepart.errors import InvalidTableStateError
from lancepart.layout.declared_indices import declared
from lancepart.storage import history, leaf_files
from lancepart.storage.files import FileInfo, Files
from lancepart.storage.manifest import Manifest
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.table_index import DIRECTORY, FACTS, place_of

UNFINISHED = timedelta(days=1)
"""How much longer a part is kept: its builder may still be at work on it, or about to declare it."""

_NAME = re.compile(r"p?[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OldPart:
    """A part that nothing declares, with its files."""

    name: str
    files: tuple[FileInfo, ...]

    @property
    def location(self) -> str:
        """Its directory."""
        return place_of(self.name)

    @property
    def bytes(self) -> int:
        """How large its files are."""
        return sum(info.size for info in self.files)


def unreferenced(manifest: Manifest, oldest: int, cutoff: datetime) -> tuple[list[OldPart], list[str]]:
    """The parts that snapshots from one on and tagged ones do not declare, and what nobody knows beside them."""
    store, now = Files(manifest.root), _declared(manifest.snapshot())
    names = [name for name in store.children(DIRECTORY)[0] if name not in now]
    foreign = {name for name in names if not _NAME.fullmatch(name) or store.has_links(place_of(name))}
    notes = [f"{DIRECTORY}/{name}" for name in names if name in foreign]
    found = []
    for name in names:
        if name not in foreign:
            part = OldPart(name=name, files=tuple(store.walk(place_of(name))))
            unknown = _unknown(part)
            notes += unknown
            found += [part] if not unknown and _is_old(part, cutoff) else []
    used = _used(manifest, oldest, {part.name for part in found})
    return [part for part in found if part.name not in used], notes


def _unknown(part: OldPart) -> list[str]:
    inside = len(part.location) + 1
    return [
        info.path for info in part.files if info.path[inside:] != FACTS and leaf_files.parse(info.path[inside:]) is None
    ]


def _is_old(part: OldPart, cutoff: datetime) -> bool:
    return all(info.modified < cutoff - UNFINISHED for info in part.files)


def _declared(snapshot: Snapshot) -> set[str]:
    return {name for index in declared(snapshot) for name in index.segments}


def _used(manifest: Manifest, oldest: int, names: Collection[str]) -> set[str]:
    """Which of some parts a kept snapshot declares; all of them if one can't be understood."""
    if not names:
        return set()
    named = set(history.tags(manifest).values())
    used: set[str] = set()
    for version in reversed(history.versions(manifest)):
        if version >= oldest or version in named:
            try:
                used |= _declared(history.at(manifest, version)) & set(names)
            except InvalidTableStateError:
                return set(names)
        if len(used) == len(names):
            break
    return used


def remove(manifest: Manifest, parts: Sequence[OldPart]) -> list[OldPart]:
    """Remove parts that are still not declared; those that went."""
    store, gone = Files(manifest.root), []
    for part in parts:
        if part.name in _declared(manifest.snapshot()) or store.has_links(part.location):
            continue
        facts = f"{part.location}/{FACTS}"
        for path in (facts, *(info.path for info in part.files if info.path != facts)):
            store.delete(path)
        store.prune(part.location)
        gone.append(part)
    return gone
