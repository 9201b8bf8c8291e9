"""The layouts behind one interface: how a definition is read, leaves are found and matched, what is possible."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidTableStateError, UnsupportedOperationError
from lancepart.format.names import (
    OBJECT_ID,
    READ_BRANCH,
    READ_TAG,
    READ_VERSION,
    TABLE,
    of_type,
    partition_column,
    spec_namespace,
)
from lancepart.layout import leaves
from lancepart.layout.capabilities import Capabilities, CommitMode
from lancepart.layout.draft import draft_leaves, refuse_unpinned
from lancepart.layout.hive_tree import TreeSnapshot, tree_leaves
from lancepart.layout.leaves import Leaf
from lancepart.layout.matching import Matching
from lancepart.layout.metadata import DRAFT, HIVE, MANIFEST, PLAIN, STRONG, TableMetadata, is_draft, read_metadata
from lancepart.layout.plain import PlainSnapshot
from lancepart.model.spec import PartitionSpec
from lancepart.model.type_names import holds_exactly, kind_of
from lancepart.model.values import logical_type
from lancepart.storage import refs
from lancepart.storage.leaf_handle import LeafShape
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot


class Layout(Protocol):
    """What planning, reading, writing and inspecting need to know of a layout."""

    @property
    def name(self) -> str:
        """What the layout is called."""

    @property
    def records_versions(self) -> bool:
        """Whether ``table_version`` rows record each change of a leaf, and the commit that made it."""

    @property
    def pointers(self) -> tuple[str, ...]:
        """The columns of ``__manifest`` that say what to read of a leaf; none if no query of it finds leaves."""

    def capabilities(self, metadata: TableMetadata) -> Capabilities:
        """What a table with that definition can do."""

    def unsupported(self, what: str) -> UnsupportedOperationError:
        """The error for something that needs a table of the current layout."""

    def load(self, snapshot: Snapshot) -> TableMetadata:
        """The table's definition."""

    def candidates(
        self, snapshot: Snapshot, spec: PartitionSpec, where: str | None, *, whole: bool = False
    ) -> pa.Table:
        """Rows of leaves with their partition values: at least those that a filter over these leaves in."""

    def leaves(
        self, snapshot: Snapshot, spec: PartitionSpec, rows: pa.Table, metadata: TableMetadata
    ) -> tuple[Leaf, ...]:
        """Such rows as leaves, each at the version that a reader must read."""

    def leaf_counts(self, snapshot: Snapshot, metadata: TableMetadata) -> dict[int, int]:
        """How many leaves each spec version has."""

    def is_declared(self, root: Root, leaf: Leaf) -> bool:
        """Whether a leaf that can't be opened was only declared, so that it has no rows yet."""

    def matching(self, shape: LeafShape, metadata: TableMetadata, leaf: Leaf) -> Matching:
        """Which of a leaf's columns correspond to which of the table's."""

    def refuse_past(self, snapshot: Snapshot, metadata: TableMetadata) -> None:
        """Refuse to read a snapshot other than the latest if its leaves are no longer known."""


@dataclass(frozen=True, slots=True)
class ManifestLayout:
    """The current layout: all in ``__manifest``, columns known by field id."""

    name: str = MANIFEST
    records_versions: bool = True
    pointers: tuple[str, ...] = (READ_VERSION.name,)

    def capabilities(self, metadata: TableMetadata) -> Capabilities:
        """Everything; without strong transactions no snapshots and no version rows."""
        strong = metadata.transactions == STRONG
        return Capabilities(
            publishing=CommitMode.STRONG if strong else CommitMode.WEAK,
            snapshots=strong,
            version_rows=self.records_versions,
            evolution=True,
            maintenance=True,
            distributed_writes=True,
            declared_indices=True,
        )

    def unsupported(self, what: str) -> UnsupportedOperationError:
        """The error for something that needs a table with strong transactions."""
        return UnsupportedOperationError(f"{what} needs a table with transactions='strong'")

    def load(self, snapshot: Snapshot) -> TableMetadata:
        """From the manifest's metadata map."""
        has_read_version = snapshot.schema is not None and READ_VERSION.name in snapshot.schema.names
        metadata = read_metadata(snapshot.properties, has_read_version=has_read_version, root=snapshot.root.uri)
        return _with_columns(metadata, snapshot.schema)

    def candidates(
        self, snapshot: Snapshot, spec: PartitionSpec, where: str | None, *, whole: bool = False
    ) -> pa.Table:
        """A query of the manifest."""
        return leaves.candidates(snapshot, spec, where, whole=whole)

    def leaves(
        self, snapshot: Snapshot, spec: PartitionSpec, rows: pa.Table, metadata: TableMetadata
    ) -> tuple[Leaf, ...]:
        """At the versions that ``table_version`` rows name."""
        return leaves.manifest_leaves(snapshot, spec, rows, metadata)

    def leaf_counts(self, snapshot: Snapshot, metadata: TableMetadata) -> dict[int, int]:
        """By the prefixes of their ids, which name the spec version."""
        found = snapshot.scan(of_type(TABLE), columns=[OBJECT_ID])
        ids = found.column(OBJECT_ID) if found is not None else pa.chunked_array([[]], pa.string())
        prefixes = {spec.id: f"{spec_namespace(spec.id)}$" for spec in metadata.specs}
        return {number: pc.sum(pc.starts_with(ids, prefix)).as_py() or 0 for number, prefix in prefixes.items()}

    def is_declared(self, root: Root, leaf: Leaf) -> bool:
        """Never: a row is written when the leaf has its first version."""
        return False

    def matching(self, shape: LeafShape, metadata: TableMetadata, leaf: Leaf) -> Matching:
        """By field id."""
        return Matching.of(shape, metadata, leaf.object_id)

    def refuse_past(self, snapshot: Snapshot, metadata: TableMetadata) -> None:
        """With weak transactions leaves are always read at their latest."""
        if metadata.transactions != STRONG:
            raise UnsupportedOperationError(
                "time travel and tags need a table with transactions='strong', and this one has 'weak', whose leaves "
                "are always read at their latest: use it without a version"
            )


def _with_columns(metadata: TableMetadata, manifest: pa.Schema) -> TableMetadata:
    """A definition with fields doubted whose columns of the manifest do not keep what is declared; all must exist."""
    doubted = set()
    for name, field in metadata.partition_fields.items():
        index = manifest.get_field_index(partition_column(name))
        kind = None if index < 0 else manifest.field(index).type
        if kind is None or kind_of(logical_type(kind)) != kind_of(logical_type(field.result_type)):
            found = "no such column" if kind is None else f"one of type {kind}"
            raise InvalidTableStateError(
                f"partition field {name!r} needs the column {partition_column(name)} of type {field.result_type} in "
                f"__manifest, which has {found}"
            )
        if not holds_exactly(logical_type(kind), logical_type(field.result_type)):
            doubted.add(name)
    if not doubted:
        return metadata
    specs = [
        replace(spec, fields=tuple(replace(f, opaque=f.opaque or f.field_id in doubted) for f in spec.fields))
        for spec in metadata.specs
    ]
    return replace(metadata, specs=tuple(specs))


@dataclass(frozen=True, slots=True)
class DraftLayout(ManifestLayout):
    """The expression draft: the same, but for the columns on table rows that say what to read."""

    name: str = DRAFT
    records_versions: bool = False
    pointers: tuple[str, ...] = (READ_VERSION.name, READ_BRANCH.name, READ_TAG.name)

    def capabilities(self, metadata: TableMetadata) -> Capabilities:
        """Rows are read and written as in the current layout; the rest needs what the draft does not record."""
        known = ManifestLayout.capabilities(self, metadata)
        return replace(known, evolution=False, maintenance=False)

    def unsupported(self, what: str) -> UnsupportedOperationError:
        """The error for something that the draft does not record enough for."""
        return _outdated(what, self.name)

    def leaves(
        self, snapshot: Snapshot, spec: PartitionSpec, rows: pa.Table, metadata: TableMetadata
    ) -> tuple[Leaf, ...]:
        """At what ``read_version``, ``read_branch`` and ``read_tag`` say."""
        return draft_leaves(snapshot, spec, rows, metadata)

    def refuse_past(self, snapshot: Snapshot, metadata: TableMetadata) -> None:
        """A leaf whose row names no version is read at its latest."""
        ManifestLayout.refuse_past(self, snapshot, metadata)
        refuse_unpinned(snapshot)


@dataclass(frozen=True, slots=True)
class HiveLayout:
    """The Hive-style tree: values in names, columns known by name."""

    name: str = HIVE
    records_versions: bool = False
    pointers: tuple[str, ...] = ()

    def capabilities(self, metadata: TableMetadata) -> Capabilities:
        """Leaves are read at their latest, and written one by one."""
        return Capabilities(
            publishing=CommitMode.DIRECT,
            snapshots=False,
            version_rows=self.records_versions,
            evolution=False,
            maintenance=False,
            distributed_writes=False,
            declared_indices=False,
        )

    def unsupported(self, what: str) -> UnsupportedOperationError:
        """The error for something that a tree has no place for."""
        return _outdated(what, self.name)

    def load(self, snapshot: Snapshot) -> TableMetadata:
        """From the namespace's properties, or from the tree itself."""
        return _tree(snapshot).tree.metadata

    def candidates(
        self, snapshot: Snapshot, spec: PartitionSpec, where: str | None, *, whole: bool = False
    ) -> pa.Table:
        """All leaves; filters are applied to their values."""
        return _tree(snapshot).tree.leaves

    def leaves(
        self, snapshot: Snapshot, spec: PartitionSpec, rows: pa.Table, metadata: TableMetadata
    ) -> tuple[Leaf, ...]:
        """At their latest versions."""
        return tree_leaves(_tree(snapshot).tree, rows)

    def leaf_counts(self, snapshot: Snapshot, metadata: TableMetadata) -> dict[int, int]:
        """As many as were discovered; there is one spec version."""
        return {spec.id: self.candidates(snapshot, spec, None).num_rows for spec in metadata.specs}

    def is_declared(self, root: Root, leaf: Leaf) -> bool:
        """A client of the catalog may have declared a leaf and not written it yet."""
        return refs.is_declared(root, leaf.location)

    def matching(self, shape: LeafShape, metadata: TableMetadata, leaf: Leaf) -> Matching:
        """By name, with the columns that the path holds."""
        return Matching.by_name(shape.schema, metadata.schema, dict(leaf.constants))

    def refuse_past(self, snapshot: Snapshot, metadata: TableMetadata) -> None:
        """There are no snapshots."""
        raise UnsupportedOperationError(
            "a Hive-style table has no snapshots: use it without a version; lancepart.upgrade makes a table that has"
        )


@dataclass(frozen=True, slots=True)
class PlainLayout(HiveLayout):
    """A plain Lance table: one leaf at its version, without a manifest."""

    name: str = PLAIN

    def unsupported(self, what: str) -> UnsupportedOperationError:
        """The error for something that needs a manifest."""
        return UnsupportedOperationError(f"{what} needs a partitioned table, and this is a plain Lance table")

    def load(self, snapshot: Snapshot) -> TableMetadata:
        """From the table's own columns."""
        return _plain(snapshot).metadata

    def candidates(
        self, snapshot: Snapshot, spec: PartitionSpec, where: str | None, *, whole: bool = False
    ) -> pa.Table:
        """The one leaf."""
        return _plain(snapshot).candidates

    def leaves(
        self, snapshot: Snapshot, spec: PartitionSpec, rows: pa.Table, metadata: TableMetadata
    ) -> tuple[Leaf, ...]:
        """The one leaf, at the version that was opened, unless a filter leaves it out."""
        return (_plain(snapshot).leaf,) if rows.num_rows else ()

    def is_declared(self, root: Root, leaf: Leaf) -> bool:
        """Never: the table was opened."""
        return False

    def refuse_past(self, snapshot: Snapshot, metadata: TableMetadata) -> None:
        """The version was chosen when the table was opened."""


def _outdated(what: str, layout: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{what} needs the current layout, and the table has the older {layout!r}: use lancepart.upgrade first"
    )


LAYOUTS: dict[str, Layout] = {
    MANIFEST: ManifestLayout(),
    DRAFT: DraftLayout(),
    HIVE: HiveLayout(),
    PLAIN: PlainLayout(),
}


def layout_of(snapshot: Snapshot) -> Layout:
    """The layout of a table at a snapshot."""
    if isinstance(snapshot, TreeSnapshot):
        return LAYOUTS[HIVE]
    if isinstance(snapshot, PlainSnapshot):
        return LAYOUTS[PLAIN]
    return LAYOUTS[DRAFT if is_draft(snapshot.properties) else MANIFEST]


def layout_for(metadata: TableMetadata) -> Layout:
    """The layout of a table with that definition."""
    return LAYOUTS[metadata.layout]


def capabilities(metadata: TableMetadata) -> Capabilities:
    """What a table with that definition can do."""
    return layout_for(metadata).capabilities(metadata)


def candidates(snapshot: Snapshot, spec: PartitionSpec, where: str | None, *, whole: bool = False) -> pa.Table:
    """Rows of leaves, whichever layout the table has; ``whole`` ones if a commit will need them."""
    return layout_of(snapshot).candidates(snapshot, spec, where, whole=whole)


def as_leaves(snapshot: Snapshot, spec: PartitionSpec, rows: pa.Table, metadata: TableMetadata) -> tuple[Leaf, ...]:
    """Rows of leaves as values, whichever layout the table has."""
    return layout_for(metadata).leaves(snapshot, spec, rows, metadata)


def match(shape: LeafShape, metadata: TableMetadata, leaf: Leaf) -> Matching:
    """Which of a leaf's columns correspond to which of the table's, whichever layout the table has."""
    return layout_for(metadata).matching(shape, metadata, leaf)


def refuse_past(snapshot: Snapshot) -> None:
    """Refuse time travel in any layout if the rows read would not be those of the snapshot."""
    layout = layout_of(snapshot)
    layout.refuse_past(snapshot, layout.load(snapshot))


def _plain(snapshot: Snapshot) -> PlainSnapshot:
    assert isinstance(snapshot, PlainSnapshot)
    return snapshot


def _tree(snapshot: Snapshot) -> TreeSnapshot:
    assert isinstance(snapshot, TreeSnapshot)
    return snapshot
