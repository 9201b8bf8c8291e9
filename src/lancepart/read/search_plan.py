"""What a search needs to know of its leaves before it opens one, computed once for a snapshot and a filter."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

from lancepart.layout.declared_indices import Index, declared, text_params
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.plan import planner
from lancepart.plan.planner import Plan
from lancepart.read.leaf_memory import LeafVersion
from lancepart.read.scan import Scan
from lancepart.read.union import matching_partly
from lancepart.storage.cache import HashedKey
from lancepart.storage.root import Root


@dataclass(frozen=True, eq=False, kw_only=True)
class PlannedLeaves:
    """The leaves of a search in order, and those of which some rows may not match."""

    root: Root
    metadata: TableMetadata
    indices: tuple[Index, ...]
    leaves: tuple[Leaf, ...]
    partly: frozenset[str]

    @cached_property
    def are_whole(self) -> bool:
        """Whether all rows of all leaves match."""
        return not any(leaf.object_id in self.partly for leaf in self.leaves)

    @cached_property
    def are_fixed(self) -> bool:
        """Whether all leaves are at versions that never change."""
        return all(leaf.read_version is not None for leaf in self.leaves)

    @cached_property
    def rows(self) -> int | None:
        """How many rows the leaves have together; None where the manifest does not know it of one."""
        known = [leaf.stats.rows for leaf in self.leaves if leaf.stats is not None]
        return sum(known) if len(known) == len(self.leaves) else None

    @cached_property
    def definition_key(self) -> Hashable:
        """What decides how the columns of leaves match the table's."""
        own = self.metadata
        return HashedKey((own.salt, own.change, own.layout, own.foreign, own.past, own.schema.serialize().to_pybytes()))

    @cached_property
    def versions(self) -> tuple[LeafVersion, ...]:
        """The versions of the leaves that the manifest names."""
        return tuple(map(LeafVersion.of, self.leaves))

    @cached_property
    def versions_key(self) -> HashedKey:
        """What is read of leaves that are all at versions that never change."""
        return HashedKey(self.versions)

    @cached_property
    def union_key(self) -> Hashable:
        """What all leaves as one dataset are kept under."""
        parts = tuple((index.name, index.column, index.segments) for index in table_wide(self.indices))
        words = json.dumps(sorted(text_params(self.indices).items()), sort_keys=True)
        return HashedKey(("union", *self.root.identity, str(self.metadata.schema), self.versions, parts, words))


def table_wide(indices: Sequence[Index]) -> list[Index]:
    """The indices with parts over all leaves as one dataset."""
    return [index for index in indices if index.segments and index.is_over_rows]


def planned(scan: Scan) -> PlannedLeaves:
    """The leaves of a scan; known for as long as the snapshot."""

    def made(plan: Plan, partly: frozenset[str]) -> PlannedLeaves:
        ordered = tuple(sorted(plan.leaves, key=lambda leaf: leaf.object_id))
        indices = declared(scan.snapshot)
        return PlannedLeaves(root=scan.root, metadata=scan.metadata, indices=indices, leaves=ordered, partly=partly)

    if scan.planned is not None:
        return made(scan.planned, matching_partly(scan))
    key = ("search", scan.where, scan.metadata.plain_schema.serialize().to_pybytes())
    return scan.snapshot.derived(key, lambda: made(*planner.plan_partly(scan.snapshot, scan.metadata, scan.predicate)))
