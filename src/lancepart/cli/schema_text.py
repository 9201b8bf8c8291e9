"""Columns as users write them: ``id int64 not null, tags list<string>, embedding float32[768]``."""

from __future__ import annotations

import re

import pyarrow as pa

from lancepart.cli.usage import UsageError
from lancepart.errors import InvalidInputError
from lancepart.model.suggest import near
from lancepart.model.type_names import type_from_name

_SHORT = {
    "int": "int32",
    "integer": "int32",
    "long": "int64",
    "bigint": "int64",
    "smallint": "int16",
    "tinyint": "int8",
    "text": "utf8",
    "varchar": "utf8",
    "real": "float32",
    "date": "date32",
}
_NAMES = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"),
    *("double", "bool", "string", "utf8", "binary", "date32", "timestamp[us]", "time64[us]"),
)
_NOT_NULL = re.compile(r"\s+not\s+null\s*$", re.IGNORECASE)
_VECTOR = re.compile(r"(.+)\[\s*(\d+)\s*\]")
_DECIMAL = re.compile(r"(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)", re.IGNORECASE)
_MOST_DIGITS, _LONGEST = 38, 2**31 - 1
_OPEN, _CLOSE = "<([", ">)]"


def parse_columns(text: str) -> pa.Schema:
    """Read a list of columns.

    >>> parse_columns("id bigint not null, v float32[4], s struct<a int, b list<text>>").types[1:]
    [FixedSizeListType(fixed_size_list<item: float>[4]), StructType(struct<a: int32, b: list<item: string>>)]
    """
    fields = [parse_column(part) for part in _split(text) if part.strip()]
    if not fields:
        raise UsageError("the list of columns is empty: write 'id int64, country string'")
    return pa.schema(fields)


def parse_column(text: str) -> pa.Field:
    """Read one column: its name, quoted if it holds a space, and its type."""
    stripped = text.strip()
    nullable = not _NOT_NULL.search(stripped)
    stripped = _NOT_NULL.sub("", stripped)
    if stripped.startswith('"'):
        name, _, kind = stripped[1:].partition('"')
    else:
        name, _, kind = (
            stripped.replace(":", " ", 1).partition(" ") if _colon_first(stripped) else stripped.partition(" ")
        )
    if not name or not kind.strip():
        raise UsageError(f"column {text.strip()!r}: write its name and its type, such as 'id int64'")
    return pa.field(name, parse_type(kind), nullable=nullable)


def _colon_first(text: str) -> bool:
    """Whether a name is followed by a colon, as Arrow writes fields."""
    return bool(re.match(r"[^\s<(\[]+:", text))


def parse_type(text: str) -> pa.DataType:
    """Read a type, by Arrow's names or those of SQL.

    >>> parse_type("decimal(10, 2)"), parse_type("list<date>"), parse_type("timestamp[us, tz=UTC]")
    (Decimal128Type(decimal128(10, 2)), ListType(list<item: date32[day]>), TimestampType(timestamp[us, tz=UTC]))
    """
    name = text.strip()
    lower = name.lower()
    if lower.startswith("list<") and lower.endswith(">"):
        return pa.list_(parse_type(name[5:-1]))
    if lower.startswith("struct<") and lower.endswith(">"):
        return pa.struct([parse_column(part) for part in _split(name[7:-1])])
    if found := _VECTOR.fullmatch(name):
        if not 1 <= int(found[2]) <= _LONGEST:
            raise UsageError(f"type {name!r}: a vector has a length from 1 to {_LONGEST}, as in float32[768]")
        return pa.list_(parse_type(found[1]), int(found[2]))
    if found := _DECIMAL.fullmatch(name):
        return _decimal(name, int(found[1]), int(found[2] or 0))
    try:
        return type_from_name(_SHORT.get(lower, lower if "[" not in lower else name))
    except InvalidInputError as error:
        raise UsageError(f"{error}{near(lower, [*_SHORT, *_NAMES])}") from None


def _decimal(name: str, digits: int, scale: int) -> pa.DataType:
    if not (1 <= digits <= _MOST_DIGITS and abs(scale) <= _MOST_DIGITS):
        raise UsageError(f"type {name!r}: a decimal has from 1 to {_MOST_DIGITS} digits, as in decimal(10, 2)")
    return pa.decimal128(digits, scale)


def _split(text: str) -> list[str]:
    """The parts between commas that are inside no brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
