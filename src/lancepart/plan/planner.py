"""From a filter to the leaves that must be read, at one snapshot, over all spec versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from lancepart.format.names import LOCATION, OBJECT_ID, TABLE, of_type
from lancepart.layout.layouts import as_leaves, candidates, layout_for
from lancepart.layout.leaves import Leaf, is_current, total_rows
from lancepart.layout.metadata import STRONG, TableMetadata
from lancepart.model.html_text import html_table
from lancepart.model.predicate import Is, Not, Predicate
from lancepart.model.public import public
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


@public("explain", "leaves", "manifest_query", "specs", "version")
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The leaves to read for a filter, at one version of the manifest.

    ``pointers`` are the columns of ``__manifest`` that say what to read of them; none if no query of it finds them.
    """

    version: int
    """The snapshot that is read."""
    leaves: tuple[Leaf, ...]
    """The leaves to read, each with its ``object_id``, its partition ``values`` as text and its ``read_version``."""
    specs: tuple[SpecPlan, ...] = ()
    """For each version of the partitioning how many leaves are kept, and the ``reasons``."""
    pointers: tuple[str, ...] = ()

    @property
    def manifest_query(self) -> str:
        """The query of the manifest that is equivalent to the plan."""
        tests = []
        for spec in self.specs:
            if spec.pushed != "false":
                pushed = f"\n      AND {spec.pushed}" if spec.pushed else ""
                tests.append(f"({OBJECT_ID} LIKE 'v{spec.spec_id}$%'{pushed})")
        choices = "\n    OR ".join(tests) or "false"
        columns = ", ".join((OBJECT_ID, LOCATION, *self.pointers))
        return f"SELECT {columns}\nFROM __manifest\nWHERE {of_type(TABLE)}\n  AND (\n    {choices}\n  )"

    def _repr_html_(self) -> str:
        rows = [[leaf.object_id, leaf.values, None if leaf.stats is None else leaf.stats.rows] for leaf in self.leaves]
        more = f"<p>… and {len(rows) - _MOST_SHOWN:,} more</p>" if len(rows) > _MOST_SHOWN else ""
        reasons = html_table(["spec", "kept", "why"], [[spec.spec_id, spec.kept, spec.reasons] for spec in self.specs])
        return f"{reasons}{html_table(['leaf', 'values', 'rows'], rows[:_MOST_SHOWN])}{more}"

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
        lines += [f"  {_named(leaf)}  {leaf.object_id}  {leaf.location}" for leaf in self.leaves[:_MOST_SHOWN]]
        if len(self.leaves) > _MOST_SHOWN:
            lines.append(f"  … and {len(self.leaves) - _MOST_SHOWN} more")
        return "\n".join(lines)


def _named(leaf: Leaf) -> str:
    return "/".join("NULL" if value is None else value for value in leaf.values)


def plan(snapshot: Snapshot, metadata: TableMetadata, predicate: Predicate | None) -> Plan:
    """Keep the leaves of every spec version that can hold a matching row."""
    return _planned(snapshot, metadata, predicate, None)[0]


def narrowed(planned: Plan, snapshot: Snapshot, metadata: TableMetadata, predicate: Predicate | None) -> Plan:
    """Those leaves of a plan that can hold a matching row; leaves that the snapshot lacks, of a transaction, stay."""
    if predicate is None:
        return planned
    known, kept = (
        {(leaf.object_id, leaf.read_version) for leaf in plan(snapshot, metadata, tested).leaves}
        for tested in (None, predicate)
    )
    dropped = known - kept
    leaves = tuple(leaf for leaf in planned.leaves if (leaf.object_id, leaf.read_version) not in dropped)
    return replace(planned, leaves=leaves)


def plan_partly(
    snapshot: Snapshot, metadata: TableMetadata, predicate: Predicate | None
) -> tuple[Plan, frozenset[str]]:
    """The same, and those of the leaves that can also hold a row that does not match."""
    other = None if predicate is None else Not(operand=Is(operand=predicate, outcome=True))
    return _planned(snapshot, metadata, predicate, other)


def _planned(
    snapshot: Snapshot, metadata: TableMetadata, predicate: Predicate | None, other: Predicate | None
) -> tuple[Plan, frozenset[str]]:
    leaves: list[Leaf] = []
    partly: set[str] = set()
    specs = []
    for spec in metadata.specs:
        rows, pushed, reasons = kept(snapshot, metadata, spec, predicate)
        found = () if rows is None else as_leaves(snapshot, spec, rows, metadata)
        leaves += found
        specs.append(SpecPlan(spec_id=spec.id, pushed=pushed, kept=len(found), reasons=reasons))
        if rows is not None and other is not None and found:
            mixed = Pruner.of(other, spec, metadata.columns).keep(rows).to_pylist()
            partly.update(leaf.object_id for leaf, is_mixed in zip(found, mixed, strict=True) if is_mixed)
    pointers = layout_for(metadata).pointers
    planned = Plan(version=snapshot.version, leaves=tuple(leaves), specs=tuple(specs), pointers=pointers)
    return planned, frozenset(partly)


def numbered(snapshot: Snapshot, metadata: TableMetadata) -> tuple[Leaf, ...]:
    """All leaves of a snapshot in an order that is the same wherever it is used: a leaf's number is its place."""
    return tuple(sorted(plan(snapshot, metadata, None).leaves, key=lambda leaf: leaf.object_id))


def leaf_counts(snapshot: Snapshot, metadata: TableMetadata) -> dict[int, int]:
    """How many leaves each spec version has."""
    return layout_for(metadata).leaf_counts(snapshot, metadata)


def kept(
    snapshot: Snapshot, metadata: TableMetadata, spec: PartitionSpec, predicate: Predicate | None
) -> tuple[pa.Table | None, str | None, tuple[str, ...]]:
    """The rows of one spec's leaves that can match (None for none at all), the filter on the manifest, and why."""
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
    """The number of all rows from the manifest alone; ``None`` where the leaves must be opened."""
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
