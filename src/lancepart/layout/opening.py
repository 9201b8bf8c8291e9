"""Detecting the layout of the table at a root, and creating tables of the layouts that can be created."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lancepart.catalog.properties import own_root
from lancepart.errors import (
    InvalidInputError,
    InvalidTableStateError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from lancepart.layout import create, hive
from lancepart.layout.hive import HiveColumn
from lancepart.layout.hive_tree import TreeManifest, is_bare_tree, namespace_properties
from lancepart.layout.metadata import HIVE, MANIFEST, STRONG, WEAK, as_stored, is_partitioned
from lancepart.layout.table_manifest import TableManifest
from lancepart.model.ids import check_path, object_id
from lancepart.model.partition_by import named_column, parse_partition_by, spread
from lancepart.model.schema import assign_field_ids, check_column_names, refuse_empty_names
from lancepart.model.spec import PartitionField
from lancepart.model.sql_text import arguments, closing, tokens
from lancepart.model.suggest import near
from lancepart.storage.manifest import Manifest
from lancepart.storage.manifest_rows import NAMESPACE, TABLE
from lancepart.storage.root import Root
from lancepart.storage.root_contents import advice, refuse_file, refuse_plain
from lancepart.storage.snapshot import Snapshot


def find(root: Root, namespace: Sequence[str] = ()) -> TableManifest:
    """The manifest of the table at a root, or at a namespace of a larger catalog; as a tree if it is Hive-style."""
    if isinstance(namespace, str):
        raise InvalidInputError(f"namespace is {namespace!r}: give a list of names")
    path = check_path(namespace, what="namespace", root_allowed=True)
    refuse_file(root)
    manifest = Manifest(root)
    snapshot = manifest.snapshot()
    if snapshot.handle is None:
        if is_bare_tree(root, path):
            return TreeManifest(root, path)
        manifest.refuse_remains()
        refuse_plain(root)
        raise TableNotFoundError(f"there is no partitioned table at {root.uri!r}{advice(root)}")
    _require_namespace(root, snapshot, path)
    properties = namespace_properties(snapshot, path)
    location = own_root(properties) if path else None
    if location is not None:
        return find(moved(root, location))
    if not path and is_partitioned(properties):
        return manifest
    if hive.is_hive(properties):
        return TreeManifest(root, path)
    if not path and is_warehouse(snapshot):
        raise TableNotFoundError(
            f"{root.uri!r} is a warehouse and not a table: lancepart.connect({root.uri!r}) has its tables"
        )
    where = f"namespace {object_id(path)!r} of {root.uri!r}" if path else repr(root.uri)
    raise TableNotFoundError(f"there is no partitioned table at {where}: make one with lancepart.create_table")


def is_warehouse(snapshot: Snapshot) -> bool:
    """Whether a catalog's root has namespaces or tables."""
    return any(snapshot.names(object_id(()), kind) for kind in (NAMESPACE, TABLE))


def refuse_table(root: Root, snapshot: Snapshot) -> None:
    """Refuse the root of a table where a warehouse is expected; what is in it are its leaves."""
    if is_partitioned(snapshot.properties) or hive.is_hive(namespace_properties(snapshot, ())):
        raise InvalidInputError(f"{root.uri!r} is a table and not a warehouse: open it with lancepart.open_table")


def is_unmoved_tree(snapshot: Snapshot, path: Sequence[str]) -> bool:
    """Whether a namespace of a larger catalog is a table itself, which has no root of its own before an upgrade."""
    return hive.is_hive(namespace_properties(snapshot, path))


def moved(root: Root, location: str) -> Root:
    """The root of its own that a table of a larger catalog has."""
    return Root(root.uri_of(location), root.storage_options)


def _require_namespace(root: Root, snapshot: Snapshot, path: Sequence[str]) -> None:
    if not path:
        return
    row = snapshot.row(object_id(path))
    if row is None:
        known = near(path[-1], snapshot.names(object_id(path[:-1]), NAMESPACE))
        raise NamespaceNotFoundError(f"namespace {object_id(path)!r} does not exist in {root.uri!r}{known}")
    if row.object_type != NAMESPACE:
        raise InvalidTableStateError(f"{object_id(path)!r} of {root.uri!r} is a {row.object_type}, not a namespace")


def create_table(
    root: Root, schema: pa.Schema, partition_by: Sequence[str | PartitionField], *, transactions: str, layout: str
) -> TableManifest:
    """Make an empty table of a layout that can be made."""
    if layout not in (MANIFEST, HIVE):
        raise UnsupportedOperationError(f"layout {layout!r} is not supported: use {MANIFEST!r} or {HIVE!r}")
    if transactions not in (STRONG, WEAK):
        raise InvalidInputError(f"transactions is {transactions!r}: use {STRONG!r} or {WEAK!r}")
    if layout == HIVE:
        return create_hive(root, schema, partition_by)
    manifest = Manifest(root)
    create.create(manifest, schema, partition_by, transactions=transactions)
    return manifest


def refuse_in_warehouse(layout: str, table: str) -> None:
    """Refuse to make a table of another layout than the current one in a warehouse."""
    if layout != MANIFEST:
        raise InvalidInputError(f"{table}: tables of a warehouse have the layout {MANIFEST!r}")


def create_hive(root: Root, schema: pa.Schema, partition_by: Sequence[str | PartitionField]) -> TreeManifest:
    """Make an empty Hive-style table; it exists from the one commit on that writes its properties."""
    if not isinstance(schema, pa.Schema):
        raise InvalidInputError(f"schema is a {type(schema).__name__}, not a pyarrow.Schema")
    check_column_names(schema)
    refuse_empty_names(schema)
    create.check_partition_by(partition_by)
    numbered = assign_field_ids(pa.schema([as_stored(field) for field in schema], metadata=schema.metadata))
    columns = hive_levels(partition_by, numbered)
    hive.check(numbered, columns)
    manifest = TreeManifest(root)
    taken = Manifest(root)
    create.refuse_taken(taken)
    if not taken.claim_properties(hive.to_properties(numbered, columns)):
        raise TableAlreadyExistsError(f"there is a partitioned table at {root.uri!r} already: open it")
    return manifest


def hive_levels(partition_by: Sequence[str | PartitionField], schema: pa.Schema) -> list[HiveColumn]:
    """The levels of a tree; those that spans of time have in common appear once."""
    levels: list[HiveColumn] = []
    spans: set[HiveColumn] = set()
    for item in partition_by:
        parts = [item] if isinstance(item, PartitionField) else spread(item, schema)
        for level in [_level(part, schema) for part in parts]:
            if level in levels and (parts != [item] or level in spans):
                continue
            levels.append(level)
            spans |= {level} if parts != [item] else set()
    return levels


def _level(item: str | PartitionField, schema: pa.Schema) -> HiveColumn:
    """One item of ``partition_by``: what all layouts know, ``hash(x)``, and the hour of a time."""
    if isinstance(item, str) and item not in schema.names:
        found = tokens(item)
        called = len(found) >= 4 and found[1].text == "(" and closing(found, 1) == len(found) - 1
        if called and found[0].name in ("hash", "hour"):
            spans = list(arguments(found, 1, len(found) - 1))
            if len(spans) != 1:
                raise InvalidInputError(f"partition_by: {found[0].name} takes exactly one column")
            return HiveColumn(name=named_column(item[slice(*spans[0])], schema), function=str(found[0].name))
    (field,) = parse_partition_by([item], schema)
    column = hive.column_of(field, schema)
    if (
        not isinstance(item, PartitionField)
        and " as " in item.lower()
        and field.field_id != hive.field_name(column.key)
    ):
        raise InvalidInputError(f"partition_by: {item!r}: the Hive-style layout calls it {column.key!r} itself")
    return column
