"""How a leaf's columns stand for the table's: by field id, never by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.layout.metadata import map_children, without_ids
from lancepart.model.schema import FIELD_ID, field_id

LEAF_ID = "lancepart:field_id"


def leaf_schema(schema: Any) -> Any:
    """The schema to give a new leaf: each field carries its id under a key that Lance keeps."""
    taken: set[str] = set()
    fields = []
    for field in schema:
        name = physical_name(field.name, field_id(field) or 0, taken)
        taken.add(name)
        fields.append(_for_leaf(field).with_name(name))
    return pa.schema(fields)


def _for_leaf(field: Any) -> Any:
    kept = {key: value for key, value in (field.metadata or {}).items() if key != FIELD_ID.encode()}
    number = field_id(field)
    if number is not None:
        kept[LEAF_ID.encode()] = str(number).encode()
    return pa.field(field.name, map_children(field.type, _for_leaf), field.nullable, kept or None)


def leaf_field_id(field: Any) -> int | None:
    """The id that a leaf's field carries, if lancepart wrote it."""
    text = (field.metadata or {}).get(LEAF_ID.encode())
    return int(text) if text is not None and text.isdigit() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Which of a leaf's columns stand for which of the table's, by the table's field ids."""

    names: dict[int, str]
    types: dict[int, Any]

    @classmethod
    def of(cls, leaf: Any, native_ids: Iterable[int]) -> Matching:
        """Match a leaf's columns; one that another writer made is known by Lance's own field ids."""
        names, types = {}, {}
        carried = [leaf_field_id(field) for field in leaf]
        chosen = carried if any(number is not None for number in carried) else list(native_ids)
        for field, number in zip(leaf, chosen, strict=True):
            if number is not None:
                names[number], types[number] = field.name, field.type
        return cls(names=names, types=types)

    def missing(self, schema: Any) -> list[Any]:
        """The columns that the leaf does not have."""
        return [field for field in schema if field_id(field) not in self.names]

    def narrower(self, schema: Any) -> list[Any]:
        """The columns that the leaf has in another type, from before they were widened or nested ones were added."""
        return [
            field
            for field in schema
            if (number := field_id(field)) in self.names and bare(self.types[number]) != bare(field.type)
        ]


def bare(arrow_type: Any) -> Any:
    """A type without any metadata of nested fields, for comparing."""
    return map_children(arrow_type, lambda field: pa.field(field.name, bare(field.type), field.nullable))


def to_table_columns(batch: Any, schema: Any, matching: Matching) -> Any:
    """A leaf's batch as the table shows it: renamed, widened, and NULL for columns that the leaf does not have."""
    arrays = []
    for field in schema:
        number = field_id(field)
        name = matching.names.get(number) if number is not None else None
        target = without_ids(field)
        if name is None:
            arrays.append(pa.nulls(batch.num_rows, target.type))
            continue
        array = batch.column(batch.schema.get_field_index(name))
        arrays.append(array if array.type == target.type else pc.cast(array, target.type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([without_ids(field) for field in schema]))


def physical_name(wanted: str, number: int, taken: set[str]) -> str:
    """What to call a column in a leaf: its name, unless Lance can't have it there or another column still does.

    >>> physical_name("a.b", 3, set()), physical_name("a", 3, {"a"})
    ('a%2Eb', 'a__3')
    """
    name = wanted.replace(".", "%2E").replace("`", "%60")
    while name in taken:
        name = f"{name}__{number}"
    return name


def to_leaf_columns(rows: Any, schema: Any, leaf: Any, matching: Matching) -> Any:
    """Rows of the table as an existing leaf stores them; columns removed from the table are NULL."""
    by_name = {name: number for number, name in matching.names.items()}
    positions = {field_id(field): index for index, field in enumerate(schema)}
    arrays = []
    for field in leaf:
        index = positions.get(by_name.get(field.name))
        arrays.append(pa.nulls(rows.num_rows, field.type) if index is None else rows.column(index).cast(field.type))
    return pa.table(arrays, schema=leaf)
