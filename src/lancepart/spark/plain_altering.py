"""ALTER TABLE of plain Lance tables: additions together and every other change for itself are versions of theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from lancepart.errors import UnsupportedOperationError
from lancepart.layout.metadata import TableMetadata
from lancepart.layout.plain import PlainManifest
from lancepart.model.aliases import JsonMapping
from lancepart.model.schema import COMMENT
from lancepart.queries.warehouse import Path, Warehouse
from lancepart.spark import plain_tables
from lancepart.spark.new_columns import new_columns
from lancepart.spark.types import read_type
from lancepart.storage import plain_upkeep
from lancepart.storage.root import Root

Check = Callable[[TableMetadata, JsonMapping], TableMetadata]


def alter(warehouse: Warehouse, path: Path, changes: Sequence[JsonMapping], check: Check) -> None:
    """Change a plain table's columns; ``check`` refuses what can't be done, all of it before anything is."""
    if any(each["change"] == "property" for each in changes):
        raise UnsupportedOperationError("a plain Lance table has no properties that SQL could change: leave them out")
    root, location = warehouse.catalog.root, plain_tables.writable(warehouse.catalog, tuple(path))
    metadata = PlainManifest.at(root, location).snapshot().metadata
    for each in changes:
        metadata = check(metadata, each)
    added = [_new_field(each) for each in changes if each["change"] == "add"]
    if added:
        plain_upkeep.add_columns(root, location, added)
    for each in changes:
        _apply(root, location, each)


def _apply(root: Root, location: str, change: JsonMapping) -> None:
    name = change["column"][0]
    match change["change"]:
        case "drop":
            plain_upkeep.drop_columns(root, location, [name])
        case "rename":
            plain_upkeep.alter_column(root, location, name, to=change["to"])
        case "comment":
            plain_upkeep.annotate(root, location, name, {COMMENT: change["comment"] or ""})
        case "type":
            plain_upkeep.alter_column(root, location, name, kind=_wanted(change).type)


def _wanted(change: JsonMapping) -> pa.Field:
    return new_columns(StructType([StructField(change["column"][0], read_type(change["type"]))])).field(0)


def _new_field(change: JsonMapping) -> pa.Field:
    """A column that is added, with its comment."""
    found = _wanted(change)
    notes = {**(found.metadata or {}), **({COMMENT.encode(): change["comment"].encode()} if change["comment"] else {})}
    return found.with_metadata(notes or None)
