"""The rows of ``__manifest``, and a change to them that is published as one commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from lancepart.errors import InvalidTableStateError

NAMESPACE = "namespace"
TABLE = "table"
TABLE_VERSION = "table_version"

PRIMARY_KEY = "lance-schema:unenforced-primary-key"
PRIMARY_KEY_POSITION = "lance-schema:unenforced-primary-key:position"
FINISHED_LATER = frozenset({"manifest_path", "manifest_size", "e_tag"})
CREATED_AT = pa.field("created_at", pa.timestamp("us", "UTC"))

SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False, metadata={PRIMARY_KEY_POSITION: "0"}),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
        CREATED_AT,
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One object of the catalog; ``columns`` holds what stands in columns beyond the catalog's own."""

    object_id: str
    object_type: str
    location: str | None = None
    metadata: Mapping[str, Any] | None = None
    base_objects: tuple[str, ...] | None = None
    created_at: datetime | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Row:
        """Make a row of what a scan gave."""
        own: dict[str, Any] = {name: values.get(name) for name in SCHEMA.names}
        bases = own["base_objects"]
        return cls(
            object_id=own["object_id"],
            object_type=own["object_type"],
            location=own["location"],
            metadata=parse_metadata(own["object_id"], own["metadata"]),
            base_objects=None if bases is None else tuple(bases),
            created_at=own["created_at"],
            columns={name: value for name, value in values.items() if name not in own},
        )

    def value(self, column: str) -> Any:
        """What goes into a column of the manifest."""
        if column == "metadata":
            return None if self.metadata is None else dump_metadata(self.metadata)
        if column == "base_objects":
            return None if self.base_objects is None else list(self.base_objects)
        if column in SCHEMA.names:
            return getattr(self, column)
        return self.columns.get(column)

    def is_same(self, other: Row | None) -> bool:
        """Whether another row was made by the same insert, also if its table moved on or its version was finished."""
        return other is not None and other.created_at is not None and self._birth() == other._birth()

    def _birth(self) -> tuple[Any, ...]:
        given = {} if self.object_type == TABLE else self.metadata or {}
        lasting = {key: value for key, value in given.items() if key not in FINISHED_LATER}
        return self.object_type, self.location, self.created_at, lasting


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """New values for some columns of a row that exists; all others keep theirs, unknown ones too."""

    object_id: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one commit does to the manifest: all of it, or nothing.

    ``touches`` names rows that are written again unchanged, so that whoever drops or changes one of them at the
    same time loses, or this commit does.
    """

    inserts: tuple[Row, ...] = ()
    updates: tuple[Update, ...] = ()
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


def _array(values: list[Any], wanted: Any) -> Any:
    """Values of a column, some of which may be Arrow scalars of a narrower type."""
    return pa.array(
        [value.cast(wanted) if isinstance(value, pa.Scalar) and value.type != wanted else value for value in values],
        wanted,
    )


def parse_metadata(object_id: str, text: str | None) -> dict[str, Any] | None:
    """Read a metadata column.

    >>> parse_metadata("ns", '{"owner": "data"}')
    {'owner': 'data'}
    """
    if text is None or not text.strip():
        return None
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InvalidTableStateError(f"the metadata of {object_id!r} in __manifest is not a JSON object: {text[:80]!r}")
    return value


def dump_metadata(value: Mapping[str, Any]) -> str:
    """Spell a metadata column, the same for the same content."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def now() -> datetime:
    """The time to record in ``created_at``."""
    return datetime.now(UTC)
