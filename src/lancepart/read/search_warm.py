"""What searches need, brought into memory before the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lancepart.layout.declared_indices import TEXT_KIND, declared
from lancepart.model.schema import field_id
from lancepart.model.values import logical_type
from lancepart.read.scan import Scan
from lancepart.read.search import RANKING, Search
from lancepart.read.search_request import is_text_type, is_vector_type
from lancepart.storage.cache import cache


def warm(scan: Scan, columns: Sequence[str] | None = None) -> int:
    """Search each column once; the bytes that are held then."""
    schema = scan.metadata.plain_schema
    if RANKING & set(scan.schema.names):
        scan = replace(scan, columns=tuple(name for name in scan.schema.names if name not in RANKING))
    for name in _declared_columns(scan) if columns is None else columns:
        kind = schema.field(name).type if name in schema.names else None
        if kind is None or is_vector_type(kind):
            width = 1 if kind is None else logical_type(kind).list_size
            Search.of(scan, np.ones(width, dtype=np.float32), name, options={"k": 1}).to_arrow()
        elif is_text_type(kind):
            Search.of(scan, "a", name, options={"k": 1}).to_arrow()
    return cache.held_bytes


def _declared_columns(scan: Scan) -> list[str]:
    """The columns with an index that a search uses, and vectors, which are searched without one too."""
    numbers = {index.column for index in declared(scan.snapshot) if index.is_vector or index.kind == TEXT_KIND}
    return [
        field.name
        for field, plain in zip(scan.metadata.schema, scan.metadata.plain_schema, strict=True)
        if field_id(field) in numbers or is_vector_type(plain.type)
    ]
