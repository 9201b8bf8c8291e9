"""The rows of ``__manifest`` that a commit writes for its leaves."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lancepart.commit.floors import Floor, carried
from lancepart.commit.leaf_changes import LeafChanges
from lancepart.commit.numbering import Numbering
from lancepart.format import names
from lancepart.format.names import (
    FENCE,
    LOCATION,
    READ_BRANCH,
    READ_TAG,
    READ_VERSION,
    TABLE_VERSION,
    partition_column,
    split_version_id,
)
from lancepart.format.records import LeafRecord, VersionRecord
from lancepart.format.rows import Row, namespace_row, now
from lancepart.layout.layouts import capabilities
from lancepart.layout.metadata import TableMetadata
from lancepart.model.aliases import JsonMapping, JsonObject
from lancepart.model.spec import PartitionSpec
from lancepart.storage import leaf_record
from lancepart.storage.manifest_rows import Change, RowUpdate, metadata_update
from lancepart.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from lancepart.commit.transaction import Transaction

_LOOKED_UP = 4


def of_works(transaction: Transaction, snapshot: Snapshot, works: Sequence[LeafChanges], numbers: Numbering) -> Change:
    """Everything that a commit writes, apart from its fence."""
    fresh = [work for work in works if work.is_new]
    known = snapshot.rows([*(work.object_id for work in works), fence_id(transaction.metadata)])
    inserts = missing_namespaces(snapshot, transaction.spec, fresh)
    last = last_numbers(snapshot, [work.object_id for work in fresh])
    updates = []
    for work in works:
        more, changed = _of_work(transaction, known, work, last, numbers)
        inserts += more
        updates += changed
    return Change(inserts=tuple(inserts), updates=tuple(updates))


def _of_work(
    transaction: Transaction,
    known: Mapping[str, Row],
    work: LeafChanges,
    last: Mapping[str, int],
    numbers: Numbering,
) -> tuple[list[Row], list[RowUpdate]]:
    """For one leaf: its row points at the new version, and a row of its own records that version and its place."""
    if not capabilities(transaction.metadata).version_rows:
        return _of_unrecorded(transaction, known, work)
    number = (work.leaf.number if work.leaf is not None else last.get(work.object_id, 0)) + 1
    version = _version_row(transaction, work, number)
    if work.leaf is None:
        floor = carried(known.get(fence_id(transaction.metadata)))
        record = replace(new_leaf(transaction.spec, work), read_version=work.head, number=number, stats=work.stats)
        return [replace(record, others=floor, numbers=numbers.of(work)).to_row(), version], []
    before = known.get(work.object_id)
    kept = {} if before is None else LeafRecord.from_row(before).others
    leaf = LeafRecord(
        object_id=work.object_id,
        location=work.location,
        read_version=work.head,
        number=number,
        stats=work.stats,
        numbers=numbers.of(work),
        others=kept,
    )
    return [version], [RowUpdate(object_id=work.object_id, values={**leaf.to_values(), **_place(work)})]


def _version_row(transaction: Transaction, work: LeafChanges, number: int) -> Row:
    """The row that records a leaf's new version under a number."""
    return VersionRecord(
        leaf=work.object_id,
        number=number,
        read_version=work.head,
        location=work.location,
        signature=transaction.signature,
        added=work.added,
        deleted=work.deleted,
        change=transaction.metadata.change,
        moved=work.moved,
        stats=work.stats,
        files=leaf_record.noted(work.root, work.location, work.head)[1],
        created_at=now(),
    ).to_row()


def _place(work: LeafChanges) -> JsonObject:
    """Where a leaf is from now on, if that is another place than before."""
    return {LOCATION: work.location} if work.is_relocated else {}


def _of_unrecorded(
    transaction: Transaction, known: Mapping[str, Row], work: LeafChanges
) -> tuple[list[Row], list[RowUpdate]]:
    """For one leaf of a layout without version rows: its row's read columns, and nothing else."""
    if work.leaf is None:
        floor = carried(known.get(fence_id(transaction.metadata)))
        return [replace(new_leaf(transaction.spec, work), read_version=work.head, others=floor).to_row()], []
    branch = None if work.is_relocated else work.leaf.branch
    pointer = {READ_VERSION.name: work.head, READ_BRANCH.name: branch, READ_TAG.name: None, **_place(work)}
    return [], [RowUpdate(object_id=work.object_id, values=pointer)]


def last_numbers(snapshot: Snapshot, identifiers: Sequence[str]) -> dict[str, int]:
    """The highest number that leaves of some names ever had, if any: numbers never start again.

    Few names are looked up one by one, many by one look at all versions there are.
    """
    wanted = set(identifiers)
    parents = sorted(wanted) if len(wanted) <= _LOOKED_UP else [""]
    highest: dict[str, int] = {}
    for parent in parents:
        for item in snapshot.ids(parent, TABLE_VERSION):
            named = split_version_id(item)
            if named is not None and named[0] in wanted:
                highest[named[0]] = max(named[1], highest.get(named[0], 0))
    return highest


def of_weak_leaf(transaction: Transaction, snapshot: Snapshot, work: LeafChanges) -> Change:
    """What makes a new leaf known in weak mode."""
    missing = missing_namespaces(snapshot, transaction.spec, [work])
    return Change(inserts=(*missing, new_leaf(transaction.spec, work).to_row()))


def missing_namespaces(snapshot: Snapshot, spec: PartitionSpec, works: Sequence[LeafChanges]) -> list[Row]:
    """The namespaces above new leaves that do not exist yet, each with its own and its ancestors' values."""
    wanted: dict[str, Row] = {}
    for work in works:
        parts = work.object_id.split("$")[:-1]
        for depth in range(1, len(parts) + 1):
            identifier = "$".join(parts[:depth])
            columns = _columns(spec, work, depth - 1)
            row = namespace_row(identifier, metadata={}, columns=columns)
            wanted.setdefault(identifier, row)
    present = snapshot.rows(wanted)
    return [row for identifier, row in wanted.items() if identifier not in present]


def new_leaf(spec: PartitionSpec, work: LeafChanges) -> LeafRecord:
    """The record of a new leaf, of which no version is published yet."""
    return LeafRecord(
        object_id=work.object_id,
        location=work.location,
        values=_columns(spec, work, len(spec.fields)),
        created_at=now(),
    )


def _columns(spec: PartitionSpec, work: LeafChanges, depth: int) -> dict[str, pa.Scalar]:
    fields = zip(spec.fields[:depth], work.values[:depth], strict=True)
    return {partition_column(field.field_id): value for field, value in fields}


def fence_id(metadata: TableMetadata) -> str:
    """The row that commits meet in which depend on what does not exist yet, or make it exist."""
    return names.fence_id(metadata.specs[0].id)


def fence_value(snapshot: Snapshot, metadata: TableMetadata) -> str | None:
    """Who wrote the fence last."""
    row = snapshot.row(fence_id(metadata))
    return None if row is None else (row.metadata or {}).get(FENCE)


def with_mark(change: Change, snapshot: Snapshot, metadata: TableMetadata, mark: JsonMapping) -> Change:
    """A change that also writes the fence's row, so that two such commits never both win unseen."""
    identifier = fence_id(metadata)
    row = snapshot.row(identifier)
    if row is not None:
        return change + Change(updates=(metadata_update(identifier, {**(row.metadata or {}), **mark}),))
    fresh = namespace_row(identifier, metadata=mark)
    others = tuple(item for item in change.inserts if item.object_id != identifier)
    return replace(change, inserts=(fresh, *others))


def fence_floor(snapshot: Snapshot, metadata: TableMetadata) -> Floor | None:
    """The floor of directories that no row names."""
    row = snapshot.row(fence_id(metadata))
    return None if row is None else Floor.of(row.metadata)


def who() -> str:
    """The user to record in a commit."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
