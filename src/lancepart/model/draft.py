"""Specs of the expression draft: bare arrays of expressions, the well-known ones of which are transforms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.model.schema import dumps
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.sql_text import tokens
from lancepart.model.transforms import (
    Bucket,
    Day,
    Hour,
    Identity,
    Month,
    Transform,
    Truncate,
    Year,
    is_numeric_truncate,
)
from lancepart.model.type_names import kind_of
from lancepart.model.values import logical_type

_PARTS: dict[str, Transform] = {"year": Year(), "month": Month(), "day": Day(), "hour": Hour()}
_MOST = 2**31 - 1
_NOTHING = "NULL"


def is_array(text: str) -> bool:
    """Whether a property holds a spec of the draft."""
    return text.lstrip().startswith("[")


def spec_from_array(number: int, text: str) -> PartitionSpec:
    """Read a spec of the draft; its number is in the property's name.

    >>> spec_from_array(1, '[{"field_id":"d","source_ids":[1],"expression":"col0","result_type":{"type":"date32"}}]').id
    1
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"a partition spec is not valid JSON: {error}") from error
    for item in given:
        if not isinstance(item, dict) or not isinstance(item.get("expression"), str) or item.get("transform"):
            raise InvalidInputError(f"a partition field of the draft is an object with an expression, not {item!r}")
    return PartitionSpec(id=number, fields=tuple(PartitionField.from_json(item) for item in given))


def spec_to_array(spec: PartitionSpec) -> str:
    """Spell a spec of the draft."""
    return "[" + ",".join(dumps(field.to_json()) for field in spec.fields) + "]"


def recognised(field: PartitionField, source_types: Sequence[pa.DataType]) -> PartitionField:
    """The field with a transform, if its expression is a well-known one over these columns (None where removed)."""
    if field.expression is None:
        return field
    if all(kind is None for kind in source_types):
        return replace(field, expression=_NOTHING)
    found = transform_of(field.expression, source_types[0]) if len(source_types) == 1 else None
    if found is None or kind_of(found.result_type(source_types)) != kind_of(field.result_type):
        return field
    return replace(field, expression=None, transform=found)


def transform_of(expression: str, kind: pa.DataType) -> Transform | None:
    """The transform that gives the same as an expression for every value of a type.

    >>> import pyarrow as pa
    >>> transform_of("date_part('year', col0)", pa.date32()), transform_of("left(col0, 3)", pa.string())
    (Year(), Truncate(width=3))
    """
    plain = logical_type(kind)
    match [token.text if token.kind == "string" else token.text.lower() for token in tokens(expression)]:
        case ["col0"]:
            found: Transform = Identity()
        case ["date_part" | "datepart", "(", part, ",", "col0", ")"] if part.strip("'").lower() in _PARTS:
            found = _PARTS[part.strip("'").lower()]
        case ["extract", "(", part, "from", "col0", ")"] if part.strip("'") in _PARTS:
            found = _PARTS[part.strip("'")]
        case ["left", "(", "col0", ",", width, ")"] | ["substr", "(", "col0", ",", "1", ",", width, ")"]:
            if not _counts(width) or kind_of(plain) != "text":
                return None
            found = Truncate(int(width))
        case ["col0", "-", "(", "col0", "%", width, ")"] | ["col0", "-", "col0", "%", width]:
            if not _counts(width) or not is_numeric_truncate(plain):
                return None
            found = Truncate(int(width))
        case ["abs", "(", "murmur3", "(", "col0", ")", ")", "%", count] if _counts(count):
            found = Bucket(int(count))
        case _:
            return None
    return found if found.accepts(plain) else None


def _counts(text: str) -> bool:
    return text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST
