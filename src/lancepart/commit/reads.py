"""What a transaction read, and whether it still holds when the transaction commits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lancepart.commit.work import StaleReadError
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.predicate import Predicate
from lancepart.plan import planner
from lancepart.plan.planner import Plan
from lancepart.storage.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Leaves that a filter kept; those of the specs in ``binding`` may not change, ``None`` binds nothing at all."""

    predicate: Predicate | None
    plan: Plan
    binding: frozenset[int] | None

    @property
    def bound(self) -> tuple[Leaf, ...]:
        """The leaves that may not change before the transaction commits."""
        return tuple(leaf for leaf in self.plan.leaves if leaf.spec_id in (self.binding or ()))


def refuse_changed(reads: Iterable[Read], then: TableMetadata, snapshot: Snapshot, now: TableMetadata) -> None:
    """Say that a binding read no longer holds: a leaf changed or came into being, or the partitioning is another.

    A change of the schema alone is none of leaves, and counts as made after the transaction.
    """
    binding = [read for read in reads if read.binding is not None]
    if binding and now.specs != then.specs:
        raise StaleReadError("the table's partitioning was changed by another writer")
    for read in binding:
        if not read.binding:
            continue
        seen = {leaf.object_id: leaf.read_version for leaf in read.bound}
        after = [leaf for leaf in planner.plan(snapshot, then, read.predicate).leaves if leaf.spec_id in read.binding]
        changed = {leaf.object_id for leaf in after if seen.pop(leaf.object_id, -1) != leaf.read_version}
        if changed or seen:
            raise StaleReadError(
                "partitions that were read were changed by another writer",
                partitions=tuple(sorted(changed | set(seen))),
            )
