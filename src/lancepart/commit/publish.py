"""How the changes of a transaction become visible: all leaves at once, or each on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lancepart.commit import lookup, manifest_changes, writers
from lancepart.commit.conflicts import StaleReadError, with_fence, with_upgrade
from lancepart.commit.covered import covered
from lancepart.commit.floors import CollectedError, Floor, collected, refuse_collected
from lancepart.commit.idempotency import AlreadyDoneError
from lancepart.commit.leaf_changes import LeafChanges
from lancepart.commit.numbering import Numbering
from lancepart.commit.reads import refuse_changed
from lancepart.commit.result import CommitResult
from lancepart.errors import CommitConflictError, InvalidTableStateError
from lancepart.format.names import FENCE
from lancepart.layout import create
from lancepart.layout.capabilities import CommitMode
from lancepart.layout.declared_indices import declared, spelled
from lancepart.layout.layouts import as_leaves
from lancepart.layout.leaves import Leaf
from lancepart.model.aliases import JsonObject
from lancepart.storage import history
from lancepart.storage.manifest_rows import Change
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import MissingError, UnreadableError, storage_errors

if TYPE_CHECKING:
    from lancepart.commit.transaction import Transaction


class Publisher(Protocol):
    """Makes what a transaction changed visible."""

    def publish(self) -> CommitResult | None:
        """The new snapshot's version, ``None`` where there are no snapshots."""


def publisher_of(transaction: Transaction, changed: list[LeafChanges]) -> Publisher:
    """Who publishes the changes of a transaction, as its table's layout says."""
    kind = _PUBLISHERS[transaction.capabilities.publishing]
    return kind(transaction=transaction, changed=changed)


@dataclass(slots=True, kw_only=True)
class StrongPublisher:
    """One commit to ``__manifest`` that names the new versions of all leaves, rebased until it wins or is refused."""

    transaction: Transaction
    changed: list[LeafChanges]
    fence: str | None = None
    planned_on: int = 0

    def publish(self) -> CommitResult | None:
        """The new snapshot's version; that of an earlier commit, if one had the same idempotency key."""
        transaction = self.transaction
        if not self.changed and transaction.idempotency is None and transaction.declares is None:
            return CommitResult(transaction.snapshot.version)
        if transaction.fenced:
            self.fence = self._first_fence()
        try:
            version = transaction.manifest.commit(self._plan, start=self._start)[1]
        except AlreadyDoneError as done:
            return CommitResult(done.version)
        changed = self.changed
        version = self._uncover(version) if transaction.metadata.foreign else version
        return CommitResult.of(version, changed, transaction.updated)

    def _first_fence(self) -> str | None:
        """Who had written the fence last when the transaction began."""
        own = self.transaction
        try:
            return manifest_changes.fence_value(own.snapshot, own.metadata)
        except MissingError:
            raise CollectedError(
                f"the snapshot {own.snapshot.version} at which the transaction began has expired; nothing was changed, "
                "so begin it again"
            ) from None

    def _uncover(self, version: int) -> int:
        """Publish leaves again that a client which leaves numbers out covered with a version of its own."""
        own, works = self.transaction, {work.object_id: work for work in self.changed}
        while hidden := covered(own.manifest, works, own.id, after=self.planned_on, until=version):
            own.idempotency, own.needs, own.fenced, own.reads = None, None, False, []
            self.changed = [works[name] for name in sorted(hidden)]
            try:
                version = own.manifest.commit(self._plan)[1]
            except CommitConflictError as error:
                raise InvalidTableStateError(
                    f"snapshot {version} has this commit, but another client covered {', '.join(sorted(hidden))} with "
                    f"a version whose number is not the next one, so that the two conflict: {error}"
                ) from None
        return version

    @property
    def _start(self) -> Snapshot | None:
        """The snapshot to publish from: the transaction's own, unless a read must be validated again.

        Changed leaves are found by their rows; leaves that were only read, and new specs, are not.
        """
        own = self.transaction
        depends = own.fenced or own.needs is not None or any(read.binding is not None for read in own.reads)
        return None if depends or not own.capabilities.version_rows else own.snapshot

    def _plan(self, snapshot: Snapshot, retry: bool) -> tuple[Change, None]:
        own = self.transaction
        if own.idempotency is not None and own.idempotency.is_done(snapshot):
            raise AlreadyDoneError(snapshot.version)
        self.planned_on = snapshot.version
        self._refuse_stale(snapshot)
        current = self._current(snapshot)
        for work in self.changed:
            self._rebase(work, current.get(work.object_id) or current.get((work.spec_id, work.key)), snapshot)
        floor = manifest_changes.fence_floor(snapshot, own.metadata)
        refuse_collected(snapshot, own.first_snapshot, self.changed, floor)
        fencing = own.is_fencing or any(work.is_unnamed for work in self.changed)
        fence = snapshot.row(manifest_changes.fence_id(own.metadata))
        numbers = Numbering.at(fence, fencing=fencing, operation=own.operation)
        change = manifest_changes.of_works(own, snapshot, self.changed, numbers)
        mark = {**({FENCE: own.id} if fencing else {}), **numbers.mark, **self._declared(snapshot)}
        if mark:
            change = manifest_changes.with_mark(change, snapshot, own.metadata, mark)
        if own.idempotency is not None:
            change += own.idempotency.written(snapshot, own.signature)
        if writers.is_long(own.began):
            change += writers.leaving(snapshot, own.id)
        mine = {work.object_id for work in self.changed}
        read = {leaf.object_id for each in own.reads for leaf in each.bound}
        return change + Change(touches=tuple(sorted(read - mine))), None

    def _declared(self, snapshot: Snapshot) -> JsonObject:
        """The indices that the commit declares beside what others declared, if it changes them."""
        step = self.transaction.declares
        known = () if step is None else declared(snapshot)
        wanted = known if step is None else step(known)
        return {} if wanted == known else spelled(wanted)

    def _refuse_stale(self, snapshot: Snapshot) -> None:
        """Refuse to publish if something that the transaction depends on is not as it was."""
        own = self.transaction
        now = create.load(snapshot)
        stale = with_upgrade(own.metadata.layout, now.layout)
        if stale is None and own.fenced:
            stale = with_fence(self.fence, manifest_changes.fence_value(snapshot, own.metadata))
        if stale is not None:
            raise StaleReadError(stale)
        if own.needs is not None:
            history.refuse_expired(own.manifest, snapshot, own.needs)
        if snapshot.version != own.snapshot.version:
            refuse_changed(own.reads, own.metadata, snapshot, now)

    def _rebase(self, work: LeafChanges, current: Leaf | None, snapshot: Snapshot) -> None:
        """Rebase a leaf; missing files were removed by a collector."""
        own = self.transaction
        try:
            with storage_errors(f"rebase partition {work.object_id!r}", own.manifest.root):
                work.rebase(current)
        except (UnreadableError, FileNotFoundError):
            row = snapshot.row(work.object_id if current is None else current.object_id)
            floors = [
                None if row is None else Floor.of(row.metadata),
                manifest_changes.fence_floor(snapshot, own.metadata),
            ]
            if not any(floor is not None and own.first_snapshot <= floor.version for floor in floors):
                raise
            raise CollectedError(collected(work.object_id), partitions=(work.object_id,)) from None

    def _current(self, snapshot: Snapshot) -> dict[str | tuple[int, tuple[str, ...]], Leaf]:
        """The leaves as they are published now, by id and by values."""
        own = self.transaction
        if snapshot.version == own.snapshot.version:
            return {work.object_id: work.leaf for work in self.changed if work.leaf is not None}
        new = [(own.spec, work.key, work.values) for work in self.changed if work.is_new and work.leaf is None]
        by_values = lookup.existing(snapshot, own.metadata, new)
        old = [work for work in self.changed if work.leaf is not None]
        found: dict[str | tuple[int, tuple[str, ...]], Leaf] = dict(by_values.items())
        for spec in own.metadata.specs:
            ids = [work.object_id for work in old if work.spec_id == spec.id]
            if ids:
                table = snapshot.table_of(ids)
                found |= {item.object_id: item for item in as_leaves(snapshot, spec, table, own.metadata)}
        return found


@dataclass(slots=True, kw_only=True)
class WeakPublisher:
    """Leaves that exist were committed to as they were changed; each new one is entered into ``__manifest``."""

    transaction: Transaction
    changed: list[LeafChanges]

    def publish(self) -> CommitResult | None:
        """Register the new leaves, one commit each, so that an error can say how far it got."""
        for work in self.changed:
            if work.is_new:
                self._enter(work)
                self.transaction.known.append(work.object_id)
        return None

    def _enter(self, work: LeafChanges) -> None:
        own = self.transaction

        def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, Leaf | None]:
            there = lookup.existing(snapshot, own.metadata, [(own.spec, work.key, work.values)])
            winner = there.get((own.spec.id, work.key))
            if winner is not None:
                return Change(), winner
            return manifest_changes.of_weak_leaf(own, snapshot, work), None

        winner = own.manifest.transact(plan)
        if winner is not None:
            work.rebase(winner)


_PUBLISHERS: dict[CommitMode, type[StrongPublisher] | type[WeakPublisher]] = {
    CommitMode.STRONG: StrongPublisher,
    CommitMode.WEAK: WeakPublisher,
}
