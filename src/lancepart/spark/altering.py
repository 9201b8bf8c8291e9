"""ALTER TABLE: all column changes in one commit, then the properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.layout import create, evolution
from lancepart.layout.layouts import capabilities
from lancepart.layout.metadata import TableMetadata
from lancepart.layout.opening import find, moved
from lancepart.layout.table_manifest import catalog_of, load
from lancepart.model.schema import TEXT_LENGTH
from lancepart.queries.warehouse import Entry, Path, Warehouse
from lancepart.spark import plain_altering
from lancepart.spark.new_columns import new_columns
from lancepart.spark.new_tables import sized
from lancepart.spark.options import ORDER_BY, check_order, check_properties, order_columns
from lancepart.spark.types import VECTOR, read_type
from lancepart.storage.root import Root

AlterStep = Mapping[str, Any]


def alter(warehouse: Warehouse, path: Path, changes: Sequence[AlterStep]) -> None:
    """Change a table's columns and properties; what can't be done is refused before anything is."""
    entry = warehouse.find(path)
    for each in changes:
        _refuse(each)
    if not entry.partitioned:
        plain_altering.alter(warehouse, path, changes, partial(_changed, {}))
        return
    properties = {each["key"]: each.get("value") for each in changes if each["change"] == "property"}
    check_properties({key: value for key, value in properties.items() if value is not None})
    _check_columns(warehouse, entry, properties)
    columns = [each for each in changes if each["change"] != "property"]
    if columns:
        order = {**entry.properties, **properties}.get(ORDER_BY)
        evolved(
            warehouse,
            entry,
            lambda old: _ordered(old, reduce(partial(_changed, entry.properties), columns, old), order),
        )
    if properties:
        warehouse.alter_properties(path, properties)


def alter_at(root: Root, changes: Sequence[AlterStep]) -> None:
    """Change the columns of a table that is known by its path, in one commit; it has no properties to change."""
    for each in changes:
        _refuse(each)
    if any(each["change"] == "property" for each in changes):
        raise UnsupportedOperationError(
            "a table that is known by its path has no properties: a catalog keeps those of its tables"
        )
    _changed_at(root, lambda old: reduce(partial(_changed, {}), changes, old))


def _ordered(old: TableMetadata, new: TableMetadata, order: str | None) -> TableMetadata:
    """The new definition, unless it lacks a column that the table's rows are sorted by: every write would fail."""
    gone = set(old.schema.names) - set(new.schema.names)
    if named := sorted(gone.intersection(name for name in order_columns(order or "") if name is not None)):
        raise UnsupportedOperationError(
            f"rows of the table are sorted by {named[0]!r}: change or unset the property {ORDER_BY!r} first"
        )
    return new


def _check_columns(warehouse: Warehouse, entry: Entry, properties: Mapping[str, str | None]) -> None:
    """Refuse properties that the table's columns do not allow."""
    if not any(key == ORDER_BY or key.endswith(f".{VECTOR}") for key in properties):
        return
    schema = load(find(moved(warehouse.catalog.root, entry.location))).schema
    check_order(properties, schema.names)
    for name in schema.names:
        if properties.get(f"{name}.{VECTOR}") is not None:
            raise UnsupportedOperationError(
                f"property '{name}.{VECTOR}': the length of vectors is fixed when a column is made, so set it before "
                "ADD COLUMN"
            )


def evolved(warehouse: Warehouse, entry: Entry, step: Callable[[TableMetadata], TableMetadata]) -> TableMetadata:
    """Change the definition of a table of the current layout, in one commit."""
    return _changed_at(moved(warehouse.catalog.root, entry.location), step)


def _changed_at(root: Root, step: Callable[[TableMetadata], TableMetadata]) -> TableMetadata:
    manifest = find(root)
    if not capabilities(load(manifest)).evolution:
        raise UnsupportedOperationError("the table has an older layout: use lancepart.upgrade first")
    return create.change(catalog_of(manifest), step)


def _refuse(change: AlterStep) -> None:
    kind = change["change"]
    if kind == "unknown":
        raise UnsupportedOperationError(f"ALTER TABLE: {change['text']} is not supported")
    if kind != "property" and len(change["column"]) != 1:
        raise UnsupportedOperationError(
            f"ALTER TABLE: {'.'.join(change['column'])} is a nested field: only top-level columns can be altered"
        )
    if kind == "property" and change["key"] in ("transactions", "provider", "location"):
        raise UnsupportedOperationError(f"the property {change['key']!r} is fixed when a table is made")
    if kind == "add" and change["positioned"]:
        raise UnsupportedOperationError("new columns are added last: FIRST and AFTER are not supported")


def _changed(properties: Mapping[str, str], metadata: TableMetadata, change: AlterStep) -> TableMetadata:
    name = change["column"][0]
    match change["change"]:
        case "add":
            fresh = evolution.add_column(metadata, _new_field(name, change, properties.get(f"{name}.{VECTOR}")))
            return evolution.comment_column(fresh, name, change["comment"])
        case "comment":
            return evolution.comment_column(metadata, name, change["comment"])
        case "rename":
            return evolution.rename_column(metadata, name, change["to"])
        case "drop":
            return evolution.drop_column(metadata, name)
        case _:
            wanted = new_columns(StructType([StructField(name, read_type(change["type"]))])).field(0)
            return _retyped(metadata, name, wanted)


def _new_field(name: str, change: AlterStep, size: str | None) -> pa.Field:
    """A column that is added; of vectors a property of the table may say how long they are."""
    given = sized(StructField(name, read_type(change["type"]), change["nullable"]), size)
    made = new_columns(StructType([given])).field(0)
    if size is not None and not pa.types.is_fixed_size_list(made.type):
        raise InvalidInputError(f"property '{name}.{VECTOR}': column {name!r} is no ARRAY")
    return made


def _retyped(metadata: TableMetadata, name: str, wanted: pa.Field) -> TableMetadata:
    """The definition with a wider type for a column, and another length of its texts or none."""
    length = (wanted.metadata or {}).get(TEXT_LENGTH.encode(), b"").decode()
    return evolution.annotate_column(evolution.widen_column(metadata, name, wanted.type), name, TEXT_LENGTH, length)
