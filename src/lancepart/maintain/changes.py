"""The rows that came and went between two snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError, TableVersionNotFoundError, UnsupportedOperationError
from lancepart.format.names import TABLE_VERSION, version_id
from lancepart.format.records import VersionRecord
from lancepart.format.rows import Row
from lancepart.layout import create
from lancepart.layout.columns import AS_BYTES, Matching, to_table_columns
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import STRONG, TableMetadata
from lancepart.plan import planner
from lancepart.storage import history, leafdata
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot

CHANGE = "_change"
INSERT, DELETE = "insert", "delete"
ONLY_MOVES = frozenset({"compact", "rewrite", "index"})
_LISTED = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one commit did to one leaf: it went from one version to another, in one move or several."""

    number: int
    operation: str
    added: int
    deleted: int
    moves: tuple[tuple[int | None, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafChanges:
    """What happened to one leaf: plain values, so that it can be read elsewhere."""

    root: Root
    object_id: str
    location: str
    steps: tuple[Step, ...]

    @property
    def rows(self) -> int:
        """How many rows came and went."""
        return sum(step.added + step.deleted for step in self.steps)

    def read(self, schema: Any, *, deletes: bool = True) -> Iterator[tuple[Step, str, Any]]:
        """The rows in the columns of a schema with field ids, each batch with its step and its kind."""
        for step in self.steps:
            for older, newer in step.moves:
                for kind, batch in _move(self.root, self.location, schema, older, newer, deletes):
                    yield step, kind, batch


def changes(manifest: Manifest, since: Any, until: Any = None) -> pa.Table:
    """Every row inserted or deleted after one snapshot up to another; an updated row was deleted and inserted.

    Upkeep that only moves rows is left out.
    """
    first = history.at(manifest, history.resolve(manifest, since) or 0)
    last = manifest.snapshot(history.resolve(manifest, until))
    metadata = create.load(manifest, last)
    schema = pa.schema([*metadata.plain_schema, pa.field(CHANGE, pa.string())])
    batches = [
        batch.append_column(CHANGE, pa.array([kind] * batch.num_rows, pa.string()))
        for leaf in between(manifest, first, last, metadata)
        for _, kind, batch in leaf.read(metadata.schema)
    ]
    return pa.Table.from_batches(batches, schema=schema)


def between(manifest: Manifest, first: Snapshot, last: Snapshot, metadata: TableMetadata) -> list[LeafChanges]:
    """What to read of each leaf that changed after one snapshot up to another; ``metadata`` is that of the last."""
    if first.version > last.version:
        raise InvalidInputError(f"since ({first.version}) is after until ({last.version})")
    if metadata.transactions != STRONG:
        raise UnsupportedOperationError("changes needs a table with transactions='strong'")
    before = {leaf.object_id: leaf for leaf in planner.plan(first, create.load(manifest, first), None).leaves}
    after = planner.plan(last, metadata, None).leaves
    _refuse_removed(before, after)
    numbers = {leaf.object_id: range(_number(before.get(leaf.object_id)) + 1, leaf.number + 1) for leaf in after}
    records = _records(last, [version_id(name, number) for name, found in numbers.items() for number in found])
    found = []
    for leaf in after:
        older = before.get(leaf.object_id)
        version = older.read_version if older is not None else None
        steps = tuple(_steps(leaf.object_id, numbers[leaf.object_id], records, version))
        if steps:
            found.append(LeafChanges(root=manifest.root, object_id=leaf.object_id, location=leaf.location, steps=steps))
    return found


def everything(manifest: Manifest, snapshot: Snapshot, metadata: TableMetadata) -> list[LeafChanges]:
    """All rows of a snapshot, as if one commit had inserted them."""
    if metadata.transactions != STRONG:
        raise UnsupportedOperationError("changes needs a table with transactions='strong'")
    found = []
    for leaf in planner.plan(snapshot, metadata, None).leaves:
        if leaf.read_version is None or (leaf.stats is not None and not leaf.stats.rows):
            continue
        rows = leaf.stats.rows if leaf.stats is not None else 0
        step = Step(number=leaf.number, operation="append", added=rows, deleted=0, moves=((None, leaf.read_version),))
        found.append(LeafChanges(root=manifest.root, object_id=leaf.object_id, location=leaf.location, steps=(step,)))
    return found


def _number(leaf: Leaf | None) -> int:
    return 0 if leaf is None else leaf.number


def _refuse_removed(before: dict[str, Leaf], after: Sequence[Leaf]) -> None:
    """A leaf is removed when it is empty and no kept snapshot has rows of it, so that nobody can tell what it lost."""
    kept = {leaf.object_id for leaf in after}
    for name, leaf in before.items():
        if name not in kept and (leaf.stats is None or leaf.stats.rows):
            raise TableVersionNotFoundError(f"the history of partition {name!r} has expired")


def _records(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, VersionRecord]:
    """The rows of some versions of leaves, by one look; of very many by reading all there are."""
    if len(ids) <= _LISTED:
        rows = list(snapshot.rows(ids).values())
    else:
        found = snapshot.scan(f"object_type = '{TABLE_VERSION}'")
        assert found is not None
        wanted = found.filter(pc.is_in(found.column("object_id"), pa.array(ids, pa.string())))
        rows = [Row.read(row) for row in wanted.to_pylist()]
    return {row.object_id: record for row in rows if (record := VersionRecord.from_row(row)) is not None}


def _steps(name: str, numbers: range, records: dict[str, VersionRecord], version: int | None) -> Iterator[Step]:
    for number in numbers:
        record = records.get(version_id(name, number))
        if record is None or record.read_version is None:
            raise TableVersionNotFoundError(f"version {number} of partition {name!r} has expired")
        newer = record.read_version
        if record.operation not in ONLY_MOVES:
            moves = []
            for end, start_again in [*record.moved, (newer, newer)]:
                moves.append((version, end))
                version = start_again
            yield Step(
                number=number,
                operation=str(record.operation),
                added=record.added or 0,
                deleted=record.deleted or 0,
                moves=tuple(moves),
            )
        version = newer


def _move(
    root: Root, location: str, schema: Any, older: int | None, newer: int, deletes: bool
) -> Iterator[tuple[str, Any]]:
    if older == newer:
        return
    after = leafdata.open_leaf(root, location, newer)
    if older is None:
        yield from _shown(after, after.to_batches(**AS_BYTES), schema, INSERT)
        return
    found = leafdata.difference(root, location, older, newer)
    if found.added:
        yield from _shown(after, leafdata.rows_of(after, found.added), schema, INSERT)
    if found.restored:
        yield from _shown(after, leafdata.rows_at(after, found.restored), schema, INSERT)
    if not deletes:
        return
    before = leafdata.open_leaf(root, location, older)
    gone = dict(found.deleted) | {number: leafdata.live_offsets(before, number) for number in found.removed}
    if gone:
        yield from _shown(before, leafdata.rows_at(before, gone), schema, DELETE)


def _shown(handle: Any, batches: Any, schema: Any, kind: str) -> Iterator[tuple[str, Any]]:
    shape = leafdata.shape_of(handle)
    matching = Matching.of(shape.schema, shape.native_ids)
    for batch in batches:
        yield kind, to_table_columns(batch, schema, matching)
