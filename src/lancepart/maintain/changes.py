"""The rows inserted and deleted between two snapshots."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.commit.manifest_changes import last_numbers
from lancepart.errors import InvalidInputError, TableVersionNotFoundError, UnsupportedOperationError
from lancepart.format.names import OBJECT_ID, TABLE_VERSION, of_type, version_id
from lancepart.format.records import VersionRecord
from lancepart.format.rows import read_rows
from lancepart.layout import create
from lancepart.layout.columns import AS_BYTES, to_table_columns
from lancepart.layout.leaves import Leaf
from lancepart.layout.matching import Matching
from lancepart.layout.metadata import STRONG, TableMetadata
from lancepart.layout.versions import existing_numbers
from lancepart.model.public import public
from lancepart.plan import planner
from lancepart.read.result import Result
from lancepart.storage import history, leaf_data, leaf_handle
from lancepart.storage.leaf_handle import LeafHandle
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot

CHANGE = "_change"
INSERT, DELETE = "insert", "delete"
ONLY_MOVES = frozenset({"compact", "rewrite", "index"})
_LISTED = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one commit did to one leaf: it went from one version to another, in one move or several.

    A move from no version is that of a new leaf, a move to none that of one that was given up.
    """

    number: int
    operation: str
    added: int
    deleted: int
    moves: tuple[tuple[int | None, int | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafDelta:
    """What happened to one leaf: plain values, so that it can be read elsewhere."""

    root: Root
    metadata: TableMetadata
    object_id: str
    location: str
    steps: tuple[Step, ...]

    @property
    def rows(self) -> int:
        """How many rows were inserted and deleted."""
        return sum(step.added + step.deleted for step in self.steps)

    def read(self, schema: pa.Schema, *, deletes: bool = True) -> Iterator[tuple[Step, str, pa.RecordBatch]]:
        """The rows in the columns of a schema with field ids, each batch with its step and its kind."""
        for step in self.steps:
            for older, newer in step.moves:
                for kind, batch in _move(self, schema, older, newer, deletes):
                    yield step, kind, batch


@public()
@dataclass(frozen=True, kw_only=True)
class Changes(Result):
    """Every row inserted or deleted after one snapshot up to another; an updated row was deleted and inserted.

    Upkeep that only moves rows is left out. It has what ``pyarrow.Table`` has too, which reads all rows into memory.
    """

    leaves: tuple[LeafDelta, ...]
    metadata: TableMetadata

    @property
    def schema(self) -> pa.Schema:
        """The table's columns, and one that says what happened to the row."""
        return pa.schema([*self.metadata.plain_schema, pa.field(CHANGE, pa.string())])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, leaf after leaf."""
        for leaf in self.leaves:
            for _, kind, batch in leaf.read(self.metadata.schema):
                yield batch.append_column(CHANGE, pa.array([kind] * batch.num_rows, pa.string()))

    @cached_property
    def _table(self) -> pa.Table:
        return self.to_arrow()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._table, name)

    def __getitem__(self, key: int | str | slice) -> Any:
        return self._table[key]

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def _repr_html_(self) -> str:
        return f"<code>{html.escape(repr(self))}</code>"

    def __repr__(self) -> str:
        return f"Changes({len(self.leaves)} partitions, {sum(leaf.rows for leaf in self.leaves)} rows)"


def changes(manifest: Manifest, since: int | str | datetime, until: int | str | datetime | None = None) -> Changes:
    """The rows inserted and deleted after one snapshot up to another, read lazily."""
    first = history.required(manifest, since)
    last = manifest.snapshot(history.resolve(manifest, until))
    metadata = create.load(last)
    return Changes(leaves=tuple(between(manifest, first, last, metadata)), metadata=metadata)


def between(manifest: Manifest, first: Snapshot, last: Snapshot, metadata: TableMetadata) -> list[LeafDelta]:
    """What to read of each leaf that changed after one snapshot up to another; ``metadata`` is that of the last."""
    if first.version > last.version:
        raise InvalidInputError(f"since ({first.version}) is after until ({last.version})")
    if metadata.transactions != STRONG:
        raise UnsupportedOperationError("changes needs a table with transactions='strong'")
    before = {leaf.object_id: leaf for leaf in planner.plan(first, create.load(first), None).leaves}
    after = {leaf.object_id: leaf for leaf in planner.plan(last, metadata, None).leaves}
    numbers = _numbers(first, last, before, after)
    records = _records(last, [version_id(name, number) for name, found in numbers.items() for number in found])
    return [
        LeafDelta(
            root=manifest.root,
            metadata=metadata,
            object_id=name,
            location=location,
            steps=tuple(step for _, step in group),
        )
        for name in numbers
        for location, group in groupby(
            _steps(manifest.root, name, numbers[name], records, before.get(name), after.get(name)), key=itemgetter(0)
        )
    ]


def _numbers(
    first: Snapshot, last: Snapshot, before: Mapping[str, Leaf], after: Mapping[str, Leaf]
) -> dict[str, Sequence[int]]:
    """The numbers of the versions that each leaf got in between; a leaf that was recreated continues its numbering.

    Other clients may leave numbers out. Expired versions are always the lowest numbers.
    """
    known = last_numbers(first, [name for name in after if name not in before])
    gone = last_numbers(last, [name for name in before if name not in after])
    low = {name: before[name].number if name in before else known.get(name, 0) for name in after}
    several = [name for name, leaf in after.items() if leaf.number > low[name] + 1]
    found: dict[str, Sequence[int]] = {name: range(low[name] + 1, leaf.number + 1) for name, leaf in after.items()}
    for name, numbers in existing_numbers(last, several).items():
        kept = [number for number in numbers if low[name] < number <= after[name].number]
        whole = low[name] in numbers or low[name] + 1 in kept
        found[name] = kept if whole else [low[name] + 1, *kept]
    return found | {name: [number] for name, number in gone.items()}


def everything(manifest: Manifest, snapshot: Snapshot, metadata: TableMetadata) -> list[LeafDelta]:
    """All rows of a snapshot, as if one commit had inserted them."""
    if metadata.transactions != STRONG:
        raise UnsupportedOperationError("changes needs a table with transactions='strong'")
    found = []
    for leaf in planner.plan(snapshot, metadata, None).leaves:
        if leaf.read_version is None or (leaf.stats is not None and not leaf.stats.rows):
            continue
        rows = leaf.stats.rows if leaf.stats is not None else 0
        step = Step(number=leaf.number, operation="append", added=rows, deleted=0, moves=((None, leaf.read_version),))
        found.append(
            LeafDelta(
                root=manifest.root,
                metadata=metadata,
                object_id=leaf.object_id,
                location=leaf.location,
                steps=(step,),
            )
        )
    return found


def _records(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, VersionRecord]:
    """The rows of some versions of leaves, by one look; of very many by reading all there are."""
    if len(ids) <= _LISTED:
        rows = list(snapshot.rows(ids).values())
    else:
        found = snapshot.scan(of_type(TABLE_VERSION))
        assert found is not None
        wanted = found.filter(pc.is_in(found.column(OBJECT_ID), pa.array(ids, pa.string())))
        rows = read_rows(wanted)
    return {row.object_id: record for row in rows if (record := VersionRecord.from_row(row)) is not None}


@dataclass(frozen=True, slots=True)
class _Here:
    """The state of a leaf while its versions are followed: directory, version, and row count if known."""

    location: str | None = None
    version: int | None = None
    rows: int | None = 0


def _steps(
    root: Root,
    name: str,
    numbers: Sequence[int],
    records: Mapping[str, VersionRecord],
    before: Leaf | None,
    after: Leaf | None,
) -> Iterator[tuple[str, Step]]:
    """What each commit did to a leaf, and in which of its directories.

    A leaf is removed only when it has no rows; one that is recreated in another directory loses those that it had.
    """
    here = _Here()
    if before is not None:
        here = _Here(before.location, before.read_version, None if before.stats is None else before.stats.rows)
    if after is None:
        yield from _ended(here, numbers[-1], DELETE)
        return
    lost: int | None = None
    for number in numbers:
        record = records.get(version_id(name, number))
        if record is None or record.read_version is None:
            lost = lost or number
            continue
        location = record.location or here.location or after.location
        if here.location not in (None, location):
            yield from _ended(here, number, str(record.operation) if record.deleted else DELETE)
            here, record = _Here(), replace(record, deleted=0)
        elif lost is not None:
            break
        lost = None
        if record.operation not in ONLY_MOVES:
            yield location, _counted(root, location, _step(record, here.version), record)
        here = _Here(location, record.read_version, None if record.stats is None else record.stats.rows)
    if lost is not None:
        raise TableVersionNotFoundError(f"version {lost} of partition {name!r} has expired")
    if here.location == after.location and here.version != after.read_version:
        moved = VersionRecord(leaf=name, number=after.number, read_version=after.read_version)
        yield after.location, _counted(root, after.location, _step(moved, here.version), moved)


def _counted(root: Root, location: str, step: Step, record: VersionRecord) -> Step:
    """A step of another client with its counts, which its row does not record."""
    if record.added is not None and record.deleted is not None:
        return step
    added = deleted = 0
    for older, newer in step.moves:
        if newer is None:
            continue
        if older is None:
            added += leaf_handle.measure(leaf_handle.open_leaf(root, location, newer))[0]
            continue
        found = leaf_data.difference(root, location, older, newer)
        added += sum(int(item.num_rows) for item in found.added) + sum(map(len, found.restored.values()))
        before = leaf_handle.open_leaf(root, location, older)
        deleted += sum(len(leaf_handle.live_offsets(before, number)) for number in found.removed)
        deleted += sum(map(len, found.deleted.values()))
    return replace(step, added=added, deleted=deleted)


def _step(record: VersionRecord, older: int | None) -> Step:
    """What a commit did, from the version that it found; one that leaves no rows need not be looked at."""
    newer = None if record.stats is not None and not record.stats.rows else record.read_version
    moves: list[tuple[int | None, int | None]] = []
    for end, start_again in record.moved:
        moves.append((older, end))
        older = start_again
    return Step(
        number=record.number,
        operation=str(record.operation),
        added=record.added or 0,
        deleted=record.deleted or 0,
        moves=(*moves, (older, newer)),
    )


def _ended(here: _Here, number: int, operation: str) -> Iterator[tuple[str, Step]]:
    """All rows of a directory go, if there are any."""
    if here.location is not None and here.version is not None and here.rows != 0:
        gone = 1 if here.rows is None else here.rows
        yield (
            here.location,
            Step(number=number, operation=operation, added=0, deleted=gone, moves=((here.version, None),)),
        )


def _move(
    leaf: LeafDelta, schema: pa.Schema, older: int | None, newer: int | None, deletes: bool
) -> Iterator[tuple[str, pa.RecordBatch]]:
    root, location = leaf.root, leaf.location
    if older == newer:
        return
    if newer is None:
        if deletes:
            last = leaf_handle.open_leaf(root, location, older)
            yield from _shown(leaf, last, last.scanner(**AS_BYTES).to_batches(), schema, DELETE)
        return
    after = leaf_handle.open_leaf(root, location, newer)
    if older is None:
        yield from _shown(leaf, after, after.scanner(**AS_BYTES).to_batches(), schema, INSERT)
        return
    found = leaf_data.difference(root, location, older, newer)
    if found.added:
        yield from _shown(leaf, after, leaf_handle.rows_of(after, found.added), schema, INSERT)
    if found.restored:
        yield from _shown(leaf, after, leaf_handle.rows_at(after, found.restored), schema, INSERT)
    if not deletes:
        return
    before = leaf_handle.open_leaf(root, location, older)
    gone = dict(found.deleted) | {number: leaf_handle.live_offsets(before, number) for number in found.removed}
    if gone:
        yield from _shown(leaf, before, leaf_handle.rows_at(before, gone), schema, DELETE)


def _shown(
    leaf: LeafDelta, handle: LeafHandle, batches: Iterable[pa.RecordBatch], schema: pa.Schema, kind: str
) -> Iterator[tuple[str, pa.RecordBatch]]:
    matching = Matching.of(leaf_handle.shape_of(handle), leaf.metadata, leaf.object_id)
    for batch in batches:
        yield kind, to_table_columns(batch, schema, matching)
