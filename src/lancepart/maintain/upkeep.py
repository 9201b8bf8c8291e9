"""Upkeep of a table's leaves, safe beside writers: each step is a transaction, and yields to those it meets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lancepart.commit import verbs
from lancepart.commit.transaction import Transaction
from lancepart.commit.work import Work
from lancepart.errors import CommitConflictError, InvalidInputError, UnsupportedOperationError
from lancepart.layout import create
from lancepart.layout.leaves import Leaf
from lancepart.maintain import indices
from lancepart.maintain.indices import Index
from lancepart.maintain.progress import track
from lancepart.model.schema import field_id
from lancepart.plan import planner
from lancepart.read import leaf as reading
from lancepart.storage import history, leafdata
from lancepart.storage.manifest import Manifest
from lancepart.write.route import route

TARGET_ROWS = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an upkeep call did."""

    action: str
    changed: int = 0
    skipped: tuple[str, ...] = ()
    freed_bytes: int = 0
    removed_files: int = 0
    version: int | None = None


Step = Callable[[Transaction, Leaf], bool]


def compact(manifest: Manifest, *, target_rows: int = TARGET_ROWS, progress: bool = True) -> Report:
    """Put small fragments together and drop deleted rows, leaf by leaf; a leaf that others change meanwhile waits.

    Indices do not follow rows that move, so those of a leaf that is compacted are built anew in the same commit.
    """
    opening = _strong(manifest, "compact")
    wanted = indices.defined(opening.snapshot)

    def step(transaction: Transaction, current: Leaf) -> bool:
        assert current.read_version is not None
        newer = leafdata.compact(
            manifest.root,
            current.location,
            base=current.read_version,
            target_rows=target_rows,
            rebuilt={index.name for index in wanted},
        )
        if newer is None:
            return False
        work = transaction.work_on(current)
        _adopt(work, newer)
        for index in wanted if work.stats.rows else ():
            with contextlib.suppress(InvalidInputError):
                _adopt(work, indices.build(transaction, work.as_leaf(), index) or newer)
        return True

    return _each_leaf(manifest, "compact", opening.plan(None).leaves, step, "compacting", progress=progress)


def create_index(
    manifest: Manifest, column: str, kind: str, *, name: str | None = None, progress: bool = True, **params: Any
) -> Report:
    """Build an index in every leaf that has the column; rows added later are found without it."""
    opening = _strong(manifest, "index")
    if column not in opening.metadata.schema.names:
        raise InvalidInputError(f"there is no column {column!r} to index")
    number = field_id(opening.metadata.schema.field(column))
    index = Index(name=name or f"{column}_idx", column=number or 0, kind=kind.upper(), params=params)
    index.check()

    def step(transaction: Transaction, current: Leaf) -> bool:
        if current.stats and current.stats.rows == 0:
            return False
        newer = indices.build(transaction, current, index)
        if newer is not None:
            _adopt(transaction.work_on(current), newer)
        return newer is not None

    done = _each_leaf(manifest, "index", opening.plan(None).leaves, step, "indexing", progress=progress)
    indices.remember(manifest, index)
    return done


def rewrite(manifest: Manifest, where: str | None = None, *, progress: bool = True) -> Report:
    """Move rows that older specs placed into the partitions of the newest, one leaf a commit."""
    opening = _strong(manifest, "rewrite")
    predicate = verbs.filter_of(opening, where)
    old = [item for item in opening.plan(predicate).leaves if item.spec_id != opening.spec.id]

    def step(transaction: Transaction, current: Leaf) -> bool:
        if current.stats is not None and current.stats.rows == 0:
            return False
        task = transaction.task(current, predicate, transaction.metadata.schema.names)
        found = list(reading.with_addresses(task))
        if not found:
            return False
        rows = pa.Table.from_batches(found)
        transaction.work_on(current).delete(rows.column(reading.ADDRESS).to_numpy())
        moved = rows.drop_columns([reading.ADDRESS])
        verbs.add(transaction, list(route(moved, transaction.metadata.schema, transaction.spec)))
        return True

    return _each_leaf(manifest, "rewrite", old, step, "rewriting", progress=progress)


def _each_leaf(
    manifest: Manifest, operation: str, leaves: Sequence[Leaf], step: Step, what: str, *, progress: bool
) -> Report:
    """Do something to leaf after leaf, each in a commit of its own that yields to others."""
    done, skipped, version = 0, [], None
    for item in track(leaves, what, show=progress):
        transaction = _strong(manifest, operation)
        current = _find(transaction, item)
        if current is None or current.read_version is None or not step(transaction, current):
            continue
        try:
            version = transaction.commit()
            done += 1
        except CommitConflictError:
            skipped.append(item.object_id)
    return Report(action=operation, changed=done, skipped=tuple(skipped), version=version)


def rollback(manifest: Manifest, version: Any) -> int | None:
    """Bring back the rows of an older snapshot, as a new commit; what others commit meanwhile is a conflict."""
    transaction = _strong(manifest, "rollback")
    target = history.at(manifest, history.resolve(manifest, version) or 0)
    transaction.needs = target.version
    then = {item.object_id: item for item in _leaves_at(transaction, target)}
    for item in transaction.plan(None).leaves:
        past = then.get(item.object_id)
        if past is None:
            if item.stats is None or item.stats.rows:
                transaction.work_on(item).replace()
        elif past.read_version != item.read_version and past.read_version is not None:
            work = transaction.work_on(item)
            _adopt(work, past.read_version)
            _count(work, item.read_version)
    return transaction.commit()


def _count(work: Work, before: int | None) -> None:
    """Tell how many rows come and go between the version that is read now and the transaction's own."""
    assert before is not None
    assert work.head is not None
    found = leafdata.difference(work.root, work.location, before, work.head)
    old = leafdata.open_leaf(work.root, work.location, before)
    work.added = sum(map(len, found.restored.values())) + sum(int(item.num_rows) for item in found.added)
    work.deleted = sum(map(len, found.deleted.values())) + sum(
        len(leafdata.live_offsets(old, number)) for number in found.removed
    )


def _leaves_at(transaction: Transaction, snapshot: Any) -> tuple[Leaf, ...]:
    return planner.plan(snapshot, create.load(transaction.manifest, snapshot), None).leaves


def _strong(manifest: Manifest, operation: str) -> Transaction:
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
    return transaction.leaf_named(spec, item.object_id)


def _adopt(work: Work, version: int) -> None:
    """Let a version that was made elsewhere be the transaction's own."""
    work.head = version
    work.replaced = True
    work.stats = work.measured()
