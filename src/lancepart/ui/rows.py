"""Answers with rows: some of a table, the neighbours of a vector, matches of a text, and images."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa

from lancepart.errors import InvalidInputError, TableColumnNotFoundError
from lancepart.layout.declared_indices import TEXT_KIND, declared
from lancepart.layout.layouts import capabilities
from lancepart.model.values import logical_type
from lancepart.report.values import Json, plain, safe_integers
from lancepart.table import PartitionedTable
from lancepart.ui.explorer import Explorer
from lancepart.ui.params import Params
from lancepart.ui.partitions import Answer

MOST_IMAGE_BYTES = 16 << 20
_MOST_POINTS = 256
_MOST_TEXT = 400
_SEVERAL, _SOME_ROWS = 2, 50
_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"BM": "image/bmp",
}
ROW_ID = "_rowid"


def kind_of(kind: pa.DataType) -> str:
    """How a column is shown: ``vector``, ``text``, ``bytes`` or ``value``.

    >>> kind_of(pa.list_(pa.float32(), 8)), kind_of(pa.string()), kind_of(pa.int8()), kind_of(pa.binary(16))
    ('vector', 'text', 'value', 'bytes')
    """
    plain_kind = logical_type(kind)
    if pa.types.is_fixed_size_list(plain_kind):
        return "vector"
    if pa.types.is_string(plain_kind) or pa.types.is_large_string(plain_kind):
        return "text"
    if any(test(plain_kind) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)):
        return "bytes"
    return "value"


def image_type(start: bytes) -> str | None:
    """The media type of an image by its first bytes; SVG is none of them, because it can hold scripts."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _KINDS.items() if start.startswith(magic)), None)


def rows(explorer: Explorer, params: Params) -> Answer:
    """Some rows that match a filter."""
    table = explorer.requested(params)
    found = table.scan(params.where(), limit=params.limit(20, 100), with_row_id=True).to_arrow()
    return _shown(table, found)


def search(explorer: Explorer, params: Params) -> Answer:
    """The nearest vectors or the best matches; ``like`` names a row whose neighbours are wanted."""
    table = explorer.requested(params)
    column = params.optional("column")
    query: object
    query = _vector_of(table, like, column) if (like := params.optional("like")) else query_of(params.required("q"))
    wanted = column if column is not None or not isinstance(query, str) else _text_column(table)
    k = params.number("k", 10, least=1, most=100)
    found = table.search(query, wanted, k, params.where(), with_row_id=True).to_arrow()
    return _shown(table, found)


def _text_column(table: PartitionedTable) -> str | None:
    """Where a text is looked for if no column is named: by the full-text index, or where texts are longest."""
    scan = table.scan()
    if capabilities(scan.metadata).declared_indices and any(
        index.kind == TEXT_KIND for index in declared(scan.snapshot)
    ):
        return None
    names: list[str] = [field.name for field in table.schema if kind_of(field.type) == "text"]
    if len(names) < _SEVERAL:
        return None
    some = table.head(_SOME_ROWS, columns=names)
    return max(names, key=lambda name: sum(len(each or "") for each in some.column(name).to_pylist()))


def query_of(text: str) -> str | list[float]:
    """A JSON list of numbers is a vector, everything else a text."""
    if not text.startswith("["):
        return text
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(each, int | float) for each in found):
        raise InvalidInputError("the query starts with [ and is no list of numbers: write [0.1, 0.2, …], or a text")
    return found


def _vector_of(table: PartitionedTable, like: str, column: str | None) -> object:
    if column is None:
        raise InvalidInputError("name the column of vectors whose neighbours are wanted")
    value = _cell(table, like, column)
    if value is None:
        raise InvalidInputError(f"the row has no vector in {column!r}")
    return value


def _cell(table: PartitionedTable, row: str, column: str) -> object:
    if column not in table.schema.names:
        raise TableColumnNotFoundError(f"there is no column {column!r}")
    if not (row.isascii() and row.isdigit() and len(row) < 21):
        raise InvalidInputError(f"row is {row!r}: give a row id")
    found = table.take([int(row)], columns=[column]).column(column)
    return found[0].as_py() if len(found) else None


def image(explorer: Explorer, params: Params) -> tuple[bytes, str]:
    """The bytes of an image and their media type."""
    value = _cell(explorer.requested(params), params.required("row"), params.required("column"))
    if not isinstance(value, bytes) or len(value) > MOST_IMAGE_BYTES:
        raise InvalidInputError(f"the column {params.text('column')!r} holds no image here, or one that is too large")
    media = image_type(value[:16])
    if media is None:
        raise InvalidInputError(f"the column {params.text('column')!r} holds no PNG, JPEG, GIF, BMP or WebP image here")
    return value, media


def _shown(table: PartitionedTable, found: pa.Table) -> Answer:
    kinds = {field.name: kind_of(field.type) for field in found.schema}
    shown = [
        {name: _value(value, kinds[name]) for name, value in row.items() if name != ROW_ID} | {ROW_ID: str(row[ROW_ID])}
        for row in found.to_pylist()
    ]
    columns = [
        {"name": field.name, "type": str(field.type), "kind": kinds[field.name]}
        for field in found.schema
        if field.name != ROW_ID
    ]
    return {"version": table.version, "columns": columns, "rows": shown}


def _value(value: object, kind: str) -> Json:
    """A value as the page shows it: vectors thinned out, bytes as their size and media type, long texts cut."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return {"bytes": len(value), "image": image_type(value[:16])}
    if kind == "vector" and isinstance(value, list):
        return _points(value)
    if isinstance(value, str) and len(value) > _MOST_TEXT:
        return f"{value[:_MOST_TEXT]}…"
    made = safe_integers(plain(value))
    text = json.dumps(made, ensure_ascii=False) if isinstance(made, list | Mapping) else None
    return made if text is None or len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


def _points(vector: list[float | None]) -> Json:
    step = max(1, len(vector) // _MOST_POINTS)
    points = [None if each is None else plain(float(f"{each:.4g}")) for each in vector[::step][:_MOST_POINTS]]
    return {"length": len(vector), "points": points}
