"""Upgrading a Hive-style table: its rows are written to new leaves beside the old tree, which is kept."""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lancepart.catalog import directories
from lancepart.commit.manifest_changes import who
from lancepart.errors import (
    ConcurrentModificationError,
    InternalError,
    TableAlreadyExistsError,
    UnsupportedOperationError,
)
from lancepart.format.names import (
    IDENTITY,
    METADATA,
    MOVED_ROOT,
    OLD_TREE,
    READ_VERSION,
    UPGRADE,
    partition_column,
    spec_namespace,
)
from lancepart.format.records import LeafRecord, Signature, Stats, VersionRecord
from lancepart.format.rows import namespace_row, read_rows
from lancepart.layout import create, hive, opening
from lancepart.layout.hive_tree import TreeManifest, TreeSnapshot, namespace_properties
from lancepart.layout.layouts import layout_of
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import MANIFEST, STRONG, TableMetadata, is_partitioned
from lancepart.maintain.fingerprint import Fingerprint
from lancepart.maintain.local import LOCAL
from lancepart.maintain.upgrade_copy import Copy, OldPartition, copied, leaf_versions, made
from lancepart.maintain.upgrade_draft import rows_of
from lancepart.model import hive_path
from lancepart.model.aliases import JsonObject
from lancepart.model.hashing import hashable
from lancepart.model.ids import object_id
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.transforms import Bucket, Hour, Truncate
from lancepart.model.transforms.hive import FloorBucket, FloorTruncate, Hash, Unknown
from lancepart.read.engine import Executor
from lancepart.storage import leaf_handle
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import Change, Row, RowUpdate, dump_metadata, metadata_update, now
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import ConflictError

WORK = "__upgrade"

_TRIES = 20


def upgrade(tree: TreeManifest, *, executor: Executor = LOCAL) -> Manifest:
    """Copy every leaf, check every partition, enter them into the manifest, and then swap the definition.

    Until the swap readers and writers see the old table; if one of its leaves changes meanwhile it is copied again.
    """
    if tree.snapshot().is_bare:
        raise UnsupportedOperationError(f"the tree at {tree.root.uri!r} has no __manifest: it can only be read")
    location = "/".join(tree.namespace)
    target = Manifest(opening.moved(tree.root, location) if location else tree.root)
    state = _state(target)
    metadata = current(layout_of(tree.snapshot()).load(tree.snapshot()), state["salt"])
    target.add_columns([READ_VERSION, *create.partition_fields(metadata.spec)])
    for _ in range(_TRIES):
        snapshot = tree.snapshot()
        copies = copied(tree, snapshot, target.root, metadata, state["id"], WORK, executor=executor)
        partitions = made(target.root, metadata, copies, state["id"])
        _verify(target.root, metadata, partitions, executor)
        _publish(tree, target, metadata, partitions, state["id"])
        if _unchanged(tree, copies) and _swap(tree, target, metadata, location):
            return Manifest(target.root)
    raise ConcurrentModificationError("other writers kept changing the tree; try again")


def current(old: TableMetadata, salt: str) -> TableMetadata:
    """The definition in the current layout; functions that it lacks become expressions."""
    fields = tuple(_field(field, old) for field in old.spec.fields)
    spec = PartitionSpec(id=1, fields=fields)
    spec.check(old.schema)
    return replace(old, specs=(spec,), transactions=STRONG, salt=salt, layout=MANIFEST)


def _field(field: PartitionField, old: TableMetadata) -> PartitionField:
    kind = old.columns[field.source_ids[0]].type
    match field.transform:
        case FloorBucket(num_buckets=count):
            return replace(field, transform=Bucket(count))
        case FloorTruncate(width=width):
            return replace(field, transform=Truncate(width))
        case Hash() if hashable(kind):
            return replace(field, transform=None, expression=Hash().sql(["col0"]))
        case Hour() if not Hour().accepts(kind):
            return replace(field, transform=None, expression=Hour().sql(["col0"]))
        case Hash() | Unknown():
            raise UnsupportedOperationError(
                f"the current layout has no equivalent of the partition field {field.field_id!r}"
            )
    return field


def _state(target: Manifest) -> dict[str, str]:
    """The state shared by all runs of one upgrade, so that they give partitions the same names and locations."""
    fresh = json.dumps({"salt": secrets.token_hex(8), "id": uuid.uuid4().hex})
    snapshot = target.snapshot()
    if UPGRADE not in snapshot.properties:
        if is_partitioned(snapshot.properties) or snapshot.row("v1") is not None:
            raise TableAlreadyExistsError(
                f"{target.root.uri!r} has a table or a namespace 'v1' of its own, where the upgraded table would be"
            )
        target.claim_properties({UPGRADE: fresh})
    found: dict[str, str] = json.loads(target.snapshot().properties[UPGRADE])
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTask:
    """One new leaf to be read back."""

    root: Root
    metadata: TableMetadata
    partition: OldPartition


def _verify(root: Root, metadata: TableMetadata, partitions: Sequence[OldPartition], executor: Executor) -> None:
    """Read every new leaf back, and compare it with the rows of the old ones."""
    tasks = [CheckTask(root=root, metadata=metadata, partition=partition) for partition in partitions]
    for partition, found in zip(partitions, executor.map(read_back, tasks, "checking"), strict=True):
        if found != partition.expected:
            raise InternalError(
                f"partition {partition.object_id!r} has {found}, not {partition.expected} as the old tree; "
                "the old table stays as it is"
            )


def read_back(task: CheckTask) -> Fingerprint:
    """What a new leaf holds."""
    leaf = Leaf(
        object_id=task.partition.object_id,
        spec_id=1,
        location=task.partition.location,
        key=task.partition.key,
        values=(),
        read_version=task.partition.version,
    )
    return rows_of(task.root, task.metadata, leaf)


def _publish(
    tree: TreeManifest, target: Manifest, metadata: TableMetadata, partitions: Sequence[OldPartition], identifier: str
) -> None:
    """The rows of all new leaves in one commit; no reader looks at them before the definition is swapped."""
    user = who()

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        if not hive.is_hive(tree.snapshot().table_properties):
            raise ConcurrentModificationError("the table was upgraded by another process meanwhile: open it again")
        wanted: dict[str, Row] = {}
        for partition in partitions:
            wanted |= _rows(target.root, metadata.spec, partition, identifier, user)
        first = spec_namespace(metadata.spec.id)
        wanted.setdefault(first, namespace_row(first, metadata={}))
        present = {row.object_id: row for row in snapshot.below(first)} | snapshot.rows([first])
        inserts = tuple(row for key, row in wanted.items() if key not in present)
        updates = tuple(
            RowUpdate(object_id=key, values={METADATA: dump_metadata(row.metadata or {}), **_pointer(row)})
            for key, row in wanted.items()
            if key in present and _pointer(row) != _pointer(present[key])
        )
        deletes = tuple(key for key in present if key not in wanted)
        return Change(inserts=inserts, updates=updates, deletes=deletes), None

    target.transact(plan)


def _pointer(row: Row) -> JsonObject:
    return {READ_VERSION.name: row.columns.get(READ_VERSION.name)}


def _rows(root: Root, spec: PartitionSpec, partition: OldPartition, identifier: str, user: str) -> dict[str, Row]:
    columns = [partition_column(field.field_id) for field in spec.fields]
    values = dict(zip(columns, partition.values, strict=True))
    names = partition.object_id.split("$")
    found: dict[str, Row] = {}
    for depth in range(1, len(names)):
        mine = {column: values[column] for column in columns[: depth - 1]}
        key = object_id(names[:depth])
        found[key] = namespace_row(key, metadata={}, columns=mine)
    handle = leaf_handle.open_leaf(root, partition.location, partition.version)
    rows, size, fragments = leaf_handle.measure(handle)
    stats = Stats(rows=rows, bytes=size, fragments=fragments)
    found[partition.object_id] = LeafRecord(
        object_id=partition.object_id,
        location=partition.location,
        read_version=partition.version,
        values=values,
        number=1,
        stats=stats,
        created_at=now(),
    ).to_row()
    version = VersionRecord(
        leaf=partition.object_id,
        number=1,
        read_version=partition.version,
        signature=Signature(transaction=identifier, operation="upgrade", by=user),
        added=rows,
        deleted=0,
        change=0,
        stats=stats,
        created_at=now(),
    )
    found[version.object_id] = version.to_row()
    return found


def _unchanged(tree: TreeManifest, copies: Sequence[Copy]) -> bool:
    return leaf_versions(tree.root, tree.snapshot()) == {copy.object_id: copy.version for copy in copies}


def _swap(tree: TreeManifest, target: Manifest, metadata: TableMetadata, location: str) -> bool:
    """The one commit that switches to the new table; False if another change was committed first."""
    properties = metadata.to_properties()
    snapshot = tree.snapshot()
    old = {key: value for key, value in snapshot.table_properties.items() if key.startswith(hive.PREFIX)}
    kept = json.dumps(old)
    if not location:
        return _swap_root(target, snapshot, {**properties, **dict.fromkeys(old), UPGRADE: None, OLD_TREE: kept})
    target.set_properties(properties)

    def plan(latest: Snapshot, retry: bool) -> tuple[Change, bool]:
        row = latest.row(object_id(tree.namespace))
        if row is None:
            return Change(), False
        mine = {key: value for key, value in (row.metadata or {}).items() if key not in old}
        marked = {**mine, MOVED_ROOT: location, IDENTITY: metadata.salt, OLD_TREE: kept}
        return Change(updates=(metadata_update(row.object_id, marked),)), True

    return Manifest(tree.root).transact(plan)


def _swap_root(target: Manifest, snapshot: TreeSnapshot, values: Mapping[str, str | None]) -> bool:
    try:
        target.swap_properties(snapshot, values)  # type: ignore[arg-type]
    except ConflictError:
        return False
    return True


def tidy(manifest: Manifest) -> None:
    """Remove what an upgrade noted down for itself."""
    if UPGRADE in manifest.snapshot().properties:
        manifest.set_properties({UPGRADE: None})
    Files(manifest.root).delete_directory(WORK, with_tables=True)


def remove_old(root: Root, namespace: Sequence[str]) -> None:
    """Drop the tree that an upgrade kept: its rows in one commit, then its directories."""
    catalog = Manifest(root)
    kept = namespace_properties(catalog.snapshot(), namespace).get(OLD_TREE)
    if kept is None:
        return
    _, columns = hive.from_properties(json.loads(kept))
    prefix = len(object_id(namespace)) + 1 if namespace else 0

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, list[str]]:
        rows = snapshot.below(object_id(namespace)) if namespace else _all_rows(snapshot)
        doomed = [row for row in rows if _is_of(row.object_id[prefix:], columns[0].key)]
        locations = [row.location for row in doomed if row.location is not None]
        return Change(deletes=tuple(row.object_id for row in doomed)), locations

    for place in catalog.transact(plan):
        if directories.is_named(catalog.snapshot(), place, besides=object_id(namespace)):
            continue
        Files(root).delete_directory(place)
        for above in _parents(place, len(namespace)):
            Files(root).prune(above)


def _all_rows(snapshot: Snapshot) -> list[Row]:
    found = snapshot.scan(None)
    return read_rows(found)


def _is_of(path: str, key: str) -> bool:
    pair = hive_path.split(path.split("$", maxsplit=1)[0])
    return pair is not None and pair[0] == key


def _parents(place: str, above: int) -> list[str]:
    parts = place.split("/")[:-1]
    return ["/".join(parts[:depth]) for depth in range(len(parts), above, -1)]
