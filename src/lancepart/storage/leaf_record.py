"""The fragments of a leaf's version as its row in the manifest records them.

Lance hands out what it has just committed or opened: it is described then, so that a commit need not open it again.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from lance.fragment import DataFile, DeletionFile, FragmentMetadata

from lancepart.format.fragments import DeletionRecord, FileRecord, FragmentRecord, LeafFiles
from lancepart.model.aliases import JsonObject
from lancepart.storage.leaf_handle import LeafHandle, data_path, fragment_count, open_leaf
from lancepart.storage.root import Root

if TYPE_CHECKING:
    from lance.lance.schema import LanceField

_MOST_FRAGMENTS = 32
_KEPT = 1 << 15
_MOST_SHAPES = 256

_noted: OrderedDict[tuple[str, str, int], tuple[LeafFiles, JsonObject]] = OrderedDict()
_fingerprints: dict[str, str] = {}
_lock = threading.Lock()


def note(root: Root, location: str, handle: LeafHandle) -> None:
    """Keep what an open version of a leaf consists of for the commit that publishes it; the oldest are forgotten."""
    found = describe(handle)
    spelled = None if found is None else found.to_json()
    if found is None or spelled is None:
        return
    with _lock:
        _noted[root.uri, location, found.version] = (found, spelled)
        if len(_noted) > _KEPT:
            _noted.popitem(last=False)


def note_elsewhere(root: Root, location: str, version: int) -> None:
    """Note a version that another process made, unless it is noted already."""
    if (root.uri, location, version) not in _noted:
        note(root, location, open_leaf(root, location, version))


def noted(root: Root, location: str, version: int | None) -> tuple[LeafFiles, JsonObject] | tuple[None, None]:
    """What was noted of a version of a leaf, and the same as it is written down."""
    return (None, None) if version is None else _noted.get((root.uri, location, version), (None, None))


def noted_size(root: Root, location: str, version: int | None) -> tuple[int, int, int] | None:
    """The rows, bytes and fragments of a version of a leaf by what was noted of it; None if it was not."""
    found = noted(root, location, version)[0]
    if found is None:
        return None
    rows = sum(item.rows - (0 if item.deletion is None else item.deletion.rows) for item in found.fragments)
    size = sum(file.size or 0 for item in found.fragments for file in item.files)
    return rows, size, len(found.fragments)


def describe(handle: LeafHandle) -> LeafFiles | None:
    """The fragments of an open leaf; None if they are many, or have more than files of the leaf's own directory."""
    if fragment_count(handle) > _MOST_FRAGMENTS:
        return None
    found = [item.metadata for item in handle.get_fragments()]
    if not all(_is_plain(item) for item in found):
        return None
    recorded = tuple(_recorded(item) for item in found)
    return LeafFiles(version=int(handle.version), shape=fingerprint(handle), fragments=recorded)


def _is_plain(item: FragmentMetadata) -> bool:
    """Whether a fragment's files are all that there is to know of it, and are in the leaf's directory."""
    gone = item.deletion_file
    inside = all(file.base_id is None for file in item.files) and (gone is None or gone.base_id is None)
    return bool(item.files) and inside and not item.overlays and (gone is None or gone.num_deleted_rows is not None)


def _recorded(item: FragmentMetadata) -> FragmentRecord:
    files = tuple(
        FileRecord(
            path=data_path(file),
            fields=tuple(file.fields),
            columns=tuple(file.column_indices),
            major=int(file.file_major_version),
            minor=int(file.file_minor_version),
            size=None if file.file_size_bytes is None else int(file.file_size_bytes),
        )
        for file in item.files
    )
    gone = item.deletion_file
    deletion = None
    if gone is not None:
        deletion = DeletionRecord(
            kind=gone.file_type, version=int(gone.read_version), id=int(gone.id), rows=int(gone.num_deleted_rows)
        )
    return FragmentRecord(id=int(item.id), rows=int(item.physical_rows), files=files, deletion=deletion)


def fragment(found: FragmentRecord) -> FragmentMetadata:
    """A recorded fragment as Lance names it."""
    files = [
        DataFile(file.path, list(file.fields), list(file.columns), file.major, file.minor, file.size)
        for file in found.files
    ]
    gone = found.deletion
    deletion = None if gone is None else DeletionFile(gone.version, gone.id, gone.kind, gone.rows, None)
    return FragmentMetadata(id=found.id, files=files, physical_rows=found.rows, deletion_file=deletion)


def fingerprint(handle: LeafHandle) -> str:
    """What distinguishes the columns of an open leaf from those of others: names, types, metadata, and Lance's own ids.

    Leaves of a table have few kinds of columns: those seen before are recognised by how Lance prints them.
    """
    columns = handle.lance_schema
    printed = repr(columns)
    known = _fingerprints.get(printed)
    if known is not None:
        return known
    native = [text for field in columns.fields() for text in _native(field)]
    spelled = [text for field in handle.schema for text in _spelled(field)]
    found = hashlib.sha256(repr((native, spelled)).encode()).hexdigest()[:32]
    if len(_fingerprints) >= _MOST_SHAPES:
        _fingerprints.clear()
    _fingerprints[printed] = found
    return found


def _native(field: LanceField) -> Iterator[str]:
    yield f"{field.name()}={field.id()}("
    for child in field.children():
        yield from _native(child)
    yield ")"


def _spelled(field: pa.Field) -> Iterator[str]:
    """A field with all inside it; the order of metadata is not always the same."""
    yield f"{field.name}:{field.type}:{field.nullable}:{sorted((field.metadata or {}).items())}("
    for index in range(field.type.num_fields):
        yield from _spelled(field.type.field(index))
    yield ")"


def identity(handle: LeafHandle) -> int:
    """A version of a table in 64 bits: a digest of its number and files, whose names no table of the same place has."""
    digest = hashlib.blake2b(str(handle.version).encode(), digest_size=8)
    for item in handle.get_fragments():
        digest.update(repr((item.fragment_id, [file.path for file in item.metadata.files])).encode())
    return int.from_bytes(digest.digest(), "big", signed=True)
