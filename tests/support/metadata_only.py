"""Tables that have many partitions in their manifest and no rows on disk: enough for all that only plans."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

import lancepart as lp
from lancepart.model.ids import leaf_location, partition_name
from lancepart.storage.manifest import NAME, Manifest
from lancepart.storage.manifest_rows import NAMESPACE, TABLE, TABLE_VERSION
from lancepart.storage.root import Root

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string())])


def many_partitions(root: Path, count: int) -> lp.PartitionedTable:
    """A table by city, of which a few are far larger than the others."""
    table = lp.create_table(root, SCHEMA, ["city"])
    salt = table.metadata.salt
    assert salt is not None
    rows = (np.random.default_rng(1).pareto(1.2, count) * 100 + 1).astype(int)
    cities = [f"city-{number:07d}" for number in range(count)]
    spaces = [f"v1${partition_name(salt, 1, (f's{city}',))}" for city in cities]
    leaves = [f"{space}$dataset" for space in spaces]
    told = [
        f'{{"lancepart.n":1,"lancepart.version":1,"lancepart.rows":{n},"lancepart.bytes":{n * 90},'
        f'"lancepart.fragments":1}}'
        for n in rows
    ]
    handle = Manifest(Root.parse(root)).snapshot().handle
    assert handle is not None
    for kind, ids, details in (
        (NAMESPACE, spaces, ["{}"] * count),
        (TABLE, leaves, told),
        (TABLE_VERSION, [f"{leaf}$1" for leaf in leaves], ["{}"] * count),
    ):
        given: dict[str, list[object]] = {
            "object_id": list(ids),
            "object_type": [kind] * count,
            "metadata": list(details),
            "created_at": [datetime.now(UTC)] * count,
            "location": [leaf_location("many", leaf) for leaf in leaves] if kind == TABLE else [None] * count,
            "read_version": [None] * count if kind == NAMESPACE else [1] * count,
            "partition_field_city": [None] * count if kind == TABLE_VERSION else list(cities),
        }
        columns = [pa.array(given.get(each.name, [None] * count), each.type) for each in handle.schema]
        lance.write_dataset(pa.table(columns, schema=handle.schema), f"{root}/{NAME}", mode="append")
    return lp.open_table(root)
