"""Maintenance of leaves, safe beside writers: each step is a transaction that gives way to conflicting ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lancepart.commit import distributed_write, lookup, verbs
from lancepart.commit.leaf_changes import LeafChanges
from lancepart.commit.transaction import Transaction
from lancepart.errors import (
    CommitConflictError,
    InvalidTableStateError,
    UnsupportedOperationError,
)
from lancepart.layout import create
from lancepart.layout.declared_indices import declared
from lancepart.layout.leaves import Leaf
from lancepart.maintain import leaf_tasks
from lancepart.maintain.leaf_tasks import Compacting, Place, Rewriting
from lancepart.maintain.local import LOCAL
from lancepart.maintain.progress import track
from lancepart.plan import planner
from lancepart.read import leaf as reading
from lancepart.read.engine import Executor
from lancepart.storage import history, leaf_data
from lancepart.storage.manifest import Manifest
from lancepart.storage.translate import UnreadableError

TARGET_ROWS = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceResult:
    """What an upkeep call did; ``locations`` are the whole directories that went, or would have.

    ``kept`` tells what a collector left alone because it could not tell whether it is needed: leaves that can't be
    read, and files of a kind that it does not know.
    """

    action: str
    changed: int = 0
    skipped: tuple[str, ...] = ()
    freed_bytes: int = 0
    removed_files: int = 0
    version: int | None = None
    locations: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def compact(
    manifest: Manifest, *, target_rows: int = TARGET_ROWS, executor: Executor = LOCAL, progress: bool = True
) -> MaintenanceResult:
    """Put small fragments together and drop deleted rows; a leaf that others change meanwhile waits.

    Indices do not follow rows that move, so those of a leaf that is compacted are built anew in the same commit.
    """
    opening = strong(manifest, "compact")
    wanted = tuple(each for each in declared(opening.snapshot) if each.in_leaves)

    def task(place: Place) -> Compacting:
        return Compacting(place=place, target_rows=target_rows, indices=wanted)

    return new_versions(
        opening, opening.plan(None).leaves, leaf_tasks.compact, task, executor=executor, progress=progress
    )


def rewrite(
    manifest: Manifest, where: str | None = None, *, executor: Executor = LOCAL, progress: bool = True
) -> MaintenanceResult:
    """Move rows that older specs placed into the partitions of the newest: one leaf a commit, or all on Spark."""
    opening = strong(manifest, "rewrite")
    predicate = verbs.filter_of(opening, where)
    old = [
        item
        for item in opening.plan(predicate).leaves
        if item.spec_id != opening.spec.id and (item.stats is None or item.stats.rows)
    ]

    def step(transaction: Transaction, leaves: Sequence[Leaf]) -> tuple[list[str], list[str]]:
        job = distributed_write.job_of(transaction)
        works = [Rewriting(place=_place(transaction, leaf), predicate=predicate, job=job) for leaf in leaves]
        try:
            found = executor.map(leaf_tasks.rewrite, works, "rewriting", progress=progress and executor.is_distributed)
        except UnreadableError:
            return [], [leaf.object_id for leaf in leaves]
        moved = [(leaf, each) for leaf, each in zip(leaves, found, strict=True) if each is not None]
        for leaf, (addresses, _) in moved:
            transaction.work_on(leaf).delete(addresses)
        distributed_write.adopt(transaction, job, [report for _, (_, report) in moved])
        return [leaf.object_id for leaf, _ in moved], []

    return _in_commits(opening, old, step, "rewriting", together=executor.is_distributed, progress=progress)


def new_versions(
    opening: Transaction,
    leaves: Sequence[Leaf],
    action: Callable[[Any], int | None],
    task: Callable[[Place], Any],
    *,
    executor: Executor,
    progress: bool,
    together: bool = False,
) -> MaintenanceResult:
    """Let an action make new versions of leaves that hold the same rows, and publish them, maybe in one commit."""
    whole = together or executor.is_distributed

    def step(transaction: Transaction, found: Sequence[Leaf]) -> tuple[list[str], list[str]]:
        there = [leaf for leaf in found if leaf.read_version is not None]
        tasks = [task(_place(transaction, leaf)) for leaf in there]
        what = f"{opening.operation} on Spark"
        versions = executor.map(action, tasks, what, progress=progress and whole)
        made = [(leaf, version) for leaf, version in zip(there, versions, strict=True) if version is not None]
        broken = [leaf.object_id for leaf, version in made if version == leaf_tasks.UNREADABLE]
        made = [(leaf, version) for leaf, version in made if version != leaf_tasks.UNREADABLE]
        for leaf, version in made:
            transaction.work_on(leaf).take_version(version)
        return [leaf.object_id for leaf, _ in made], broken

    return _in_commits(opening, leaves, step, opening.operation, together=whole, progress=progress)


def _place(transaction: Transaction, leaf: Leaf) -> Place:
    return Place(root=transaction.manifest.root, metadata=transaction.metadata, leaf=leaf)


def _in_commits(
    opening: Transaction,
    leaves: Sequence[Leaf],
    step: Callable[[Transaction, Sequence[Leaf]], tuple[list[str], list[str]]],
    what: str,
    *,
    together: bool,
    progress: bool,
) -> MaintenanceResult:
    """Do something to leaves, each in a commit of its own or all in one, that yields to others.

    A commit of all leaves out what others changed meanwhile, and is tried again with the rest. A step tells which
    leaves it changed, and which of them can't be read.
    """
    groups: list[list[Leaf]] = [list(leaves)] if together and leaves else [[leaf] for leaf in leaves]
    done, skipped, version = 0, [], None
    for group in track(groups, what, show=progress):
        left = group
        while left:
            transaction = strong(opening.manifest, opening.operation)
            current = [found for leaf in left if (found := _find(transaction, leaf)) is not None]
            changed, broken = step(transaction, current)
            skipped += [each for each in broken if each not in skipped]
            if not changed:
                break
            try:
                version = transaction.commit()
                done += len(changed)
                break
            except CommitConflictError as error:
                lost = set(error.partitions) & {leaf.object_id for leaf in left} or {leaf.object_id for leaf in left}
                skipped += sorted(lost)
                left = [leaf for leaf in left if leaf.object_id not in lost]
    return MaintenanceResult(action=opening.operation, changed=done, skipped=tuple(skipped), version=version)


def rollback(manifest: Manifest, version: Any) -> int | None:
    """Bring back exactly the rows of an older snapshot, as a new commit; what others commit meanwhile is a conflict.

    A leaf that is still where it was goes back to its version of then. One that was removed since, or was made again in
    another place, gets a copy of its rows under the table's partitioning of now.
    """
    transaction = strong(manifest, "rollback")
    target = history.required(manifest, version)
    transaction.needs = target.version
    then = {item.object_id: item for item in _leaves_at(transaction, target)}
    still: list[tuple[LeafChanges, Leaf, Leaf]] = []
    for item in transaction.plan(None).leaves:
        past = then.get(item.object_id)
        if past is None or past.location != item.location:
            if item.stats is None or item.stats.rows:
                transaction.work_on(item).replace()
            continue
        del then[item.object_id]
        if past.read_version != item.read_version and past.read_version is not None:
            still.append((transaction.work_on(item), item, past))
    transaction.over(still, lambda found: _go_back(*found))
    for past in then.values():
        if past.stats is None or past.stats.rows:
            _copy(transaction, past)
    return transaction.commit()


def _go_back(work: LeafChanges, item: Leaf, past: Leaf) -> None:
    """Let an older version of a leaf be its newest, if all of it is still there."""
    assert past.read_version is not None
    handle = leaf_data.open_leaf(work.root, work.location, past.read_version)
    if gone := leaf_data.missing_files(work.root, work.location, handle):
        raise InvalidTableStateError(
            f"the rows of leaf {item.object_id!r} at that snapshot can't be brought back: {gone[0]!r} is gone"
        )
    work.take_version(past.read_version)
    try:
        _count(work, item.read_version)
    except UnreadableError:
        work.record_counts(added=work.stats.rows, deleted=item.stats.rows if item.stats is not None else 0)


def _copy(transaction: Transaction, past: Leaf) -> None:
    """Add the rows that a leaf had."""
    schema = transaction.metadata.plain_schema
    task = transaction.task(past, None, schema.names)
    verbs.append(transaction, pa.RecordBatchReader.from_batches(schema, reading.read(task)))


def _count(work: LeafChanges, before: int | None) -> None:
    """Tell how many rows come and go between the version that is read now and the transaction's own."""
    assert before is not None
    assert work.head is not None
    found = leaf_data.difference(work.root, work.location, before, work.head)
    old = leaf_data.open_leaf(work.root, work.location, before)
    whole = sum(len(leaf_data.live_offsets(old, number)) for number in found.removed)
    work.record_counts(
        added=sum(map(len, found.restored.values())) + sum(int(item.num_rows) for item in found.added),
        deleted=sum(map(len, found.deleted.values())) + whole,
    )


def _leaves_at(transaction: Transaction, snapshot: Any) -> tuple[Leaf, ...]:
    return planner.plan(snapshot, create.load(transaction.manifest, snapshot), None).leaves


def strong(manifest: Manifest, operation: str) -> Transaction:
    """A transaction for upkeep, which needs strong ones."""
    transaction = Transaction(manifest=manifest, operation=operation)
    if transaction.weak:
        raise UnsupportedOperationError(f"{operation} needs a table with transactions='strong'")
    return transaction


def _find(transaction: Transaction, item: Leaf) -> Leaf | None:
    row = transaction.snapshot.row(item.object_id)
    if row is None:
        return None
    spec = transaction.metadata.spec_of(item.spec_id)
    assert spec is not None
    return lookup.named(transaction.snapshot, transaction.metadata, spec, item.object_id)
