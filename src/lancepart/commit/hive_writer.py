"""Creating, filling and registering the leaves of a Hive-style table."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lancepart.errors import InvalidTableStateError
from lancepart.format.rows import namespace_row, table_row
from lancepart.layout import hive
from lancepart.layout.columns import converted, leaf_schema, to_leaf_columns
from lancepart.layout.hive_tree import TreeManifest, TreeSnapshot, tree_leaves
from lancepart.layout.leaves import Leaf
from lancepart.layout.matching import Matching
from lancepart.layout.metadata import TableMetadata, without_ids
from lancepart.model import hive_path
from lancepart.model.ids import object_id
from lancepart.storage import leaf_data, leaf_handle, refs
from lancepart.storage.dataset import create_dataset
from lancepart.storage.manifest import RETRY_SECONDS
from lancepart.storage.manifest_rows import Change, Row
from lancepart.storage.snapshot import Snapshot
from lancepart.storage.translate import ExistsError, MissingError
from lancepart.write.route import PartitionRows

_LONGEST_NAME = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A leaf that a write created and that is not in the catalog yet."""

    path: tuple[str, ...]
    location: str


@dataclass
class HiveLeaves:
    """The leaves that exist for partition values, and how to make others."""

    manifest: TreeManifest
    snapshot: TreeSnapshot
    metadata: TableMetadata
    changed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        tree = self.snapshot.tree
        self._known: dict[tuple[str, ...], Leaf] = {leaf.key: leaf for leaf in tree_leaves(tree, tree.leaves)}

    def add(self, part: PartitionRows) -> Made | None:
        """Add rows to their leaf, which is made if need be."""
        leaf = self._known.get(part.key)
        if leaf is not None and not self._is_declared(leaf):
            self._append(leaf.object_id, leaf.location, part)
            return None
        made = self._made(part) if leaf is None else Made(path=(leaf.object_id,), location=leaf.location)
        self._create(made, part, lambda: self._append(object_id(made.path), made.location, part))
        return made

    def replace(self, part: PartitionRows) -> Made | None:
        """Put rows in the place of all that their leaf holds, in one commit."""
        leaf = self._known.get(part.key)
        if leaf is not None and not self._is_declared(leaf):
            self._rewrite(leaf.object_id, leaf.location, part)
            return None
        made = self._made(part) if leaf is None else Made(path=(leaf.object_id,), location=leaf.location)
        self._create(made, part, lambda: self._rewrite(object_id(made.path), made.location, part))
        return made

    def _is_declared(self, leaf: Leaf) -> bool:
        try:
            leaf_handle.open_leaf(self.manifest.root, leaf.location, None)
        except MissingError:
            return refs.is_declared(self.manifest.root, leaf.location)
        return False

    def _create(self, made: Made, part: PartitionRows, otherwise: Callable[[], None]) -> None:
        """Make a leaf, or do something else with the one that another writer made, or is just making."""
        deadline = time.monotonic() + RETRY_SECONDS
        while True:
            try:
                create_dataset(self.manifest.root, made.location, self._stored(part.rows))
                self.changed.append(object_id(made.path))
                return
            except ExistsError:
                pass
            try:
                otherwise()
                return
            except MissingError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(random.uniform(0, 0.05))

    def _rewrite(self, identifier: str, location: str, part: PartitionRows) -> None:
        leaf_data.rewrite(self.manifest.root, location, self._stored(part.rows).to_reader(), base=None)
        self.changed.append(identifier)

    def _append(self, identifier: str, location: str, part: PartitionRows) -> None:
        root = self.manifest.root
        shape = leaf_handle.shape_of(leaf_handle.open_leaf(root, location, None))
        in_path = dict.fromkeys(hive.path_ids(self.metadata))
        matching = Matching.by_name(shape.schema, self.metadata.schema, in_path)
        lacking = matching.missing(hive.stored_schema(self.metadata))
        if lacking:
            raise InvalidTableStateError(f"leaf {identifier!r} has no column {lacking[0].name!r}, which the table has")
        fitted = to_leaf_columns(part.rows, self.metadata.schema, shape.schema, matching)
        staged = leaf_data.stage(root, location, fitted, base="latest")
        leaf_data.append(root, location, staged.items, base=None)
        self.changed.append(identifier)

    def _stored(self, rows: pa.Table) -> pa.Table:
        """Rows as a new leaf holds them: the table's schema without what the path holds."""
        stored = hive.stored_schema(self.metadata)
        names = leaf_schema(stored).names
        schema = pa.schema([without_ids(item).with_name(name) for item, name in zip(stored, names, strict=True)])
        kept = [rows.column(self.metadata.schema.get_field_index(item.name)) for item in stored]
        return pa.table(
            [converted(column, item.type) for column, item in zip(kept, schema, strict=True)], schema=schema
        )

    def _made(self, part: PartitionRows) -> Made:
        names = []
        for key, item, value in zip(self.snapshot.tree.keys, self.metadata.spec.fields, part.values, strict=True):
            (text,) = hive_path.texts(pa.repeat(value, 1), hive.function_of(item))
            names.append(hive_path.segment(key, text))
        path = (*self.manifest.namespace, *names)
        return Made(path=path, location=leaf_location(path))

    def register(self, parts: Sequence[PartitionRows], outcomes: Sequence[Made | None]) -> None:
        """Enter new leaves and the namespaces above them into the catalog, all in one commit."""
        fresh = {object_id(made.path): (made, part) for made, part in zip(outcomes, parts, strict=True) if made}
        if not fresh:
            return
        wanted = _namespaces([made for made, _ in fresh.values()], len(self.manifest.namespace))

        def plan(snapshot: Snapshot, retry: bool) -> tuple[Change, Mapping[str, Row]]:
            present = snapshot.rows([*wanted, *fresh])
            missing = [key for key in wanted if key not in present]
            inserts = [namespace_row(key) for key in missing]
            inserts += [table_row(key, made.location) for key, (made, _) in fresh.items() if key not in present]
            above = {row.object_id.rpartition("$")[0] for row in inserts} & set(present)
            return Change(inserts=tuple(inserts), touches=tuple(sorted(above))), present

        present = self.manifest.catalog.transact(plan)
        for key, (made, part) in fresh.items():
            row = present.get(key)
            location = made.location if row is None else str(row.location)
            if location != made.location:
                self._append(key, location, part)
            self._known[part.key] = Leaf(
                object_id=key, spec_id=1, location=location, key=part.key, values=(), constants=()
            )


def _namespaces(made: Sequence[Made], above: int) -> list[str]:
    found = {object_id(item.path[:depth]) for item in made for depth in range(above + 1, len(item.path))}
    return sorted(found)


def leaf_location(path: Sequence[str]) -> str:
    """A leaf's directory: the tree that its names make, unless a name is longer than a directory's may be."""
    plain = "/".join(path) + hive_path.SUFFIX
    if all(len(name.encode()) <= _LONGEST_NAME for name in path):
        return plain
    return f"{hashlib.sha256(plain.encode()).hexdigest()[:32]}{hive_path.SUFFIX}"
