"""Properties of namespaces and tables: those of the caller, and those reserved for lancepart."""

from __future__ import annotations

from lancepart.errors import InvalidInputError
from lancepart.format.names import IDENTITY, MOVED_ROOT, OWN, OWN_ROOT
from lancepart.format.rows import Row, dump_metadata
from lancepart.model.aliases import JsonMapping


def own_root(properties: JsonMapping | None) -> str | None:
    """The root of the table that a namespace of a larger catalog refers to: made there, or moved by an upgrade."""
    known = properties or {}
    found = known.get(OWN_ROOT, known.get(MOVED_ROOT))
    return found if isinstance(found, str) else None


def identity(properties: JsonMapping | None) -> str | None:
    """The random id that such a table has in its own manifest too; rows from before there was one lack it."""
    found = (properties or {}).get(IDENTITY)
    return found if isinstance(found, str) and found else None


def locations(row: Row) -> tuple[str, ...]:
    """The directories that a row of the catalog names, as a table's or as a partitioned table's."""
    metadata = row.metadata or {}
    found = (row.location, metadata.get(OWN_ROOT), metadata.get(MOVED_ROOT))
    return tuple(place for place in found if isinstance(place, str) and place)


def refuse_own(properties: JsonMapping) -> JsonMapping:
    """The properties that a caller gives; names of lancepart's own are refused, since lancepart acts on them."""
    for key in properties:
        if isinstance(key, str) and key.startswith(OWN):
            raise InvalidInputError(f"property {key!r}: names that begin with {OWN!r} are lancepart's own")
    return properties


def as_properties(metadata: JsonMapping | None) -> dict[str, str]:
    """Properties are strings; what another client stored as something else is shown as JSON, our own is not shown.

    >>> as_properties({"owner": "data", "tags": ["a"]})
    {'owner': 'data', 'tags': '["a"]'}
    """
    return {
        key: value if isinstance(value, str) else dump_metadata({"": value})[4:-1]
        for key, value in (metadata or {}).items()
        if not key.startswith(OWN)
    }
