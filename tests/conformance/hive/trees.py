"""Hive-style trees made by hand from document 003's text: plain pylance, and a manifest table written as it stands."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import lance
import pyarrow as pa

MANIFEST = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
    ]
)

EVENTS: dict[str, Any] = {
    "fields": [
        {"name": "id", "nullable": True, "type": {"name": "int", "bitWidth": 64, "isSigned": True}, "children": []},
        {"name": "event_date", "nullable": True, "type": {"name": "date", "unit": "DAY"}, "children": []},
        {"name": "country", "nullable": True, "type": {"name": "utf8"}, "children": []},
    ]
}
EVENT_LEAVES = {
    "event_date=2025-12-10/country=US": [1, 2],
    "event_date=2025-12-10/country=CN": [3],
    "event_date=2025-12-11/country=US": [4],
    "event_date=2025-12-11/country=FR": [5, 6],
}


def properties(columns: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] = EVENTS) -> dict[str, str]:
    """The three properties of section 3.1."""
    return {
        "lance.partitioning.is_partitioned": "true",
        "lance.partitioning.partition_columns": json.dumps(columns),
        "lance.partitioning.schema": json.dumps(schema),
    }


EVENT_PROPERTIES = properties([{"name": "event_date", "function": "identity"}, {"name": "country"}])


def write_tree(root: str, leaves: Mapping[str, pa.Table], prefix: str = "") -> None:
    """The directories of section 3.2, one Lance table each."""
    for path, rows in leaves.items():
        place = os.path.join(root, prefix, f"{path}.lance")
        os.makedirs(os.path.dirname(place), exist_ok=True)
        lance.write_dataset(rows, place)


def write_manifest(
    root: str,
    leaves: Sequence[str],
    given: Mapping[str, str],
    *,
    namespace: Sequence[str] = (),
    hashed: bool = False,
) -> None:
    """The manifest over such a tree: namespaces and tables as rows, properties on the table's own namespace."""
    rows: dict[str, dict[str, Any]] = {}
    for depth in range(1, len(namespace) + 1):
        mine = json.dumps(given) if depth == len(namespace) else None
        rows["$".join(namespace[:depth])] = {"object_type": "namespace", "metadata": mine}
    for path in leaves:
        names = [*namespace, *path.split("/")]
        for depth in range(len(namespace) + 1, len(names)):
            rows["$".join(names[:depth])] = {"object_type": "namespace"}
        rows["$".join(names)] = {"object_type": "table", "location": "/".join([*namespace, path]) + ".lance"}
    records = [{"object_id": key, **row} for key, row in rows.items()]
    handle = lance.write_dataset(pa.Table.from_pylist(records, schema=MANIFEST), f"{root}/__manifest")
    if not namespace:
        handle.update_metadata(dict(given))


def event_rows() -> dict[str, pa.Table]:
    """The leaves of section 2.2's picture: no partition column stands in them."""
    return {path: pa.table({"id": pa.array(ids, pa.int64())}) for path, ids in EVENT_LEAVES.items()}


def write_events(root: str, namespace: Sequence[str] = ()) -> None:
    """The whole example, by hand."""
    write_tree(root, event_rows(), "/".join(namespace))
    write_manifest(root, list(EVENT_LEAVES), EVENT_PROPERTIES, namespace=namespace)


def ids(table: Any, where: str | None = None) -> list[int]:
    """The ids of the rows that match, in order."""
    return sorted(table.scan(where, columns=["id"]).to_arrow().column("id").to_pylist())


def paths(table: Any, where: str | None = None) -> list[str]:
    """The ids of the leaves that a filter leaves."""
    return sorted(leaf.object_id for leaf in table.scan(where).plan().leaves)
