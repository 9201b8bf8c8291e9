"""Columns, versions, indices and files of plain Lance tables: each call makes the next version of main, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import lance
import pyarrow as pa
from lance.lance import CleanupStats

from lancepart.model.aliases import JsonObject, Value
from lancepart.storage.leaf_handle import leaf_dataset
from lancepart.storage.root import Root
from lancepart.storage.translate import storage_errors


def _latest(root: Root, location: str) -> lance.LanceDataset:
    return leaf_dataset(root, location, None)


def add_columns(root: Root, location: str, fields: Sequence[pa.Field]) -> None:
    """Add nullable columns, by metadata only."""
    with storage_errors(f"add columns to the table at {location!r}", root):
        _latest(root, location).add_columns(list(fields))


def alter_column(
    root: Root, location: str, name: str, *, to: str | None = None, kind: pa.DataType | None = None
) -> None:
    """Give a column another name, or another type, for which it is written again and keeps its metadata."""
    change: JsonObject = {"path": name}
    change |= {} if to is None else {"name": to}
    change |= {} if kind is None else {"data_type": kind}
    with storage_errors(f"alter columns of the table at {location!r}", root):
        handle = _latest(root, location)
        notes = _notes(handle, name)
        handle.alter_columns(change)  # type: ignore[arg-type]
        if notes and not _notes(handle, to or name):
            handle.update_field_metadata({to or name: notes}, replace=True)


def _notes(handle: lance.LanceDataset, name: str) -> dict[str, str | None]:
    """The metadata of a column."""
    return {key.decode(): value.decode() for key, value in (handle.schema.field(name).metadata or {}).items()}


def drop_columns(root: Root, location: str, names: Sequence[str]) -> None:
    """Remove columns, by metadata only."""
    with storage_errors(f"drop columns of the table at {location!r}", root):
        _latest(root, location).drop_columns(list(names))


def annotate(root: Root, location: str, name: str, notes: Mapping[str, str]) -> None:
    """Set entries of a column's metadata; an empty value removes one."""
    with storage_errors(f"describe columns of the table at {location!r}", root):
        handle = _latest(root, location)
        kept: dict[str, str | None] = {key: value for key, value in {**_notes(handle, name), **notes}.items() if value}
        handle.update_field_metadata({name: kept}, replace=True)


def compact(root: Root, location: str, target_rows: int) -> tuple[int, int]:
    """Put small fragments together and drop deleted rows: how many fragments went, and the version after it."""
    with storage_errors(f"compact the table at {location!r}", root):
        handle = _latest(root, location)
        done = handle.optimize.compact_files(target_rows_per_fragment=target_rows)
        return int(done.fragments_removed), int(handle.version)


def create_index(root: Root, location: str, column: str, kind: str, name: str, **params: Value) -> int:
    """Build an index in place of one of the same name: the version that has it."""
    with storage_errors(f"index the table at {location!r}", root):
        handle = _latest(root, location)
        if kind.startswith("IVF"):
            handle.create_index(column, kind, name=name, replace=True, **params)
        else:
            handle.create_scalar_index(column, kind, name=name, replace=True, **params)  # type: ignore[arg-type]
        return int(handle.version)


def optimize_indices(root: Root, location: str) -> tuple[int, int]:
    """Let all indices cover rows that came since: how many there are, and the version after it."""
    with storage_errors(f"optimize indices of the table at {location!r}", root):
        handle = _latest(root, location)
        found = len(handle.describe_indices())
        if found:
            handle.optimize.optimize_indices()
        return found, int(handle.version)


def drop_index(root: Root, location: str, name: str) -> int | None:
    """Remove an index: the version without it, or None if there is none of that name."""
    with storage_errors(f"drop an index of the table at {location!r}", root):
        handle = _latest(root, location)
        if all(index.name != name for index in handle.describe_indices()):
            return None
        handle.drop_index(name)
        return int(handle.version)


def cleanup(root: Root, location: str, older_than: timedelta) -> CleanupStats:
    """Remove versions that are older, unless a tag names them, and the files that only they need."""
    with storage_errors(f"remove old versions of the table at {location!r}", root):
        return _latest(root, location).cleanup_old_versions(older_than, error_if_tagged_old_versions=False)


def restore(root: Root, location: str, version: int | str) -> int:
    """Bring back the rows of an older version, as the newest one."""
    with storage_errors(f"restore the table at {location!r}", root):
        handle = lance.dataset(root.uri_of(location), version=version, storage_options=root.lance_options)
        handle.restore()  # type: ignore[no-untyped-call]
        return int(handle.version)


def create_tag(root: Root, location: str, name: str, version: int | None) -> int:
    """Name a version, the newest unless one is given."""
    with storage_errors(f"tag the table at {location!r}", root):
        handle = _latest(root, location)
        wanted = int(handle.version) if version is None else version
        handle.tags.create(name, wanted)
        return wanted


def drop_tag(root: Root, location: str, name: str) -> int | None:
    """Take a name away: of which version, or None if there is no such name."""
    with storage_errors(f"drop a tag of the table at {location!r}", root):
        handle = _latest(root, location)
        known = handle.tags.list().get(name)
        if known is None:
            return None
        handle.tags.delete(name)
        return int(known["version"])
