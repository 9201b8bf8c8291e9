"""The versions of ``__manifest``, which are the table's snapshots."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

import lance

from lancepart.errors import (
    InvalidInputError,
    InvalidTableStateError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)
from lancepart.format.names import OLDEST, OWN, SPEC_PREFIX, fence_id, of_type
from lancepart.format.records import number_of
from lancepart.format.rows import read_rows
from lancepart.model.suggest import near
from lancepart.storage import leaf_files
from lancepart.storage.files import Files
from lancepart.storage.leaf_handle import data_path
from lancepart.storage.manifest import NAME, Manifest
from lancepart.storage.manifest_rows import TABLE_VERSION, Row
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import MissingError, storage_errors

_TAG_READS = 10

_SPEC_KEY = re.compile(rf"{SPEC_PREFIX}([0-9]+)")


_LISTED = "table.inspect.snapshots() lists them"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionInfo:
    """One version of the manifest and what its commit recorded."""

    version: int
    timestamp: datetime
    kind: str
    records: tuple[Row, ...]


def resolve(manifest: Manifest, wanted: int | str | datetime | None) -> int | None:
    """The version that a number, a tag's name or a moment refers to; ``None`` for the latest."""
    if wanted is None:
        return None
    if isinstance(wanted, bool) or not isinstance(wanted, int | str | datetime):
        raise InvalidInputError(f"version is {wanted!r}: give a number, a tag's name or a datetime")
    if isinstance(wanted, str):
        found = tags(manifest).get(wanted)
        if found is None:
            number = f": give the number of a snapshot as an int, {int(wanted)}" if wanted.isdecimal() else ""
            raise TableTagNotFoundError(f"there is no tag {wanted!r}{number or _tags_hint(wanted, manifest)}")
        return found
    found = _at(manifest, wanted) if isinstance(wanted, datetime) else wanted
    if not any(map(_SPEC_KEY.fullmatch, at(manifest, found).properties)):
        raise TableVersionNotFoundError(f"there is no snapshot {found}: the table was made after it; {_LISTED}")
    refuse_expired(manifest, manifest.snapshot(), found)
    return found


def required(manifest: Manifest, wanted: int | str | datetime | None) -> Snapshot:
    """The snapshot that a number, a tag's name or a moment refers to; there must be one."""
    found = resolve(manifest, wanted)
    if found is None:
        raise InvalidInputError("version is missing: give a number, a tag's name or a datetime")
    return at(manifest, found)


def at(manifest: Manifest, version: int) -> Snapshot:
    """The manifest at a version, or a clear word that it is gone."""
    if not 0 < version < 1 << 63:
        raise TableVersionNotFoundError(f"there is no snapshot {version}: they are counted from 1 up; {_LISTED}")
    try:
        return manifest.snapshot(version)
    except MissingError:
        raise TableVersionNotFoundError(
            f"there is no snapshot {version}: it never was, or it has expired; {_LISTED}"
        ) from None


def versions(manifest: Manifest) -> list[int]:
    """The numbers of all snapshots that have not expired: those from the mark on, and those that tags name."""
    snapshot = manifest.snapshot()
    if snapshot.handle is None:
        return []
    first, named = oldest(snapshot), set(tags(manifest).values())
    there = sorted(int(item["version"]) for item in snapshot.handle.version_refs())
    return [number for number in there if number >= first or number in named]


def oldest(snapshot: Snapshot) -> int:
    """The snapshot before which all have expired that no tag names, as ``expire`` marks it in the fence's row.

    Their versions of the manifest stay for longer than their files: by them writers find conflicts.
    """
    specs = [int(found[1]) for found in map(_SPEC_KEY.fullmatch, snapshot.properties) if found is not None]
    row = snapshot.row(fence_id(min(specs))) if specs else None
    marked = 0 if row is None else int(number_of(row, OLDEST))
    if marked > snapshot.version:
        raise InvalidTableStateError(f"{OLDEST} in __manifest is {marked}, and the latest snapshot {snapshot.version}")
    return marked


def refuse_expired(manifest: Manifest, latest: Snapshot, version: int) -> None:
    """Refuse to depend on a snapshot whose files are gone, or are being removed."""
    if version < oldest(latest) and version not in tags(manifest).values():
        raise TableVersionNotFoundError(f"there is no snapshot {version}: it has expired")


def timestamp(manifest: Manifest, version: int) -> datetime:
    """When a version was committed."""
    handle = at(manifest, version).handle
    assert handle is not None
    return _stamp(handle)


def _stamp(handle: lance.LanceDataset) -> datetime:
    """When the version of an open manifest was committed."""
    stamp = handle.get_version()["timestamp"]
    assert isinstance(stamp, datetime)
    return stamp.astimezone(UTC)


def stored(manifest: Manifest) -> list[tuple[int, datetime]]:
    """All versions that are there, each with the time at which the store took it: never before that of an older one.

    Those that have expired are among them as long as writers may find conflicts by them.
    """
    _, files = Files(manifest.root).children(f"{NAME}/_versions")
    found: dict[int, datetime] = {}
    for info in files:
        file = leaf_files.parse(info.path[len(NAME) + 1 :])
        if file is not None and file.version is not None:
            found[file.version] = info.modified
    latest, ordered = datetime.min.replace(tzinfo=UTC), []
    for version in sorted(found):
        latest = max(latest, found[version])
        ordered.append((version, latest))
    return ordered


def _at(manifest: Manifest, moment: datetime) -> int:
    moment = moment.astimezone(UTC)
    kept = versions(manifest)
    low, high = 0, len(kept)
    while low < high:
        middle = (low + high) // 2
        if timestamp(manifest, kept[middle]) <= moment:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        raise TableVersionNotFoundError(f"there is no snapshot as old as {moment.isoformat()}; {_LISTED}")
    return kept[low - 1]


def info(manifest: Manifest, version: int) -> VersionInfo:
    """The operation of one version's commit, by its transaction and the rows that it wrote."""
    handle = at(manifest, version).handle
    assert handle is not None
    with storage_errors("read the history of __manifest", manifest.root):
        done = handle.read_transaction(version)
        operation = None if done is None else done.operation
        stamp = _stamp(handle)
        records = () if operation is None else tuple(_records(handle, operation))
    kind = "unknown" if operation is None else type(operation).__name__
    return VersionInfo(version=version, timestamp=stamp, kind=kind, records=records)


def _records(handle: lance.LanceDataset, operation: lance.LanceOperation.BaseOperation) -> list[Row]:
    written = getattr(operation, "new_fragments", None)
    if not written or type(operation).__name__ != "Update":
        return []
    paths = {data_path(file) for fragment in written for file in fragment.files}
    chosen = [
        fragment
        for fragment in handle.get_fragments()
        if any(data_path(file) in paths for file in fragment.metadata.files)
    ]
    if not chosen:
        return []
    found = handle.scanner(filter=of_type(TABLE_VERSION), fragments=chosen).to_table()
    return read_rows(found)


def tags(manifest: Manifest) -> dict[str, int]:
    """The named snapshots; read again where a name is taken away between its listing and its reading."""
    handle = manifest.snapshot().handle
    if handle is None:
        return {}
    for left in reversed(range(_TAG_READS)):
        try:
            with storage_errors("read the tags of __manifest", manifest.root):
                return {name: int(entry["version"]) for name, entry in handle.tags.list().items()}
        except MissingError:
            if not left:
                raise
    return {}


def _tags_hint(name: str, manifest: Manifest) -> str:
    known = [each for each in tags(manifest) if not each.startswith(OWN)]
    return f"{near(name, known)}; table.tags.list() names them" if known else ": the table has none"


def create_tag(manifest: Manifest, name: str, version: int) -> None:
    """Name a snapshot; a named one does not expire."""
    at(manifest, version)
    if name in tags(manifest):
        raise TableTagAlreadyExistsError(f"there is a tag {name!r} already: delete it first, or take another name")
    handle = manifest.snapshot().handle
    assert handle is not None
    with storage_errors(f"create the tag {name!r}", manifest.root):
        handle.tags.create(name, version)


def delete_tag(manifest: Manifest, name: str) -> None:
    """Take a name away; the snapshot stays until it expires."""
    if name not in tags(manifest):
        raise TableTagNotFoundError(f"there is no tag {name!r}{_tags_hint(name, manifest)}")
    handle = manifest.snapshot().handle
    assert handle is not None
    with storage_errors(f"delete the tag {name!r}", manifest.root):
        handle.tags.delete(name)
