"""Copying the rows of a Hive-style tree into new leaves, with a record of progress so that no leaf is copied twice."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lancepart.format.names import DATASET
from lancepart.layout.columns import leaf_schema
from lancepart.layout.hive_tree import TreeManifest, TreeSnapshot, tree_leaves
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.maintain.fingerprint import Fingerprint, fingerprint
from lancepart.maintain.local import LOCAL
from lancepart.model.ids import leaf_location, object_id, partition_name
from lancepart.model.spec import PartitionSpec
from lancepart.read import leaf as reading
from lancepart.read.engine import Executor
from lancepart.read.leaf import LeafTask
from lancepart.storage import fragment_json, leaf_data, refs
from lancepart.storage.files import Files
from lancepart.storage.leaf_handle import Fragment
from lancepart.storage.root import Root
from lancepart.storage.translate import MissingError
from lancepart.write.conform import CHUNK_ROWS
from lancepart.write.route import PartitionRows, route


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedRows:
    """Rows of one old leaf that belong to one new partition, written and not yet part of any version."""

    key: tuple[str, ...]
    values: tuple[pa.Scalar, ...]
    fragments: tuple[Fragment, ...]
    expected: Fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """What became of one old leaf, read at one version."""

    object_id: str
    version: int
    pieces: tuple[CopiedRows, ...]

    def dumps(self, spec: PartitionSpec) -> bytes:
        """The note of it."""
        pieces = [
            {
                "key": piece.key,
                "values": _values_to_text(piece.values, spec),
                "fragments": fragment_json.fragments_to_json(piece.fragments),
                "rows": piece.expected.rows,
                "checksum": piece.expected.checksum,
            }
            for piece in self.pieces
        ]
        return json.dumps({"object_id": self.object_id, "version": self.version, "pieces": pieces}).encode()

    @classmethod
    def loads(cls, text: bytes) -> Copy:
        """Read a note."""
        given = json.loads(text)
        pieces = [
            CopiedRows(
                key=tuple(piece["key"]),
                values=_values_from_text(piece["values"]),
                fragments=fragment_json.fragments_from_json(piece["fragments"]),
                expected=Fingerprint(piece["rows"], piece["checksum"]),
            )
            for piece in given["pieces"]
        ]
        return cls(object_id=given["object_id"], version=given["version"], pieces=tuple(pieces))


@dataclass(frozen=True, slots=True, kw_only=True)
class OldPartition:
    """A new leaf: where it is, at which version, and what it must hold."""

    object_id: str
    location: str
    key: tuple[str, ...]
    values: tuple[pa.Scalar, ...]
    version: int
    expected: Fingerprint


def leaf_versions(root: Root, snapshot: TreeSnapshot) -> dict[str, int]:
    """The latest version of each leaf of a tree."""
    found = tree_leaves(snapshot.tree, snapshot.tree.leaves)
    return {leaf.object_id: _latest(root, leaf) for leaf in found}


def _latest(root: Root, leaf: Leaf) -> int:
    """The latest version of a leaf, 0 for one that was only declared."""
    try:
        return refs.latest(root, leaf.location)
    except MissingError:
        if refs.is_declared(root, leaf.location):
            return 0
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyTask:
    """One old leaf to copy, unless a note records that it was: plain values, so that executors can do it."""

    source: Root
    old: TableMetadata
    leaf: Leaf
    target: Root
    metadata: TableMetadata
    identifier: str
    work: str


def copied(
    tree: TreeManifest,
    snapshot: TreeSnapshot,
    target: Root,
    metadata: TableMetadata,
    identifier: str,
    work: str,
    *,
    executor: Executor = LOCAL,
) -> list[Copy]:
    """Copy every leaf that no note records as copied, at its latest version."""
    tasks = [
        CopyTask(
            source=tree.root,
            old=snapshot.tree.metadata,
            leaf=leaf,
            target=target,
            metadata=metadata,
            identifier=identifier,
            work=work,
        )
        for leaf in tree_leaves(snapshot.tree, snapshot.tree.leaves)
    ]
    return executor.map(copy_leaf, tasks, "copying")


def copy_leaf(task: CopyTask) -> Copy:
    """Copy one leaf and note it, or read the note."""
    files = Files(task.target)
    note = f"{task.work}/{hashlib.sha256(task.leaf.object_id.encode()).hexdigest()[:32]}.json"
    version = _latest(task.source, task.leaf)
    copy = Copy.loads(files.read(note)) if files.exists(note) else None
    if copy is None or copy.version != version:
        pinned = replace(task.leaf, read_version=version)
        copy = _copy(task.source, task.old, pinned, task.target, task.metadata, task.identifier)
        files.put(note, copy.dumps(task.metadata.spec))
    return copy


def _copy(source: Root, old: TableMetadata, leaf: Leaf, target: Root, metadata: TableMetadata, identifier: str) -> Copy:
    columns = tuple(old.schema.names)
    task = LeafTask(root=source, metadata=old, leaf=leaf, columns=columns, predicate=None)
    pieces: dict[tuple[str, ...], CopiedRows] = {}
    buffered: list[pa.RecordBatch] = []
    for batch in reading.read(task):
        buffered.append(batch)
        if sum(each.num_rows for each in buffered) >= CHUNK_ROWS:
            _stage(buffered, target, metadata, identifier, pieces)
            buffered = []
    _stage(buffered, target, metadata, identifier, pieces)
    return Copy(object_id=leaf.object_id, version=int(leaf.read_version or 0), pieces=tuple(pieces.values()))


def _stage(
    buffered: list[pa.RecordBatch],
    target: Root,
    metadata: TableMetadata,
    identifier: str,
    pieces: dict[tuple[str, ...], CopiedRows],
) -> None:
    if not buffered:
        return
    rows = pa.Table.from_batches(buffered)
    for part in route(rows, metadata.schema, metadata.spec):
        piece = _piece(part, target, metadata, identifier)
        known = pieces.get(part.key)
        pieces[part.key] = (
            piece
            if known is None
            else replace(known, fragments=known.fragments + piece.fragments, expected=known.expected + piece.expected)
        )


def _piece(part: PartitionRows, target: Root, metadata: TableMetadata, identifier: str) -> CopiedRows:
    rows = part.rows
    expected = fingerprint([rows])
    location = leaf_location(identifier, _object_id(metadata, part.key))
    schema = leaf_schema(metadata.schema)
    written = leaf_data.stage(target, location, rows.rename_columns(schema.names).cast(schema), base=None).items
    return CopiedRows(key=part.key, values=part.values, fragments=written, expected=expected)


def _object_id(metadata: TableMetadata, key: tuple[str, ...]) -> str:
    names = [partition_name(metadata.salt, 1, key[: depth + 1]) for depth in range(len(key))]
    return object_id(["v1", *names, DATASET])


def made(target: Root, metadata: TableMetadata, copies: Sequence[Copy], identifier: str) -> list[OldPartition]:
    """Make every new leaf of the pieces that belong to it, unless it is there with just these."""
    gathered: dict[tuple[str, ...], list[CopiedRows]] = {}
    for piece in (piece for copy in copies for piece in copy.pieces):
        gathered.setdefault(piece.key, []).append(piece)
    partitions = []
    for key, pieces in gathered.items():
        name = _object_id(metadata, key)
        location = leaf_location(identifier, name)
        fragments = [item for piece in pieces for item in piece.fragments]
        version = fragment_json.version_with(target, location, fragments)
        if version is None:
            version = leaf_data.create_leaf(target, location, leaf_schema(metadata.schema), fragments)
        total = Fingerprint()
        for piece in pieces:
            total += piece.expected
        partitions.append(
            OldPartition(
                object_id=name, location=location, key=key, values=pieces[0].values, version=version, expected=total
            )
        )
    return partitions


def _values_to_text(values: Sequence[pa.Scalar], spec: PartitionSpec) -> str:
    arrays = [pa.repeat(value, 1) for value in values]
    batch = pa.RecordBatch.from_arrays(arrays, names=[field.field_id for field in spec.fields])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return base64.b64encode(sink.getvalue().to_pybytes()).decode()


def _values_from_text(text: str) -> tuple[pa.Scalar, ...]:
    table = pa.ipc.open_stream(base64.b64decode(text)).read_all()
    return tuple(column[0] for column in table.columns)
