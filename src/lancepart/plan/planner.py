"""From a filter to the leaves that must be read, at one snapshot, over all spec versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lancepart.format.names import LOCATION, OBJECT_ID, TABLE, of_type
from lancepart.layout.layouts import as_leaves, candidates, layout_for
from lancepart.layout.leaves import Leaf, is_current, total_rows
from lancepart.layout.metadata import STRONG, TableMetadata
from lancepart.model.predicate import Predicate
from lancepart.model.spec import PartitionSpec
from lancepart.plan.prune import Pruner
from lancepart.storage.snapshot import Snapshot

_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecPlan:
    """What was kept of one spec version, and why."""

    spec_id: int
    pushed: str | None
    kept: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The leaves to read for a filter, at one version of the manifest.

    ``pointers`` are the columns of ``__manifest`` that say what to read of them; none if no query of it finds them.
    """

    version: int
    leaves: tuple[Leaf, ...]
    specs: tuple[SpecPlan, ...] = ()
    pointers: tuple[str, ...] = ()

    @property
    def manifest_query(self) -> str:
        """The query of the manifest that is equivalent to the plan."""
        tests = []
        for spec in self.specs:
            if spec.pushed != "false":
                pushed = f"\n      AND {spec.pushed}" if spec.pushed else ""
                tests.append(f"(object_id LIKE 'v{spec.spec_id}$%'{pushed})")
        choices = "\n    OR ".join(tests) or "false"
        columns = ", ".join((OBJECT_ID, LOCATION, *self.pointers))
        return f"SELECT {columns}\nFROM __manifest\nWHERE {of_type(TABLE)}\n  AND (\n    {choices}\n  )"

    def explain(self, totals: Mapping[int, int]) -> str:
        """The plan for a person: the query, and what was kept and dropped of each spec version."""
        everything = sum(totals.values())
        lines = [f"snapshot {self.version}: {len(self.leaves)} of {everything} leaves", ""]
        lines += [self.manifest_query, ""] if self.pointers else []
        for spec in self.specs:
            dropped = totals.get(spec.spec_id, 0) - spec.kept
            lines.append(f"spec v{spec.spec_id}: {spec.kept} kept, {dropped} dropped")
            lines += [f"  {reason}" for reason in spec.reasons]
        lines += ["", "kept leaves:" if self.leaves else "no leaf is read"]
        lines += [f"  {leaf.object_id}  {leaf.location}" for leaf in self.leaves[:_MOST_SHOWN]]
        if len(self.leaves) > _MOST_SHOWN:
            lines.append(f"  … and {len(self.leaves) - _MOST_SHOWN} more")
        return "\n".join(lines)


def plan(snapshot: Snapshot, metadata: TableMetadata, predicate: Predicate | None) -> Plan:
    """Keep the leaves of every spec version that can hold a matching row."""
    leaves: list[Leaf] = []
    specs = []
    for spec in metadata.specs:
        rows, pushed, reasons = kept(snapshot, metadata, spec, predicate)
        found = () if rows is None else as_leaves(snapshot, spec, rows, metadata)
        leaves += found
        specs.append(SpecPlan(spec_id=spec.id, pushed=pushed, kept=len(found), reasons=reasons))
    pointers = layout_for(metadata).pointers
    return Plan(version=snapshot.version, leaves=tuple(leaves), specs=tuple(specs), pointers=pointers)


def numbered(snapshot: Snapshot, metadata: TableMetadata) -> tuple[Leaf, ...]:
    """All leaves of a snapshot in an order that is the same wherever it is used: a leaf's number is its place."""
    return tuple(sorted(plan(snapshot, metadata, None).leaves, key=lambda leaf: leaf.object_id))


def leaf_counts(snapshot: Snapshot, metadata: TableMetadata) -> dict[int, int]:
    """How many leaves each spec version has."""
    return layout_for(metadata).leaf_counts(snapshot, metadata)


def kept(
    snapshot: Snapshot, metadata: TableMetadata, spec: PartitionSpec, predicate: Predicate | None
) -> tuple[pa.Table | None, str | None, tuple[str, ...]]:
    """The rows of one spec's leaves that can match (None for none at all), what the manifest was asked, and why."""
    if predicate is None:
        return candidates(snapshot, spec, None), None, ("no filter: every leaf is read",)
    pruner = Pruner.of(predicate, spec, metadata.columns)
    reasons = tuple(pruner.explain())
    if pruner.matches_nothing:
        return None, "false", reasons
    pushed = pruner.manifest_filter()
    rows = candidates(snapshot, spec, pushed)
    return rows.filter(pruner.keep(rows)), pushed, reasons


def count_all(snapshot: Snapshot, metadata: TableMetadata) -> int | None:
    """The number of all rows from the manifest alone; ``None`` where the leaves themselves must be asked."""
    if metadata.transactions != STRONG:
        return None
    total = 0
    for spec in metadata.specs:
        rows = candidates(snapshot, spec, None)
        if rows.num_rows == 0:
            continue
        found = total_rows(rows)
        if found is None or not is_current(snapshot, rows):
            return None
        total += found
    return total
