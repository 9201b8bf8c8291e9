"""The rows that came and went between two snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lancepart.errors import InvalidInputError, TableVersionNotFoundError, UnsupportedOperationError
from lancepart.layout import create
from lancepart.layout.columns import AS_BYTES, Matching, to_table_columns
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import READ_VERSION, STRONG, TableMetadata
from lancepart.plan import planner
from lancepart.storage import history, leafdata
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.storage.rows import TABLE_VERSION
from lancepart.storage.snapshot import Snapshot

CHANGE = "_change"
_ONLY_MOVES = frozenset({"compact", "rewrite", "index"})


def changes(manifest: Manifest, since: Any, until: Any = None) -> pa.Table:
    """Every row inserted or deleted after one snapshot up to another; an updated row was deleted and inserted.

    Upkeep that only moves rows is left out.
    """
    first = history.at(manifest, history.resolve(manifest, since) or 0)
    last = manifest.snapshot(history.resolve(manifest, until))
    if first.version > last.version:
        raise InvalidInputError(f"since ({first.version}) is after until ({last.version})")
    metadata = create.load(manifest, last)
    if metadata.transactions != STRONG:
        raise UnsupportedOperationError("changes needs a table with transactions='strong'")
    schema = pa.schema([*metadata.plain_schema, pa.field(CHANGE, pa.string())])
    before = {leaf.object_id: leaf for leaf in planner.plan(first, create.load(manifest, first), None).leaves}
    batches = []
    for leaf in planner.plan(last, metadata, None).leaves:
        batches += list(_of_leaf(manifest, last, metadata, before.get(leaf.object_id), leaf))
    return pa.Table.from_batches(batches, schema=schema)


def _of_leaf(
    manifest: Manifest, snapshot: Snapshot, metadata: TableMetadata, before: Leaf | None, leaf: Leaf
) -> Iterator[Any]:
    start = before.number if before is not None else 0
    if start == leaf.number:
        return
    rows = {int(row.object_id.rsplit("$", 1)[-1]): row for row in snapshot.below(leaf.object_id, TABLE_VERSION)}
    version = before.read_version if before is not None else None
    for number in range(start + 1, leaf.number + 1):
        row = rows.get(number)
        if row is None:
            raise TableVersionNotFoundError(f"version {number} of partition {leaf.object_id!r} has expired")
        newer = int(row.columns[READ_VERSION.name])
        told = row.metadata or {}
        if told.get("operation") not in _ONLY_MOVES:
            for end, start_again in [*told.get("moved", ()), (newer, newer)]:
                yield from _step(manifest.root, metadata, leaf, version, end)
                version = start_again
        version = newer


def _step(root: Root, metadata: TableMetadata, leaf: Leaf, older: int | None, newer: int) -> Iterator[Any]:
    if older == newer:
        return
    after = leafdata.open_leaf(root, leaf.location, newer)
    if older is None:
        yield from _shown(after, after.to_batches(**AS_BYTES), metadata, "insert")
        return
    found = leafdata.difference(root, leaf.location, older, newer)
    before = leafdata.open_leaf(root, leaf.location, older)
    if found.added:
        yield from _shown(after, leafdata.rows_of(after, found.added), metadata, "insert")
    if found.restored:
        yield from _shown(after, leafdata.rows_at(after, found.restored), metadata, "insert")
    gone = dict(found.deleted) | {number: leafdata.live_offsets(before, number) for number in found.removed}
    if gone:
        yield from _shown(before, leafdata.rows_at(before, gone), metadata, "delete")


def _shown(handle: Any, batches: Any, metadata: TableMetadata, kind: str) -> Iterator[Any]:
    shape = leafdata.shape_of(handle)
    matching = Matching.of(shape.schema, shape.native_ids)
    for batch in batches:
        shown = to_table_columns(batch, metadata.schema, matching)
        yield shown.append_column(CHANGE, pa.array([kind] * shown.num_rows, pa.string()))
