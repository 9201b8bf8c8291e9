"""The data of leaf tables: fragments staged without being visible, and commits that make versions of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.bitmap import Bitmap
from lance.dataset import Index
from lance.fragment import FragmentMetadata, LanceFragment, write_fragments
from lance.optimize import Compaction, CompactionOptions, RewriteResult
from lance.schema import LanceSchema

from lancepart.errors import InternalError, InvalidInputError
from lancepart.model.aliases import Value
from lancepart.storage.alignment import aligned
from lancepart.storage.files import Files
from lancepart.storage.root import Root
from lancepart.storage.translate import ConflictError, UnreadableError, storage_errors

if TYPE_CHECKING:
    from lance import Session
    from lance.lance.schema import LanceField

    from lancepart.storage.dataset import IndexDescription


BLOBS_AS_BYTES: Literal["all_binary"] = "all_binary"
_RESCUE = (
    "the table's manifest names this version: bring its file {} back, or delete or overwrite the whole partition, "
    "or roll back; table.inspect.broken() lists all leaves that can't be read"
)
_EXISTS = "already exists"

Fragment: TypeAlias = FragmentMetadata
"""What Lance says of one fragment: its files, its rows and which of them are deleted."""

Offsets: TypeAlias = npt.NDArray[np.int64]
"""Offsets of rows in one fragment."""

Addresses: TypeAlias = npt.NDArray[np.uint64]
"""Row addresses: fragment and offset in one number each."""

NativeIds: TypeAlias = tuple[str, int, tuple["NativeIds", ...]]
"""A column's name, Lance's own id of it, and the same of the fields inside it."""


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


def _uri(root: Root, location: str) -> str:
    """Where a leaf is; a place that its row must not name makes it one that can't be read, which can be replaced."""
    try:
        return root.uri_of(location)
    except InvalidInputError as error:
        raise UnreadableError(f"a leaf's row in __manifest names no place beneath the root: {error}") from None


def stage(root: Root, location: str, rows: pa.Table, *, base: int | str | None) -> Fragments:
    """Write rows to a leaf's directory; ``base`` is the version whose schema they follow, ``None`` for a new leaf."""
    with storage_errors(f"write rows to {location!r}", root):
        uri, options = _uri(root, location), _options(root)
        if base is None:
            items = _write_new(rows, uri, options)
        else:
            target = lance.dataset(uri, version=base if base != "latest" else None, storage_options=options)
            items = write_fragments(aligned(rows), target, schema=rows.schema, storage_options=options)
    return Fragments(location=location, items=tuple(items))


def _write_new(rows: pa.Table, uri: str, options: dict[str, str] | None) -> list[FragmentMetadata]:
    """Write fragments of a new leaf; in overwrite mode Lance would warn that there is no dataset yet."""
    given = aligned(rows)
    try:
        return list(write_fragments(given, uri, schema=rows.schema, mode="create", storage_options=options))
    except OSError as error:
        if _EXISTS not in str(error):
            raise
    return list(write_fragments(given, uri, schema=rows.schema, mode="overwrite", storage_options=options))


def create_leaf(root: Root, location: str, schema: pa.Schema, fragments: Sequence[FragmentMetadata]) -> int:
    """Make version 1 of a new leaf; nothing names its directory yet, so no reader sees it."""
    operation = lance.LanceOperation.Overwrite(schema, list(fragments))
    with storage_errors(f"create the leaf at {location!r}", root):
        done = lance.LanceDataset.commit(_uri(root, location), operation, storage_options=_options(root))
        return int(done.version)


def append(root: Root, location: str, fragments: Sequence[FragmentMetadata], *, base: int | None) -> int:
    """Make a version with more rows: detached from the version ``base``, or the next of main if there is none."""
    operation = lance.LanceOperation.Append(list(fragments))
    return _commit(root, location, operation, base)


def add_columns(root: Root, location: str, fields: Sequence[pa.Field], *, base: int | None) -> int:
    """Make a version with more nullable columns, by metadata only."""
    with storage_errors(f"add columns to the leaf at {location!r}", root):
        handle = lance.dataset(_uri(root, location), version=base, storage_options=_options(root))
        if base is None:
            handle.add_columns(list(fields))
            return int(handle.version)
        wanted = LanceSchema.from_pyarrow(pa.schema([*handle.schema, *fields]))
        operation = lance.LanceOperation.Merge([item.metadata for item in handle.get_fragments()], wanted)
    return _commit(root, location, operation, base)


def rewrite(root: Root, location: str, rows: pa.RecordBatchReader, *, base: int | None) -> tuple[int, Fragments]:
    """Make a version whose rows and schema replace those of another."""
    with storage_errors(f"rewrite the leaf at {location!r}", root):
        uri, options = _uri(root, location), _options(root)
        items = write_fragments(aligned(rows), uri, schema=rows.schema, mode="overwrite", storage_options=options)
    operation = lance.LanceOperation.Overwrite(rows.schema, list(items))
    return _commit(root, location, operation, base), Fragments(location=location, items=tuple(items))


def _commit(
    root: Root,
    location: str,
    operation: lance.LanceOperation.BaseOperation,
    base: int | None,
    *,
    seen: int | None = None,
) -> int:
    """Make a version detached from ``base``, or the next of main; there Lance finds conflicts since ``seen``.

    Given as a number, a version of main that main has moved on from would be taken for main's latest: it is opened.
    """
    with storage_errors(f"commit to the leaf at {location!r}", root):
        uri, options = _uri(root, location), _options(root)
        if base is not None:
            start = uri if base >> 63 else lance.dataset(uri, version=base, storage_options=options)
            done = lance.LanceDataset.commit(
                start, operation, read_version=base, detached=True, storage_options=options
            )
        else:
            known = seen if seen is not None else lance.dataset(uri, storage_options=options).version
            done = lance.LanceDataset.commit(uri, operation, read_version=known, storage_options=options)
        return int(done.version)


def measure(handle: lance.LanceDataset) -> tuple[int, int, int]:
    """The rows, bytes and fragments of a leaf that is open."""
    fragments = handle.get_fragments()
    size = sum(int(file.file_size_bytes or 0) for item in fragments for file in item.metadata.files)
    return sum(item.count_rows() for item in fragments), size, len(fragments)


def fragment_sizes(handle: lance.LanceDataset) -> dict[int, int]:
    """How large the files of each fragment are."""
    return {
        item.fragment_id: sum(int(file.file_size_bytes or 0) for file in item.metadata.files)
        for item in handle.get_fragments()
    }


def _options(root: Root) -> dict[str, str] | None:
    return dict(root.storage_options) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafShape:
    """The columns of a leaf at one version, with Lance's own ids, by which its files know them."""

    schema: pa.Schema
    ids: tuple[NativeIds, ...]

    @property
    def native_ids(self) -> list[int]:
        """Lance's ids of the top-level columns."""
        return [item[1] for item in self.ids]


def shape_of(handle: lance.LanceDataset) -> LeafShape:
    """Read the columns of an open leaf."""
    return LeafShape(schema=handle.schema, ids=tuple(_ids(field) for field in handle.lance_schema.fields()))


def _ids(field: LanceField) -> NativeIds:
    return (field.name(), field.id(), tuple(_ids(child) for child in field.children()))


def open_leaf(root: Root, location: str, version: int | None, *, session: Session | None = None) -> lance.LanceDataset:
    """Open a leaf at the version that the manifest names, or its latest; a session shares caches with others."""
    try:
        with storage_errors(f"open the leaf at {location!r}", root):
            return lance.dataset(_uri(root, location), version=version, storage_options=_options(root), session=session)
    except UnreadableError as error:
        if version is None:
            raise
        raise type(error)(f"{error}; {_RESCUE.format(_manifest_file(version))}") from None


def _manifest_file(version: int) -> str:
    """The file that a version of a leaf begins with."""
    return f"_versions/d{version}.manifest" if version >> 63 else f"_versions of version {version}"


def missing_files(root: Root, location: str, handle: Any) -> list[str]:
    """The files that an open version of a leaf needs and that are gone, as paths beneath the root."""
    store = Files(root)
    inside = {
        f"data/{file.path}"
        for fragment in handle.get_fragments()
        for file in fragment.metadata.files
        if getattr(file, "base_id", None) is None
    }
    inside |= {str(found) for fragment in handle.get_fragments() if (found := fragment.deletion_file())}
    return sorted(path for name in inside if not store.exists(path := f"{location}/{name}"))


def as_dataset(
    root: Root, location: str, schema: pa.Schema, fragments: Sequence[FragmentMetadata], *, base: int | None
) -> lance.LanceDataset:
    """Staged fragments as a dataset of their own, for reading them back; detached, so that nobody else sees it."""
    operation = lance.LanceOperation.Overwrite(schema, list(fragments))
    if base is None:
        create_leaf(root, location, schema, fragments)
        return open_leaf(root, location, None)
    return open_leaf(root, location, _commit(root, location, operation, base))


def addresses(handle: lance.LanceDataset, where: str | None) -> npt.NDArray[np.uint64]:
    """The addresses of the rows that a filter matches."""
    found = handle.scanner(columns=[], filter=where, with_row_address=True).to_table()
    rows: npt.NDArray[np.uint64] = found.column("_rowaddr").to_numpy()
    return rows


def split_addresses(found: npt.NDArray[np.uint64]) -> dict[int, npt.NDArray[np.int64]]:
    """Offsets of rows by fragment."""
    ordered = np.sort(np.asarray(found, dtype=np.uint64))
    fragments = (ordered >> np.uint64(32)).astype(np.int64)
    offsets = (ordered & np.uint64(0xFFFFFFFF)).astype(np.int64)
    starts: list[int] = []
    if len(ordered):
        starts = np.flatnonzero(np.append(True, fragments[1:] != fragments[:-1])).tolist()
    return {int(fragments[a]): offsets[a:b] for a, b in zip(starts, [*starts[1:], len(ordered)], strict=True)}


def delete_rows(
    root: Root, location: str, rows: Mapping[int, npt.NDArray[np.int64]], *, base: int | None
) -> tuple[int, int]:
    """Make a version without some rows; its number, and how many fragments went with their last row."""
    with storage_errors(f"delete rows of the leaf at {location!r}", root):
        handle = lance.dataset(_uri(root, location), version=base, storage_options=_options(root))
        updated, gone = [], []
        for number, offsets in rows.items():
            fragment = handle.get_fragment(number)
            left = None if fragment is None else fragment.delete_rows([int(offset) for offset in offsets])
            _refuse_lost(fragment, left, len(offsets))
            if left is None:
                gone.append(number)
            else:
                updated.append(left)
    operation = lance.LanceOperation.Delete(updated, gone, "lancepart")
    return _commit(root, location, operation, base, seen=int(handle.version)), len(gone)


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
    return _commit(root, location, lance.LanceOperation.Delete([], everything, "true"), base, seen=int(handle.version))


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
    return tuple(file.path for file in metadata.files)


def live_offsets(handle: Any, number: int) -> Offsets:
    """The offsets of the rows of one fragment that are not deleted."""
    found = handle.scanner(columns=[], with_row_address=True, fragments=[handle.get_fragment(number)]).to_table()
    offsets: Offsets = (found.column("_rowaddr").to_numpy() & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return offsets


def fragments_of(handle: lance.LanceDataset, numbers: Sequence[int]) -> list[LanceFragment]:
    """Some fragments of an open leaf."""
    return [_fragment(handle, number) for number in numbers]


def _fragment(handle: lance.LanceDataset, number: int) -> LanceFragment:
    found = handle.get_fragment(number)
    if found is None:
        raise InternalError(f"version {handle.version} of the leaf at {handle.uri!r} has no fragment {number}")
    return found


def rows_of(handle: lance.LanceDataset, fragments: Sequence[FragmentMetadata]) -> Iterator[pa.RecordBatch]:
    """The live rows of some fragments of an open leaf, batch by batch."""
    chosen = fragments_of(handle, [item.id for item in fragments])
    return handle.scanner(fragments=chosen, blob_handling=BLOBS_AS_BYTES).to_batches()


def rows_at(handle: Any, row_offsets: Mapping[int, Offsets]) -> Iterator[pa.RecordBatch]:
    """The rows at some places of an open leaf, batch by batch."""
    for number, offsets in row_offsets.items():
        chosen = handle.get_fragment(number)
        for batch in handle.scanner(
            fragments=[chosen], with_row_address=True, blob_handling=BLOBS_AS_BYTES
        ).to_batches():
            own = (batch.column("_rowaddr").to_numpy() & np.uint64(0xFFFFFFFF)).astype(np.int64)
            kept = batch.filter(pa.array(np.isin(own, offsets)))
            if kept.num_rows:
                yield kept.drop_columns(["_rowaddr"])


def compact(root: Root, location: str, *, base: int, target_rows: int, rebuilt: Collection[str] = ()) -> int | None:
    """Make a version whose small fragments are put together and whose deleted rows are gone; None if none is needed.

    Lance leaves apart what an index covers and what it does not, so those that are ``rebuilt`` anyway go first.
    """
    handle = open_leaf(root, location, base)
    old = [item for index in handle.describe_indices() if index.name in rebuilt for item in _segments(index)]
    if old and len(handle.get_fragments()) > 1:
        base = _commit(root, location, lance.LanceOperation.CreateIndex([], old), base)
        handle = open_leaf(root, location, base)
    with storage_errors(f"compact the leaf at {location!r}", root):
        plan = Compaction.plan(handle, CompactionOptions(target_rows_per_fragment=target_rows, num_threads=1))
        if not plan.num_tasks():
            return None
        done = [task.execute(handle) for task in plan.tasks]
    groups = [lance.LanceOperation.RewriteGroup(_originals(handle, item), item.new_fragments) for item in done]
    return _commit(root, location, lance.LanceOperation.Rewrite(groups, []), base)


def _originals(handle: lance.LanceDataset, done: RewriteResult) -> list[FragmentMetadata]:
    """The fragments that were put together; pylance's ``original_fragments`` can't read those with overlays."""
    numbers = [each["id"] for each in json.loads(done.json())["original_fragments"]]  # type: ignore[attr-defined]
    return [item.metadata for item in fragments_of(handle, numbers)]


def build_index(
    root: Root,
    location: str,
    column: str,
    kind: str,
    name: str,
    *,
    base: int,
    fragments: Collection[int] | None = None,
    **params: Value,
) -> int:
    """Make a version with an index over all rows, or over those of some fragments beside what others are indexed by.

    An index that can't be opened is an error.
    """
    with storage_errors(f"index the leaf at {location!r}", root):
        handle = lance.dataset(_uri(root, location), version=base, storage_options=_options(root))
        ids = [item.fragment_id for item in handle.get_fragments()] if fragments is None else sorted(fragments)
        old = [] if fragments is not None else _named(handle, name)
        built = handle.create_index_uncommitted(column, kind, name=name, replace=True, fragment_ids=ids, **params)
        if kind == "INVERTED":
            built = handle.merge_existing_index_segments([built])
    newer = _commit(root, location, lance.LanceOperation.CreateIndex([built], old), base)
    with storage_errors(f"use the new index of the leaf at {location!r}", root):
        lance.dataset(_uri(root, location), version=newer, storage_options=_options(root)).stats.index_stats(name)
    return newer


def drop_index(root: Root, location: str, name: str, *, base: int) -> int | None:
    """Make a version without an index; None if there is none of that name."""
    old = _named(open_leaf(root, location, base), name)
    return _commit(root, location, lance.LanceOperation.CreateIndex([], old), base) if old else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many parts an index of a leaf has, and the fragments with their rows that it does not cover."""

    segments: int
    uncovered: Mapping[int, int]


def coverage(root: Root, location: str, name: str, *, base: int) -> Coverage:
    """What an index of a leaf covers; one that is not there covers nothing."""
    handle = open_leaf(root, location, base)
    parts = _named(handle, name)
    covered = {number for part in parts for number in part.fragment_ids}
    rows = {item.fragment_id: item.count_rows() for item in handle.get_fragments()}
    return Coverage(
        segments=len(parts), uncovered={number: count for number, count in rows.items() if number not in covered}
    )


def _named(handle: lance.LanceDataset, name: str) -> list[Index]:
    return [item for index in handle.describe_indices() if index.name == name for item in _segments(index)]


def _segments(index: IndexDescription) -> list[Index]:
    """The parts of an index, spelled as a commit that removes them wants them."""
    return [
        Index(
            uuid=str(part.uuid),
            name=index.name,
            fields=list(index.fields),
            dataset_version=int(part.dataset_version_at_last_update),
            fragment_ids=Bitmap(part.fragment_ids),
            index_version=int(part.index_version),
        )
        for part in index.segments
    ]
