"""Upgrading the expression draft in place: no data is rewritten."""

from __future__ import annotations

import secrets
import uuid
from dataclasses import replace

from lancepart.commit.manifest_changes import who
from lancepart.errors import ConcurrentModificationError, InternalError
from lancepart.format.names import (
    LOCATION,
    OBJECT_ID,
    READ_BRANCH,
    READ_TAG,
    READ_VERSION,
    TABLE_VERSION,
    UPGRADED,
    of_type,
    split_version_id,
)
from lancepart.format.records import LeafRecord, Signature, Stats, VersionRecord
from lancepart.format.rows import now
from lancepart.layout import create
from lancepart.layout.draft import draft_leaves
from lancepart.layout.layouts import candidates, capabilities
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import (
    DRAFT,
    MANIFEST,
    STRONG,
    TableMetadata,
)
from lancepart.maintain.fingerprint import Fingerprint, fingerprint
from lancepart.maintain.local import LOCAL
from lancepart.model.aliases import JsonMapping, JsonObject
from lancepart.plan import planner
from lancepart.read import leaf as reading
from lancepart.read.engine import Executor
from lancepart.read.leaf import LeafTask
from lancepart.storage import leaf_handle
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import Change, RowUpdate
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import ConflictError

_TRIES = 20


def upgrade(manifest: Manifest, *, executor: Executor = LOCAL) -> None:
    """Number the leaves' versions, check that both definitions give the same rows, and then swap the definition.

    Until the swap the table is a draft that other clients read and write; the swap is one commit.
    """
    salt = secrets.token_hex(8)
    definition = create.load(manifest.snapshot())
    pointers = [READ_VERSION] if definition.transactions == STRONG else []
    manifest.add_columns([*pointers, *(each for spec in definition.specs for each in create.partition_fields(spec))])
    for _ in range(_TRIES):
        record_versions(manifest)
        snapshot = manifest.snapshot()
        before = create.load(snapshot)
        if capabilities(before).version_rows:
            return
        after = replace(before, layout=MANIFEST, salt=before.salt or salt, change=before.change + 1)
        _verify(manifest.root, snapshot, before, after, executor)
        try:
            manifest.swap_properties(snapshot, {**after.to_properties(), UPGRADED: DRAFT})
            return
        except ConflictError:
            continue
    raise ConcurrentModificationError("other writers kept changing the table; try again")


def settle(manifest: Manifest) -> None:
    """Number what a client of the draft committed while the definition was being swapped."""
    if UPGRADED in manifest.snapshot().properties:
        record_versions(manifest)
        manifest.set_properties({UPGRADED: None})


def record_versions(manifest: Manifest) -> None:
    """Give each leaf whose version no ``table_version`` row records one, with its statistics on the leaf's own row."""
    identifier, user = uuid.uuid4().hex, who()

    def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        metadata = create.load(snapshot)
        if metadata.transactions != STRONG:
            return Change(), None
        recorded = _recorded(snapshot)
        inserts, updates = [], []
        pinned = _pinned(snapshot, metadata)
        before = snapshot.rows(leaf.object_id for leaf in pinned)
        for leaf in pinned:
            number, version = recorded.get(leaf.object_id, (0, None))
            if number and version == leaf.read_version:
                continue
            stats = _stats(manifest.root, leaf)
            record = VersionRecord(
                leaf=leaf.object_id,
                number=number + 1,
                read_version=leaf.read_version,
                signature=Signature(transaction=identifier, operation="upgrade", by=user),
                added=0,
                deleted=0,
                change=metadata.change,
                stats=stats,
                created_at=now(),
            )
            inserts.append(record.to_row())
            others = LeafRecord.from_row(before[leaf.object_id]).others
            updates.append(RowUpdate(object_id=leaf.object_id, values=_pointer(leaf, number + 1, stats, others)))
        return Change(inserts=tuple(inserts), updates=tuple(updates)), None

    manifest.transact(plan)


def _recorded(snapshot: Snapshot) -> dict[str, tuple[int, int | None]]:
    """The highest number of each leaf's versions, and the version that it refers to."""
    found = snapshot.scan(of_type(TABLE_VERSION), columns=[OBJECT_ID, READ_VERSION.name])
    assert found is not None
    highest: dict[str, tuple[int, int | None]] = {}
    for item, version in zip(*(found.column(name).to_pylist() for name in found.column_names), strict=True):
        named = split_version_id(item)
        if named is not None and named[1] > highest.get(named[0], (0, None))[0]:
            highest[named[0]] = (named[1], version)
    return highest


def _pinned(snapshot: Snapshot, metadata: TableMetadata) -> tuple[Leaf, ...]:
    """The leaves at what their own rows say, even where a ``table_version`` row says something older."""
    return tuple(
        leaf
        for spec in metadata.specs
        for leaf in draft_leaves(snapshot, spec, candidates(snapshot, spec, None), metadata)
    )


def _stats(root: Root, leaf: Leaf) -> Stats:
    rows, size, fragments = leaf_handle.measure(leaf_handle.open_leaf(root, leaf.location, leaf.read_version))
    return Stats(rows=rows, bytes=size, fragments=fragments)


def _pointer(leaf: Leaf, number: int, stats: Stats, others: JsonMapping) -> JsonObject:
    """What a leaf's row says, so that clients of the draft read the same: a branch is a table of its own."""
    record = LeafRecord(
        object_id=leaf.object_id,
        location=leaf.location,
        read_version=leaf.read_version,
        number=number,
        stats=stats,
        others=others,
    )
    return {**record.to_values(), LOCATION: leaf.location, READ_BRANCH.name: None, READ_TAG.name: None}


def _verify(root: Root, snapshot: Snapshot, before: TableMetadata, after: TableMetadata, executor: Executor) -> None:
    """Read every partition by the old definition and by the new one."""
    old = {leaf.object_id: leaf for leaf in planner.plan(snapshot, before, None).leaves}
    new = {leaf.object_id: leaf for leaf in planner.plan(snapshot, after, None).leaves}
    if set(old) != set(new):
        raise InternalError(f"the upgrade would change the partitions {sorted(set(old) ^ set(new))}; nothing was done")
    readings = [(root, before, after, leaf, new[identifier]) for identifier, leaf in old.items()]
    for identifier, same in zip(old, executor.map(reads_alike, readings, "checking"), strict=True):
        if not same:
            raise InternalError(f"partition {identifier!r} would read differently after the upgrade; nothing was done")


def reads_alike(reading: tuple[Root, TableMetadata, TableMetadata, Leaf, Leaf]) -> bool:
    """Whether a leaf holds the same by both definitions."""
    root, before, after, old, new = reading
    return rows_of(root, before, old) == rows_of(root, after, new)


def rows_of(root: Root, metadata: TableMetadata, leaf: Leaf) -> Fingerprint:
    """What a leaf holds, as the table shows it."""
    columns = tuple(metadata.schema.names)
    return fingerprint(reading.read(LeafTask(root=root, metadata=metadata, leaf=leaf, columns=columns, predicate=None)))
