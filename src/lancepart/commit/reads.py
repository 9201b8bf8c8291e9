"""The read set of a transaction, validated when it commits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lancepart.commit.conflicts import StaleReadError, changed_leaves, with_specs
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.predicate import Predicate
from lancepart.plan import planner
from lancepart.plan.planner import Plan
from lancepart.storage.snapshot import Snapshot

_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Leaves that a filter kept; those of the specs in ``binding`` may not change.

    With ``None`` the read is not validated at commit.
    """

    predicate: Predicate | None
    plan: Plan
    binding: frozenset[int] | None

    @property
    def bound(self) -> tuple[Leaf, ...]:
        """The leaves that may not change before the transaction commits."""
        return tuple(leaf for leaf in self.plan.leaves if leaf.spec_id in (self.binding or ()))


def refuse_changed(reads: Iterable[Read], then: TableMetadata, snapshot: Snapshot, now: TableMetadata) -> None:
    """Return why a validated read no longer holds: a leaf was changed or added, or the spec is another.

    A change of the schema alone is none of leaves, and counts as made after the transaction.
    """
    binding = [read for read in reads if read.binding is not None]
    if binding and (reason := with_specs(then.specs, now.specs)) is not None:
        raise StaleReadError(reason)
    for read in binding:
        if not read.binding:
            continue
        after = [leaf for leaf in planner.plan(snapshot, then, read.predicate).leaves if leaf.spec_id in read.binding]
        changed = changed_leaves(read.bound, after)
        if changed:
            named = ", ".join(shown(changed[key], then) for key in sorted(changed)[:_NAMED])
            more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
            raise StaleReadError(
                f"partitions that were read were changed by another writer: {named}{more}",
                partitions=tuple(sorted(changed)),
            )


def shown(leaf: Leaf, metadata: TableMetadata) -> str:
    """A leaf as an error names it: its partition values."""
    spec = metadata.spec_of(leaf.spec_id)
    names = [field.field_id for field in spec.fields] if spec is not None else []
    return "/".join(f"{name}={value}" for name, value in zip(names, leaf.values, strict=False)) or leaf.object_id
