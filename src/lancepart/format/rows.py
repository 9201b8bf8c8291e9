"""One row of ``__manifest``, and how its metadata is spelled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from lancepart.errors import InvalidTableStateError
from lancepart.format.names import (
    BASE_OBJECTS,
    E_TAG,
    LOCATION,
    MANIFEST_PATH,
    MANIFEST_SIZE,
    METADATA,
    NAMESPACE,
    OBJECT_ID,
    OBJECT_TYPE,
    TABLE,
    TABLE_VERSION,
)
from lancepart.model.aliases import JsonMapping, JsonObject, Value

PRIMARY_KEY = "lance-schema:unenforced-primary-key"
PRIMARY_KEY_POSITION = "lance-schema:unenforced-primary-key:position"
FINISHED_LATER = frozenset({MANIFEST_PATH, MANIFEST_SIZE, E_TAG})
CREATED_AT = pa.field("created_at", pa.timestamp("us", "UTC"))

SCHEMA = pa.schema(
    [
        pa.field(OBJECT_ID, pa.string(), nullable=False, metadata={PRIMARY_KEY_POSITION: "0"}),
        pa.field(OBJECT_TYPE, pa.string(), nullable=False),
        pa.field(LOCATION, pa.string()),
        pa.field(METADATA, pa.string()),
        pa.field(BASE_OBJECTS, pa.list_(pa.field(OBJECT_ID, pa.string()))),
        CREATED_AT,
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One object of the catalog; ``columns`` holds the values of columns beyond the catalog's own."""

    object_id: str
    object_type: str
    location: str | None = None
    metadata: JsonMapping | None = None
    base_objects: tuple[str, ...] | None = None
    created_at: datetime | None = None
    columns: JsonMapping = field(default_factory=dict)

    @classmethod
    def read(cls, values: JsonMapping) -> Row:
        """Make a row of what a scan gave."""
        own: JsonObject = {name: values.get(name) for name in SCHEMA.names}
        bases = own[BASE_OBJECTS]
        return cls(
            object_id=own[OBJECT_ID],
            object_type=own[OBJECT_TYPE],
            location=own[LOCATION],
            metadata=parse_metadata(own[OBJECT_ID], own[METADATA]),
            base_objects=None if bases is None else tuple(bases),
            created_at=own[CREATED_AT.name],
            columns={name: value for name, value in values.items() if name not in own},
        )

    def value(self, column: str) -> Value:
        """What goes into a column of the manifest."""
        if column == METADATA:
            return None if self.metadata is None else dump_metadata(self.metadata)
        if column == BASE_OBJECTS:
            return None if self.base_objects is None else list(self.base_objects)
        if column in SCHEMA.names:
            return getattr(self, column)
        return self.columns.get(column)

    def is_same(self, other: Row | None) -> bool:
        """Whether another row was made by the same insert, also if its table moved on or its version was finished."""
        return other is not None and other.created_at is not None and self._birth() == other._birth()

    def _birth(self) -> tuple[object, ...]:
        given = {} if self.object_type == TABLE else self.metadata or {}
        lasting = {key: value for key, value in given.items() if key not in FINISHED_LATER}
        return self.object_type, self.location, self.created_at, lasting


def namespace_row(object_id: str, *, metadata: JsonMapping | None = None, columns: JsonMapping | None = None) -> Row:
    """The row of a namespace that is made now."""
    return Row(object_id=object_id, object_type=NAMESPACE, metadata=metadata, created_at=now(), columns=columns or {})


def table_row(object_id: str, location: str, properties: Mapping[str, str] | None = None) -> Row:
    """The row of a table that is entered now: where it is, and its properties if it has any."""
    metadata = dict(properties) if properties else None
    return Row(object_id=object_id, object_type=TABLE, location=location, metadata=metadata, created_at=now())


def staged_row(object_id: str, metadata: JsonMapping, created_at: datetime) -> Row:
    """The row of a table's version whose manifest is staged, in a catalog that manages versions."""
    return Row(object_id=object_id, object_type=TABLE_VERSION, metadata=metadata, created_at=created_at)


def read_rows(found: pa.Table | None) -> list[Row]:
    """The rows that a scan gave; partition values that Python has no object for stay Arrow scalars."""
    if found is None:
        return []
    columns = {name: _values(found.column(name)) for name in found.schema.names}
    return [Row.read(dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)]


def _values(column: pa.ChunkedArray) -> list[Value]:
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return [value if value.is_valid else None for value in column]


def parse_metadata(object_id: str, text: str | None) -> JsonObject | None:
    """Read a metadata column.

    >>> parse_metadata("ns", '{"owner": "data"}')
    {'owner': 'data'}
    """
    if text is None or not text.strip():
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidTableStateError(f"the metadata of {object_id!r} in __manifest is not a JSON object: {text[:80]!r}")
    return value


def dump_metadata(value: JsonMapping) -> str:
    """Spell a metadata column, the same for the same content."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def now() -> datetime:
    """The time to record in ``created_at``."""
    return datetime.now(UTC)
