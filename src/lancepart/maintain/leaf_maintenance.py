"""Maintenance of leaves, safe beside writers: each step is a transaction that gives way to conflicting ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from lancepart.commit import distributed_write, lookup, verbs
from lancepart.commit.leaf_changes import LeafChanges
from lancepart.commit.transaction import Transaction
from lancepart.errors import (
    CommitConflictError,
    InvalidInputError,
    InvalidTableStateError,
    UnsupportedOperationError,
)
from lancepart.format.fragments import LeafFiles
from lancepart.layout import create
from lancepart.layout.leaves import Leaf
from lancepart.layout.recorded_files import recorded_files
from lancepart.maintain import leaf_tasks
from lancepart.maintain.index_places import leaves_of, living
from lancepart.maintain.indices import Declaring
from lancepart.maintain.leaf_tasks import Compacting, GoingBack, LeafPlace, Rewriting, WayBack
from lancepart.maintain.local import LOCAL
from lancepart.maintain.progress import track
from lancepart.model.html_text import html_record
from lancepart.plan import planner
from lancepart.read import leaf as reading
from lancepart.read.engine import Executor
from lancepart.storage import history, leaf_record
from lancepart.storage.manifest import Manifest
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import UnreadableError

TARGET_ROWS = 1024 * 1024
_TOGETHER, _TOGETHER_BYTES = 512, 64 << 20
"""How many leaves one commit of upkeep changes at most, and of how many bytes unless it is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceResult:
    """The result of a maintenance call; ``locations`` are the directories that were removed, or would be.

    ``kept`` lists what a collector kept because it could not decide whether it is needed: leaves that can't be read,
    and files of a kind that it does not know.
    """

    action: str
    """What was done, such as ``"compact"``."""
    changed: int = 0
    """How many leaves were changed; of a removal how many things were removed, or would be."""
    skipped: tuple[str, ...] = ()
    """The leaves that were left as they are because others changed them meanwhile; run it again for these."""
    freed_bytes: int = 0
    """How many bytes the removed files had."""
    removed_files: int = 0
    """How many files were removed, or would be."""
    version: int | None = None
    """The new snapshot; None if none was made."""
    locations: tuple[str, ...] = ()
    """The directories that were removed, or would be."""
    kept: tuple[str, ...] = ()
    """What a collector kept because it could not decide whether it is needed."""

    def _repr_html_(self) -> str:
        done = {name.replace("_", " "): value for name, value in asdict(self).items() if name != "action" and value}
        return html_record(self.action, done or {"changed": 0})


def compact(
    manifest: Manifest, *, target_rows: int = TARGET_ROWS, executor: Executor = LOCAL, progress: bool = True
) -> MaintenanceResult:
    """Merge small fragments and drop deleted rows; leaves that others change meanwhile are skipped.

    Indices do not follow rows that move, so those of a compacted leaf get parts over these rows in the same commit.
    """
    if isinstance(target_rows, bool) or not isinstance(target_rows, int) or target_rows < 1:
        raise InvalidInputError(f"target_rows is {target_rows!r}: give a whole number from 1 up")
    opening = strong(manifest, "compact")
    wanted = [
        (each, {leaf.object_id for leaf in leaves_of(opening, each)}) for each in living(opening) if each.in_leaves
    ]

    def task(place: LeafPlace) -> Compacting:
        own = tuple(each for each, names in wanted if place.leaf.object_id in names)
        return Compacting(place=place, target_rows=target_rows, indices=own)

    leaves = opening.plan(None).leaves
    done = {name for name, files in recorded_files(opening.snapshot, leaves).items() if _is_compact(files)}
    left = [leaf for leaf in leaves if leaf.object_id not in done]
    return new_versions(opening, left, leaf_tasks.compact, task, executor=executor, progress=progress)


def _is_compact(files: LeafFiles) -> bool:
    """Whether a leaf is one file, or none, without deleted rows."""
    found = files.fragments
    return len(found) <= 1 and all(len(each.files) == 1 and each.deletion is None for each in found)


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

    groups = [old] if executor.is_distributed and old else [[leaf] for leaf in old]
    return _in_commits(opening, groups, step, "rewriting", progress=progress)


def new_versions(
    opening: Transaction,
    leaves: Sequence[Leaf],
    action: Callable[[Any], int | None],
    task: Callable[[LeafPlace], Any],
    *,
    executor: Executor,
    progress: bool,
    together: bool = False,
    declares: Declaring | None = None,
) -> MaintenanceResult:
    """Rewrite leaves without changing their rows, and publish the new versions: of small leaves many in one commit.

    What it ``declares`` of indices is part of the first commit, and one of its own where no leaf changes.
    """
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
            leaf_record.note_elsewhere(transaction.manifest.root, leaf.location, version)
            transaction.work_on(leaf).take_version(version)
        return [leaf.object_id for leaf, _ in made], broken

    groups = [list(leaves)] if whole and (leaves or declares is not None) else _grouped(leaves)
    return _in_commits(opening, groups, step, opening.operation, progress=progress, declares=declares)


def _place(transaction: Transaction, leaf: Leaf) -> LeafPlace:
    return LeafPlace(root=transaction.manifest.root, metadata=transaction.metadata, leaf=leaf)


def _grouped(leaves: Sequence[Leaf]) -> list[list[Leaf]]:
    """Leaves in groups, so large that a commit is cheap beside the work, and so small that little is done again."""
    groups: list[list[Leaf]] = []
    held = _TOGETHER_BYTES
    for leaf in leaves:
        size = _TOGETHER_BYTES if leaf.stats is None else leaf.stats.bytes
        if not groups or held + size > _TOGETHER_BYTES or len(groups[-1]) >= _TOGETHER:
            groups.append([])
            held = 0
        groups[-1].append(leaf)
        held += size
    return groups


def _in_commits(
    opening: Transaction,
    groups: Sequence[Sequence[Leaf]],
    step: Callable[[Transaction, Sequence[Leaf]], tuple[list[str], list[str]]],
    what: str,
    *,
    progress: bool,
    declares: Declaring | None = None,
) -> MaintenanceResult:
    """Apply a step to groups of leaves, a commit each; concurrent commits win.

    A commit skips the leaves that others changed meanwhile, and is retried with the rest. A step returns which leaves
    it changed, and which of them can't be read.
    """
    done, skipped, version = 0, [], None
    for group in track(groups, what, show=progress):
        left = list(group)
        while left or declares is not None:
            transaction = strong(opening.manifest, opening.operation)
            transaction.declares = declares
            changed, broken = step(transaction, _found(transaction, left))
            skipped += [each for each in broken if each not in skipped]
            if not changed and declares is None:
                break
            try:
                version = transaction.commit()
                done, declares = done + len(changed), None
                break
            except CommitConflictError as error:
                lost = set(error.partitions) & {leaf.object_id for leaf in left} or {leaf.object_id for leaf in left}
                skipped += sorted(lost)
                left = [leaf for leaf in left if leaf.object_id not in lost]
    return MaintenanceResult(action=opening.operation, changed=done, skipped=tuple(skipped), version=version)


def rollback(
    manifest: Manifest, version: int | str | datetime, *, executor: Executor = LOCAL, progress: bool = True
) -> int | None:
    """Restore exactly the rows of an older snapshot as a new commit; concurrent commits are conflicts.

    A leaf in the same directory returns to its old version. One that was removed, or recreated in another directory,
    gets a copy of its rows under the current partitioning.
    """
    transaction = strong(manifest, "rollback")
    target = history.required(manifest, version)
    transaction.needs = target.version
    then = {item.object_id: item for item in _leaves_at(transaction, target)}
    still: list[GoingBack] = []
    for item in transaction.plan(None).leaves:
        past = then.get(item.object_id)
        if past is None or past.location != item.location:
            if item.stats is None or item.stats.rows:
                transaction.work_on(item).replace()
            continue
        del then[item.object_id]
        if past.read_version != item.read_version and past.read_version is not None:
            still.append(GoingBack(place=_place(transaction, item), version=past.read_version))
    found = executor.map(leaf_tasks.way_back, still, "rollback", progress=progress)
    for work, way in zip(still, found, strict=True):
        _refuse_lost(work, way)
    ways = [(transaction.work_on(work.place.leaf), work, way) for work, way in zip(still, found, strict=True)]
    transaction.over(ways, lambda each: _go_back(*each))
    for past in then.values():
        if past.stats is None or past.stats.rows:
            _copy(transaction, past)
    return transaction.commit()


def _refuse_lost(work: GoingBack, way: WayBack) -> None:
    if way.obstacle is not None:
        raise InvalidTableStateError(
            f"the rows of leaf {work.place.leaf.object_id!r} at that snapshot can't be restored: {way.obstacle}"
        )


def _go_back(changes: LeafChanges, work: GoingBack, way: WayBack) -> None:
    """Make an older version of a leaf the newest."""
    changes.take_version(work.version)
    now = work.place.leaf.stats
    added, deleted = way.rows or (changes.stats.rows, now.rows if now is not None else 0)
    changes.record_counts(added=added, deleted=deleted)


def _copy(transaction: Transaction, past: Leaf) -> None:
    """Add the rows that a leaf had."""
    schema = transaction.metadata.plain_schema
    task = transaction.task(past, None, schema.names)
    verbs.append(transaction, pa.RecordBatchReader.from_batches(schema, reading.read(task)))


def _leaves_at(transaction: Transaction, snapshot: Snapshot) -> tuple[Leaf, ...]:
    return planner.plan(snapshot, create.load(snapshot), None).leaves


def strong(manifest: Manifest, operation: str) -> Transaction:
    """A transaction for upkeep, which needs strong ones."""
    transaction = Transaction(manifest=manifest, operation=operation)
    if transaction.weak:
        raise UnsupportedOperationError(f"{operation} needs a table with transactions='strong'")
    return transaction


def _found(transaction: Transaction, items: Sequence[Leaf]) -> list[Leaf]:
    """Leaves as a transaction's snapshot has them; those that are gone are left out."""
    found: list[Leaf] = []
    for spec in transaction.metadata.specs:
        ids = [item.object_id for item in items if item.spec_id == spec.id]
        found += lookup.named(transaction.snapshot, transaction.metadata, spec, ids) if ids else []
    return found
