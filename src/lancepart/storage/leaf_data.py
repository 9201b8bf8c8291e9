"""The data of leaf tables: fragments staged without being visible, and commits that make versions of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.fragment import FragmentMetadata, LanceFragment, write_fragments
from lance.schema import LanceSchema

from lancepart.storage.alignment import aligned
from lancepart.storage.blob_schema import stored_schema
from lancepart.storage.cache import cache
from lancepart.storage.leaf_handle import (
    LeafHandle,
    Offsets,
    data_path,
    fragment_sizes,
    leaf_uri,
    live_offsets,
    open_leaf,
)
from lancepart.storage.leaf_record import note
from lancepart.storage.open_leaves import keep_leaf, kept_leaf
from lancepart.storage.root import Root
from lancepart.storage.translate import ConflictError, storage_errors

_EXISTS = "already exists"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragments:
    """Fragments written to a leaf's directory and not yet part of any version; they pickle."""

    location: str
    items: tuple[FragmentMetadata, ...]

    @property
    def rows(self) -> int:
        """How many rows they hold."""
        return sum(int(item.physical_rows) for item in self.items)

    @property
    def bytes(self) -> int:
        """How large their files are."""
        return sum(int(file.file_size_bytes or 0) for item in self.items for file in item.files)

    def __add__(self, other: Fragments) -> Fragments:
        assert self.location == other.location
        return Fragments(location=self.location, items=self.items + other.items)


def stage(
    root: Root,
    location: str,
    rows: pa.Table,
    *,
    base: int | str | None,
    handle: LeafHandle | None = None,
    file_bytes: int | None = None,
) -> Fragments:
    """Write rows to a leaf's directory; ``base`` is the version whose schema they follow, ``None`` for a new leaf.

    ``handle`` is that version if it is open already. ``file_bytes`` is the size at which another file is begun, Lance's
    own unless given.
    """
    limits: _Limits = {}
    if file_bytes is not None:
        limits["max_bytes_per_file"] = file_bytes
        rows = _in_small_batches(rows, file_bytes)
    with storage_errors(f"write rows to {location!r}", root):
        uri, options = leaf_uri(root, location), root.lance_options
        if base is None:
            items = _write_new(rows, uri, options, limits)
        else:
            target = handle if isinstance(handle, lance.LanceDataset) else None
            if target is None:
                target = lance.dataset(uri, version=base if base != "latest" else None, storage_options=options)
            items = write_fragments(aligned(rows), target, schema=rows.schema, storage_options=options, **limits)
    return Fragments(location=location, items=tuple(items))


def _in_small_batches(rows: pa.Table, file_bytes: int) -> pa.Table:
    """The same rows in batches of a small part of a file: Lance looks at a file's size between batches only."""
    share = max(1, rows.num_rows * file_bytes // (8 * max(1, rows.nbytes)))
    return pa.Table.from_batches(rows.to_batches(max_chunksize=share), rows.schema)


class _Limits(TypedDict, total=False):
    max_bytes_per_file: int


def create_with_rows(root: Root, location: str, rows: pa.Table) -> tuple[int, Fragments] | None:
    """Make version 1 of a new leaf out of rows, in one call of Lance's; its number, and the fragments.

    None if the directory has a version already. Columns must not be blobs, whose encoding is chosen elsewhere. Leaves
    made in one session share their connection to the store.
    """
    with storage_errors(f"create the leaf at {location!r}", root):
        uri, options = leaf_uri(root, location), root.lance_options
        try:
            done = lance.write_dataset(
                aligned(rows), uri, schema=rows.schema, mode="create", session=cache.session, storage_options=options
            )
        except OSError as error:
            if _EXISTS not in str(error):
                raise
            return None
        note(root, location, done)
        items = tuple(item.metadata for item in done.get_fragments())
    return int(done.version), Fragments(location=location, items=items)


def _write_new(rows: pa.Table, uri: str, options: dict[str, str] | None, limits: _Limits) -> list[FragmentMetadata]:
    """Write fragments of a new leaf; in overwrite mode Lance would warn that there is no dataset yet."""
    given = aligned(rows)
    try:
        return list(
            write_fragments(
                given,
                uri,
                schema=rows.schema,
                mode="create",
                storage_options=options,
                session=cache.session,
                **limits,
            )
        )
    except OSError as error:
        if _EXISTS not in str(error):
            raise
    return list(write_fragments(given, uri, schema=rows.schema, mode="overwrite", storage_options=options, **limits))


def create_leaf(root: Root, location: str, schema: pa.Schema, fragments: Sequence[FragmentMetadata]) -> int:
    """Make version 1 of a new leaf; nothing names its directory yet, so no reader sees it."""
    operation = lance.LanceOperation.Overwrite(stored_schema(schema, fragments), list(fragments))
    with storage_errors(f"create the leaf at {location!r}", root):
        done = lance.LanceDataset.commit(leaf_uri(root, location), operation, storage_options=root.lance_options)
        note(root, location, done)
        return int(done.version)


def stage_anew(root: Root, location: str, rows: pa.RecordBatchReader) -> Fragments:
    """Write rows that are to replace all rows of a table that exists."""
    with storage_errors(f"write rows to {location!r}", root):
        uri, options = leaf_uri(root, location), root.lance_options
        items = write_fragments(aligned(rows), uri, schema=rows.schema, mode="overwrite", storage_options=options)
    return Fragments(location=location, items=tuple(items))


def overwrite(root: Root, location: str, schema: pa.Schema, fragments: Sequence[FragmentMetadata], *, seen: int) -> int:
    """Make the next version of main, which was at ``seen``, out of fragments that were written as a new table's."""
    operation = lance.LanceOperation.Overwrite(stored_schema(schema, fragments), list(fragments))
    return commit_version(root, location, operation, None, seen=seen)


def append(
    root: Root,
    location: str,
    fragments: Sequence[FragmentMetadata],
    *,
    base: int | None,
    seen: int | None = None,
    handle: LeafHandle | None = None,
) -> int:
    """Make a version with more rows: detached from the version ``base``, or the next of main if there is none.

    Fragments of main that follow the columns of the version ``seen`` conflict with changes of columns since. ``handle``
    has ``base`` open, if given.
    """
    operation = lance.LanceOperation.Append(list(fragments))
    start = handle if isinstance(handle, lance.LanceDataset) else None
    return commit_version(root, location, operation, base, seen=seen, handle=start)


def add_columns(root: Root, location: str, fields: Sequence[pa.Field], *, base: int | None) -> int:
    """Make a version with more nullable columns, by metadata only."""
    with storage_errors(f"add columns to the leaf at {location!r}", root):
        handle = lance.dataset(leaf_uri(root, location), version=base, storage_options=root.lance_options)
        if base is None:
            handle.add_columns(list(fields))
            return int(handle.version)
        wanted = LanceSchema.from_pyarrow(pa.schema([*handle.schema, *fields]))
        operation = lance.LanceOperation.Merge([item.metadata for item in handle.get_fragments()], wanted)
    return commit_version(root, location, operation, base)


def rewrite(root: Root, location: str, rows: pa.RecordBatchReader, *, base: int | None) -> tuple[int, Fragments]:
    """Make a version whose rows and schema replace those of another."""
    with storage_errors(f"rewrite the leaf at {location!r}", root):
        uri, options = leaf_uri(root, location), root.lance_options
        items = write_fragments(aligned(rows), uri, schema=rows.schema, mode="overwrite", storage_options=options)
    operation = lance.LanceOperation.Overwrite(stored_schema(rows.schema, items), list(items))
    return commit_version(root, location, operation, base), Fragments(location=location, items=tuple(items))


def commit_version(
    root: Root,
    location: str,
    operation: lance.LanceOperation.BaseOperation,
    base: int | None,
    *,
    seen: int | None = None,
    handle: lance.LanceDataset | None = None,
) -> int:
    """Make a version detached from ``base``, or the next of main; there Lance finds conflicts since ``seen``.

    Given as a number, a version of main that main has moved on from would be taken for main's latest: it is opened,
    unless ``handle`` has it open already.
    """
    with storage_errors(f"commit to the leaf at {location!r}", root):
        uri, options = leaf_uri(root, location), root.lance_options
        if base is not None:
            kept = kept_leaf(root, location, base)
            start: str | lance.LanceDataset | None = handle if kept is None else kept
            if start is None:
                start = uri if base >> 63 else lance.dataset(uri, version=base, storage_options=options)
            done = lance.LanceDataset.commit(
                start, operation, read_version=base, detached=True, storage_options=options
            )
            if kept is not None:
                keep_leaf(root, location, done)
        else:
            known = seen if seen is not None else lance.dataset(uri, storage_options=options).version
            done = lance.LanceDataset.commit(uri, operation, read_version=known, storage_options=options)
        if base is not None:
            note(root, location, done)
        return int(done.version)


def as_dataset(
    root: Root, location: str, schema: pa.Schema, fragments: Sequence[FragmentMetadata], *, base: int | None
) -> LeafHandle:
    """Staged fragments as a dataset of their own, for reading them back; detached, so that no other client sees it."""
    operation = lance.LanceOperation.Overwrite(stored_schema(schema, fragments), list(fragments))
    if base is None:
        create_leaf(root, location, schema, fragments)
        return open_leaf(root, location, None)
    return open_leaf(root, location, commit_version(root, location, operation, base))


def delete_rows(
    root: Root,
    location: str,
    rows: Mapping[int, npt.NDArray[np.int64]],
    *,
    base: int | None,
    adding: Sequence[FragmentMetadata] = (),
    handle: LeafHandle | None = None,
) -> tuple[int, tuple[int, ...]]:
    """Make a version without some rows, and with those of new fragments, which follow the columns of ``base``.

    Its number, and the bytes of each fragment that went with its last row. ``handle`` has ``base`` open, if given.
    """
    with storage_errors(f"delete rows of the leaf at {location!r}", root):
        start = handle if isinstance(handle, lance.LanceDataset) else None
        if start is None:
            start = lance.dataset(leaf_uri(root, location), version=base, storage_options=root.lance_options)
        updated, gone = _without(start, rows)
        sizes = fragment_sizes(start) if gone else {}
    operation = (
        lance.LanceOperation.Update(removed_fragment_ids=gone, updated_fragments=updated, new_fragments=list(adding))
        if adding
        else lance.LanceOperation.Delete(updated, gone, "lancepart")
    )
    made = commit_version(root, location, operation, base, seen=int(start.version), handle=start)
    return made, tuple(sizes[number] for number in gone)


def replace_rows(
    root: Root,
    location: str,
    rows: Mapping[int, npt.NDArray[np.int64]],
    fragments: Sequence[FragmentMetadata],
    *,
    seen: int,
) -> int:
    """Make the next version of main, which was at ``seen``, without some of its rows and with those of new fragments.

    Lance refuses it if another writer changed the same fragments since; one that did anything else is looked for here.
    """
    with storage_errors(f"replace rows of the table at {location!r}", root):
        uri, options = leaf_uri(root, location), root.lance_options
        updated, gone = _without(lance.dataset(uri, version=seen, storage_options=options), rows)
        if (latest := lance.dataset(uri, storage_options=options).version) != seen:
            raise ConflictError(f"the table has changed since it was read: from version {seen} to {latest}")
    operation = lance.LanceOperation.Update(
        removed_fragment_ids=gone, updated_fragments=updated, new_fragments=list(fragments)
    )
    return commit_version(root, location, operation, None, seen=seen)


def _without(
    handle: lance.LanceDataset, rows: Mapping[int, npt.NDArray[np.int64]]
) -> tuple[list[FragmentMetadata], list[int]]:
    """The fragments that lose rows, and the numbers of those that lose their last one."""
    updated, gone = [], []
    for number, offsets in rows.items():
        fragment = handle.get_fragment(number)
        whole = fragment is not None and int(fragment.physical_rows) == len(offsets)
        left = None if fragment is None or whole else fragment.delete_rows(offsets.tolist())
        _refuse_lost(fragment, left, len(offsets))
        if left is None:
            gone.append(number)
        else:
            updated.append(left)
    return updated, gone


def _refuse_lost(fragment: LanceFragment | None, left: FragmentMetadata | None, wanted: int) -> None:
    """Notice on a main branch that others were faster: rows to be deleted that are gone already."""
    there = 0 if fragment is None else fragment.count_rows()
    after = 0 if left is None else left.num_rows
    if there - after != wanted:
        raise ConflictError("rows to be deleted were deleted by another writer")


def clear(root: Root, location: str, *, base: int | None) -> int:
    """Make a version of a leaf without any row."""
    handle = open_leaf(root, location, base)
    everything = [fragment.fragment_id for fragment in handle.get_fragments()]
    return commit_version(
        root, location, lance.LanceOperation.Delete([], everything, "true"), base, seen=int(handle.version)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What one version of a leaf has that another had not, and the other way round."""

    added: tuple[FragmentMetadata, ...]
    removed: frozenset[int]
    deleted: Mapping[int, Offsets]
    restored: Mapping[int, Offsets]


def difference(root: Root, location: str, before: int, after: int) -> Difference:
    """Compare two versions of a leaf, fragment by fragment and, where deletions differ, row by row."""
    old, new = open_leaf(root, location, before), open_leaf(root, location, after)
    with storage_errors(f"compare versions of the leaf at {location!r}", root):
        was = {item.fragment_id: item.metadata for item in old.get_fragments()}
        now = {item.fragment_id: item.metadata for item in new.get_fragments()}
        same = [key for key in was if key in now and _files(was[key]) == _files(now[key])]
        changed = [key for key in same if was[key].deletion_file != now[key].deletion_file]
        live = {key: (live_offsets(old, key), live_offsets(new, key)) for key in changed}
        deleted = {key: np.setdiff1d(a, b, assume_unique=True) for key, (a, b) in live.items()}
        restored = {key: np.setdiff1d(b, a, assume_unique=True) for key, (a, b) in live.items()}
        return Difference(
            added=tuple(now[key] for key in now if key not in same),
            removed=frozenset(was) - frozenset(same),
            deleted={key: gone for key, gone in deleted.items() if len(gone)},
            restored={key: back for key, back in restored.items() if len(back)},
        )


def _files(metadata: FragmentMetadata) -> tuple[str, ...]:
    """The files of a fragment's rows, and the overlays that hide values in them."""
    return (*map(data_path, metadata.files), *map(repr, metadata.overlays or ()))
