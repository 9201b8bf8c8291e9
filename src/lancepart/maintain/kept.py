"""The versions that must be kept: for each directory of leaves, those that a kept snapshot may read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lancepart.format.names import (
    METADATA,
    OBJECT_ID,
    READ_VERSION,
    TABLE,
    TABLE_VERSION,
    is_key,
    of_type,
    split_version_id,
)
from lancepart.format.records import VersionRecord
from lancepart.format.rows import Row
from lancepart.layout import create
from lancepart.layout.layouts import layout_of
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import is_partitioned
from lancepart.maintain.sweep import Member
from lancepart.plan import planner
from lancepart.storage import history
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from lancepart.storage.snapshot import Snapshot, literals

_BRANCHES = "/tree/"


@dataclass(slots=True)
class KeptVersions:
    """The versions that are kept, by directory; ``owners`` are the leaves whose rows name a directory now.

    ``perhaps`` are versions recorded without a directory for leaves that have, or had, several.
    """

    versions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    perhaps: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    owners: dict[str, str] = field(default_factory=dict)
    lost_tags: tuple[str, ...] = ()

    @property
    def tops(self) -> set[str]:
        """The directories of the root in which something is kept."""
        return {location.partition("/")[0] for location in {*self.versions, *self.perhaps}}

    def add(self, leaf: Leaf) -> None:
        """Keep a leaf as a snapshot reads it."""
        self.versions[leaf.location] |= set() if leaf.read_version is None else {leaf.read_version}

    def directories(self, manifest: Manifest) -> dict[str, tuple[Member, ...]]:
        """The tables by directory: branches are inside the table that they share files with."""
        found: dict[str, list[Member]] = defaultdict(list)
        store = Files(manifest.root)
        for location in sorted({*self.versions, *self.perhaps}):
            member = Member(
                location=location,
                versions=frozenset(self.versions[location]),
                perhaps=frozenset(self.perhaps[location]),
            )
            top = location.partition(_BRANCHES)[0]
            shared = top != location and not store.is_empty(f"{top}/_versions")
            found[top if shared else location].append(member)
        return {top: tuple(members) for top, members in found.items()}

    def newer_than(self, before: KeptVersions, top: str) -> tuple[Member, ...]:
        """The tables of a directory, with the versions that were not known before."""
        inside = [each for each in {*self.versions, *self.perhaps} if each == top or each.startswith(top + _BRANCHES)]
        return tuple(
            Member(
                location=each,
                versions=frozenset(
                    (self.versions[each] - before.versions[each]) | (self.perhaps[each] - before.perhaps[each])
                ),
            )
            for each in sorted(inside)
        )


def kept(manifest: Manifest, oldest: int) -> KeptVersions:
    """What the snapshots from one up to the latest, and those that tags name, may read."""
    found, snapshot = KeptVersions(), manifest.snapshot()
    now = planner.plan(snapshot, create.load(snapshot), None).leaves
    then = leaves_at(manifest, oldest)
    tagged, found.lost_tags = _tagged(manifest)
    for leaf in (*now, *then, *tagged, *_unrecorded(manifest, oldest, snapshot.version)):
        found.add(leaf)
    found.owners = {leaf.location: leaf.object_id for leaf in now}
    locations: dict[str, set[str]] = defaultdict(set)
    for leaf in (*now, *then, *tagged):
        locations[leaf.object_id].add(leaf.location)
    numbers = {**_over(history.at(manifest, oldest)), **{leaf.object_id: leaf.number for leaf in then}}
    removed: set[str] = set()
    for record in _recorded(snapshot):
        versions = {record.read_version or 0, *(version for pair in record.moved for version in pair)}
        if record.number < numbers.get(record.leaf, 0):
            continue
        if record.leaf not in locations:
            removed.add(record.leaf)
        elif record.location is not None:
            found.versions[record.location] |= versions
        else:
            single = len(locations[record.leaf]) == 1
            for location in locations[record.leaf]:
                (found.versions if single else found.perhaps)[location] |= versions
    for leaf in _removed(manifest, removed, oldest, snapshot.version):
        found.add(leaf)
    return found


def _over(snapshot: Snapshot) -> dict[str, int]:
    """For each leaf of which a version is recorded the number after the last: those before it are not in use later."""
    found: dict[str, int] = {}
    for item in snapshot.ids("", TABLE_VERSION):
        named = split_version_id(item)
        if named is not None:
            found[named[0]] = max(found.get(named[0], 0), named[1] + 1)
    return found


def leaves_at(manifest: Manifest, version: int) -> Sequence[Leaf]:
    """The leaves that a snapshot reads; none if there was no table yet."""
    snapshot = history.at(manifest, version)
    if not is_partitioned(snapshot.properties):
        return ()
    return planner.plan(snapshot, create.load(snapshot), None).leaves


def _tagged(manifest: Manifest) -> tuple[list[Leaf], tuple[str, ...]]:
    """The leaves that named snapshots read, and the names of those that are gone."""
    leaves: list[Leaf] = []
    there, lost = set(history.versions(manifest)), []
    for name, version in history.tags(manifest).items():
        if version in there:
            leaves += leaves_at(manifest, version)
        else:
            lost.append(name)
    return leaves, tuple(lost)


def _unrecorded(manifest: Manifest, oldest: int, latest: int) -> Iterator[Leaf]:
    """The leaves of all kept snapshots of a layout that does not record the versions that its rows have named."""
    for version in _between(manifest, oldest, latest):
        snapshot = history.at(manifest, version)
        if is_partitioned(snapshot.properties) and layout_of(snapshot).records_versions:
            return
        yield from leaves_at(manifest, version)


def _removed(manifest: Manifest, owners: set[str], oldest: int, latest: int) -> Iterator[Leaf]:
    """Leaves that were created and removed between two snapshots, since those in between may still read them."""
    if not owners:
        return
    for version in _between(manifest, oldest, latest):
        ids = f"{of_type(TABLE)} AND {OBJECT_ID} IN ({literals(sorted(owners))})"
        found = history.at(manifest, version).scan(ids, columns=[OBJECT_ID])
        if found is not None and found.num_rows:
            yield from (leaf for leaf in leaves_at(manifest, version) if leaf.object_id in owners)


def _between(manifest: Manifest, oldest: int, latest: int) -> list[int]:
    return [number for number in history.versions(manifest) if oldest <= number <= latest]


def _recorded(snapshot: Snapshot) -> Iterator[VersionRecord]:
    """All versions of leaves that are recorded.

    Where a commit rewrote a leaf's rows, its changes are found by the versions around the rewrite.
    """
    found = snapshot.scan(of_type(TABLE_VERSION), columns=[OBJECT_ID, READ_VERSION.name, METADATA])
    assert found is not None
    for item in found.to_pylist():
        record = None if is_key(item[OBJECT_ID]) else VersionRecord.from_row(Row.read(item))
        if record is not None and record.read_version is not None:
            yield record
