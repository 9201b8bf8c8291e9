"""A change to the rows of ``__manifest`` that is published as one commit."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lancepart.format.names import METADATA, NAMESPACE, TABLE, TABLE_VERSION
from lancepart.format.rows import (
    CREATED_AT,
    PRIMARY_KEY,
    PRIMARY_KEY_POSITION,
    SCHEMA,
    Row,
    dump_metadata,
    now,
    parse_metadata,
)
from lancepart.model.aliases import JsonMapping, Value

__all__ = [
    "CREATED_AT",
    "NAMESPACE",
    "PRIMARY_KEY",
    "PRIMARY_KEY_POSITION",
    "SCHEMA",
    "TABLE",
    "TABLE_VERSION",
    "Change",
    "Row",
    "RowUpdate",
    "dump_metadata",
    "metadata_update",
    "now",
    "parse_metadata",
    "source_table",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowUpdate:
    """New values for some columns of a row that exists; all others keep theirs, unknown ones too."""

    object_id: str
    values: JsonMapping


def metadata_update(object_id: str, metadata: JsonMapping) -> RowUpdate:
    """The update that gives a row other metadata."""
    return RowUpdate(object_id=object_id, values={METADATA: dump_metadata(metadata)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The changes of one commit to the manifest: all of them, or none.

    ``touches`` names rows that are rewritten unchanged, so that of this commit and one that drops or changes such a row
    only one succeeds.
    """

    inserts: tuple[Row, ...] = ()
    updates: tuple[RowUpdate, ...] = ()
    deletes: tuple[str, ...] = ()
    touches: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to publish."""
        return not (self.inserts or self.updates or self.deletes or self.touches)

    def __add__(self, other: Change) -> Change:
        return Change(
            inserts=self.inserts + other.inserts,
            updates=self.updates + other.updates,
            deletes=self.deletes + other.deletes,
            touches=self.touches + tuple(item for item in other.touches if item not in self.touches),
        )

    @property
    def existing_ids(self) -> tuple[str, ...]:
        """The rows that must exist for the change to make sense, apart from those that it deletes."""
        updated = tuple(update.object_id for update in self.updates)
        gone = {*updated, *self.deletes}
        return updated + tuple(item for item in dict.fromkeys(self.touches) if item not in gone)


def source_table(change: Change, schema: pa.Schema, existing: pa.Table) -> pa.Table:
    """The full rows to merge: inserted ones, and existing ones with their updates.

    ``existing`` holds the rows named by ``change.existing_ids``, in that order.
    """
    updates = {update.object_id: update.values for update in change.updates}
    ids = change.existing_ids
    columns = []
    for target in schema:
        inserted = _array([row.value(target.name) for row in change.inserts], target.type)
        kept = existing.column(target.name).combine_chunks() if ids else pa.array([], target.type)
        if any(target.name in values for values in updates.values()):
            old = kept.to_pylist()
            new = [updates.get(key, {}).get(target.name, value) for key, value in zip(ids, old, strict=True)]
            kept = pa.array(new, target.type)
        columns.append(pa.concat_arrays([inserted, kept.cast(target.type)]))
    return pa.table(columns, schema=schema)


def _array(values: list[Value], wanted: pa.DataType) -> pa.Array:
    """Values of a column, some of which may be Arrow scalars of a narrower type."""
    return pa.array(
        [value.cast(wanted) if isinstance(value, pa.Scalar) and value.type != wanted else value for value in values],
        wanted,
    )
