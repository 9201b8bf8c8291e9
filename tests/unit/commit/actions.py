"""What the processes of a crew do; at the top of a module, so that they find it."""

from __future__ import annotations

import pyarrow as pa

import lancepart as lp
from tests.support.catalogs import Place

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("n", pa.int32())])
KEYS = ["a", "b", None, ""]


def create(place: Place, partition_by: str, number: int) -> int:
    lp.create_table(place.root, SCHEMA, [partition_by], storage_options=place.storage_options)
    return number


def append(place: Place, start: int, number: int) -> int | None:
    """One row to each of some partitions, new ones among them."""
    table = lp.open_table(place.root, storage_options=place.storage_options)
    first = start + number * len(KEYS)
    return table.append([{"id": first + index, "k": key, "n": 5} for index, key in enumerate(KEYS)])


def widen_or_append(place: Place, number: int) -> int | None:
    """One process widens a partition source while the others write to the same partition."""
    table = lp.open_table(place.root, storage_options=place.storage_options)
    if number == 0:
        table.widen_column("n", pa.int64())
        return None
    return table.append([{"id": number, "k": "a", "n": 5}])


def evolve(place: Place, number: int) -> None:
    """Each process adds a column of its own."""
    table = lp.open_table(place.root, storage_options=place.storage_options)
    table.add_column(pa.field(f"x{number}", pa.int32()))
