"""The rows of ``__manifest`` that a commit writes for its leaves."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lancepart.commit.work import Work
from lancepart.errors import TableVersionNotFoundError
from lancepart.layout.leaves import partition_column
from lancepart.layout.metadata import DRAFT, READ_BRANCH, READ_TAG, READ_VERSION, TableMetadata
from lancepart.model.spec import PartitionSpec
from lancepart.storage import history
from lancepart.storage.manifest import Manifest
from lancepart.storage.rows import NAMESPACE, TABLE, TABLE_VERSION, Change, Row, Update, dump_metadata, now
from lancepart.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from lancepart.commit.transaction import Transaction

FENCE = "lancepart.fence"
OLDEST = "lancepart.oldest"
LOCATION = "location"
_LOOKED_UP = 4


def of_works(transaction: Transaction, snapshot: Snapshot, works: Sequence[Work]) -> Change:
    """Everything that a commit writes, apart from its fence."""
    fresh = [work for work in works if work.is_new]
    inserts = missing_namespaces(snapshot, transaction.spec, fresh)
    numbers = last_numbers(snapshot, [work.object_id for work in fresh])
    updates = []
    for work in works:
        more, changed = _of_work(transaction, work, numbers)
        inserts += more
        updates += changed
    return Change(inserts=tuple(inserts), updates=tuple(updates))


def _of_work(transaction: Transaction, work: Work, numbers: Mapping[str, int]) -> tuple[list[Row], list[Update]]:
    """For one leaf: its row points at the new version, and a row of its own records that version and its place."""
    if transaction.metadata.layout == DRAFT:
        return _of_draft_work(transaction, work)
    number = (work.leaf.number if work.leaf is not None else numbers.get(work.object_id, 0)) + 1
    stats = {"rows": work.stats.rows, "bytes": work.stats.bytes, "fragments": work.stats.fragments}
    record = Row(
        object_id=f"{work.object_id}${number}",
        object_type=TABLE_VERSION,
        metadata={
            **transaction.signature,
            "added": work.added,
            "deleted": work.deleted,
            "change": transaction.metadata.change,
            LOCATION: work.location,
            **({"moved": work.moved} if work.moved else {}),
            **stats,
        },
        created_at=now(),
        columns={READ_VERSION.name: work.head},
    )
    details = {"n": number, **stats}
    if work.leaf is None:
        return [leaf_row(transaction.spec, work, details, work.head), record], []
    values = {READ_VERSION.name: work.head, "metadata": dump_metadata(details)}
    return [record], [Update(object_id=work.object_id, values=values)]


def _of_draft_work(transaction: Transaction, work: Work) -> tuple[list[Row], list[Update]]:
    """For one leaf of the draft: its row's read columns, and nothing else."""
    if work.leaf is None:
        return [leaf_row(transaction.spec, work, {}, work.head)], []
    pointer = {READ_VERSION.name: work.head, READ_BRANCH.name: work.leaf.branch, READ_TAG.name: None}
    return [], [Update(object_id=work.object_id, values=pointer)]


def last_numbers(snapshot: Snapshot, identifiers: Sequence[str]) -> dict[str, int]:
    """The highest number that leaves of some names ever had, if any: numbers never start again.

    Few names are looked up one by one, many by one look at all versions there are.
    """
    wanted = set(identifiers)
    parents = sorted(wanted) if len(wanted) <= _LOOKED_UP else [""]
    highest: dict[str, int] = {}
    for parent in parents:
        for item in snapshot.ids(parent, TABLE_VERSION):
            owner, _, tail = item.rpartition("$")
            if owner in wanted and tail.isdigit():
                highest[owner] = max(int(tail), highest.get(owner, 0))
    return highest


def of_weak_leaf(transaction: Transaction, snapshot: Snapshot, work: Work) -> Change:
    """What makes a new leaf known in weak mode."""
    missing = missing_namespaces(snapshot, transaction.spec, [work])
    return Change(inserts=(*missing, leaf_row(transaction.spec, work, {})))


def missing_namespaces(snapshot: Snapshot, spec: PartitionSpec, works: Sequence[Work]) -> list[Row]:
    """The namespaces above new leaves that do not exist yet, each with its own and its ancestors' values."""
    wanted: dict[str, Row] = {}
    for work in works:
        parts = work.object_id.split("$")[:-1]
        for depth in range(1, len(parts) + 1):
            identifier = "$".join(parts[:depth])
            columns = _columns(spec, work, depth - 1)
            row = Row(object_id=identifier, object_type=NAMESPACE, metadata={}, created_at=now(), columns=columns)
            wanted.setdefault(identifier, row)
    present = snapshot.rows(wanted)
    return [row for identifier, row in wanted.items() if identifier not in present]


def leaf_row(spec: PartitionSpec, work: Work, metadata: Mapping[str, Any], version: int | None = None) -> Row:
    """The row of a new leaf."""
    columns = _columns(spec, work, len(spec.fields))
    if version is not None:
        columns = {**columns, READ_VERSION.name: version}
    return Row(
        object_id=work.object_id,
        object_type=TABLE,
        location=work.location,
        metadata=metadata,
        created_at=now(),
        columns=columns,
    )


def _columns(spec: PartitionSpec, work: Work, depth: int) -> dict[str, Any]:
    fields = zip(spec.fields[:depth], work.values[:depth], strict=True)
    return {partition_column(field.field_id): value for field, value in fields}


def fence_id(metadata: TableMetadata) -> str:
    """The row that commits meet in which depend on what does not exist yet, or make it exist."""
    return f"v{metadata.specs[0].id}"


def fence_value(snapshot: Snapshot, metadata: TableMetadata) -> str | None:
    """Who wrote the fence last."""
    row = snapshot.row(fence_id(metadata))
    return None if row is None else (row.metadata or {}).get(FENCE)


def with_mark(change: Change, snapshot: Snapshot, metadata: TableMetadata, mark: Mapping[str, Any]) -> Change:
    """A change that also writes the fence's row, so that two such commits never both win unseen."""
    identifier = fence_id(metadata)
    row = snapshot.row(identifier)
    if row is not None:
        details = dump_metadata({**(row.metadata or {}), **mark})
        return change + Change(updates=(Update(object_id=identifier, values={"metadata": details}),))
    fresh = Row(object_id=identifier, object_type=NAMESPACE, metadata=mark, created_at=now())
    others = tuple(item for item in change.inserts if item.object_id != identifier)
    return replace(change, inserts=(fresh, *others))


def oldest(snapshot: Snapshot, metadata: TableMetadata) -> int:
    """The snapshot before which all may be gone that no tag names."""
    row = snapshot.row(fence_id(metadata))
    return 0 if row is None else int((row.metadata or {}).get(OLDEST, 0))


def refuse_expired(manifest: Manifest, snapshot: Snapshot, metadata: TableMetadata, version: int) -> None:
    """Refuse to depend on a snapshot whose files ``expire`` may be removing."""
    if version < oldest(snapshot, metadata) and version not in history.tags(manifest).values():
        raise TableVersionNotFoundError(f"snapshot {version} has expired")


def who() -> str:
    """The user to record in a commit."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
