"""Rows partitioned by a country, NULL among them."""

from __future__ import annotations

import pyarrow as pa

SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string()), ("n", pa.int32())])


def rows(first: int, count: int = 6) -> pa.Table:
    """Some rows with consecutive ids."""
    ids = range(first, first + count)
    countries = [["US", "FR", None][number % 3] for number in ids]
    return pa.table([list(ids), countries, [number * 2 for number in ids]], schema=SCHEMA)
