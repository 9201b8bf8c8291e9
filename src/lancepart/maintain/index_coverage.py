"""How many rows of a leaf each index covers: those of the leaf's own, and those over the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lancepart.layout.declared_indices import LEAF, TABLE, Index
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.aliases import JsonObject
from lancepart.read import union
from lancepart.read.key_lookup import HeldLeaves
from lancepart.storage import table_index
from lancepart.storage.leaf_handle import LeafHandle
from lancepart.storage.root import Root
from lancepart.storage.table_index import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The declared indices of a table, and the parts that those over the whole table have."""

    metadata: TableMetadata
    declared: Sequence[Index]
    parts: dict[str, tuple[Segment, ...]]

    @classmethod
    def of(cls, root: Root, metadata: TableMetadata, declared: Sequence[Index]) -> Coverage:
        """Read what the parts are; those that are gone or damaged cover nothing."""
        found = {
            index.name: tuple(part for name in index.segments if (part := table_index.usable(root, name)) is not None)
            for index in declared
            if index.scope != LEAF
        }
        return cls(metadata=metadata, declared=declared, parts=found)

    def rows(self, leaf: Leaf, handle: LeafHandle) -> list[JsonObject]:
        """A row for each index that a leaf has or should have, and for each over the whole table."""
        count = handle.count_rows()
        own = [
            {
                "object_id": leaf.object_id,
                "name": each.name,
                "type": each.index_type,
                "columns": list(each.field_names),
                "rows": count,
                "indexed_rows": min(count, int(each.num_rows_indexed)),
                "segments": len(each.segments),
                "scope": LEAF,
            }
            for each in handle.describe_indices()
        ]
        known = {row["name"] for row in own}
        lacking = [
            self._row(leaf, count, index, LEAF)
            for index in self.declared
            if index.in_leaves and index.name not in known
        ]
        wide = [self._wide(leaf, handle, count, index) for index in self.declared if index.name in self.parts]
        return [*own, *lacking, *wide]

    def _row(self, leaf: Leaf, count: int, index: Index, scope: str, indexed: int = 0, segments: int = 0) -> JsonObject:
        columns = self.metadata.columns
        return {
            "object_id": leaf.object_id,
            "name": index.name,
            "type": index.kind,
            "columns": [columns[index.column].name] if index.column in columns else [],
            "rows": count,
            "indexed_rows": indexed,
            "segments": segments,
            "scope": scope,
        }

    def _wide(self, leaf: Leaf, handle: LeafHandle, count: int, index: Index) -> JsonObject:
        counts = [_covered(part, leaf, handle, count) for part in self.parts[index.name]]
        return self._row(leaf, count, index, TABLE, min(count, sum(counts)), sum(each > 0 for each in counts))


def _covered(part: Segment, leaf: Leaf, handle: LeafHandle, count: int) -> int:
    """How many rows of a leaf a part covers."""
    if not part.facts:
        return count if _is_held(part, leaf, handle) else 0
    return sum(
        int(item.count_rows())
        for item in handle.get_fragments()
        if union.covered_key(union.fragment_keys(leaf.location, item.metadata), part.fragments) is not None
    )


def _is_held(part: Segment, leaf: Leaf, handle: LeafHandle) -> bool:
    """Whether a part of a look-up holds all keys of a leaf."""
    held = HeldLeaves(part)
    if held.is_unsure(leaf):
        held.compare(leaf, [union.fragment_keys(leaf.location, item.metadata) for item in handle.get_fragments()])
    return held.number_of(leaf) is not None
