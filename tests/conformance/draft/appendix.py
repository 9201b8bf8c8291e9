"""The appendices of document 000, written by hand with plain pylance: no writer of ours made any of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import lance
import pyarrow as pa

METADATA: dict[str, Any] = {
    "partition_spec_v1": [
        {"field_id": "event_date", "source_ids": [1], "expression": "col0", "result_type": {"type": "date32"}}
    ],
    "partition_spec_v2": [
        {
            "field_id": "event_year",
            "source_ids": [1],
            "expression": "date_part('year', col0)",
            "result_type": {"type": "int32"},
        },
        {"field_id": "country", "source_ids": [2], "expression": "col0", "result_type": {"type": "utf8"}},
    ],
    "schema": {
        "fields": [
            {"name": "id", "nullable": False, "type": {"type": "int64"}, "metadata": {"lance:field_id": "0"}},
            {"name": "event_date", "nullable": True, "type": {"type": "date32"}, "metadata": {"lance:field_id": "1"}},
            {"name": "country", "nullable": True, "type": {"type": "utf8"}, "metadata": {"lance:field_id": "2"}},
        ]
    },
}
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("event_date", pa.date32()), ("country", pa.string())])
DAY = date(2025, 12, 10)

V1_LEAF = "v1$k7m2n9p4q8r5s3t6$dataset"
V2_LEAF = "v2$e9f0g1h2i3j4k5l6$m7n8o9p0q1r2s3t4$dataset"
LOCATIONS = {V1_LEAF: f"b4a3c2d1_{V1_LEAF}", V2_LEAF: f"aabbccdd_{V2_LEAF}"}

COLUMNS = [
    pa.field("object_id", pa.string(), nullable=False),
    pa.field("object_type", pa.string(), nullable=False),
    pa.field("location", pa.string()),
    pa.field("metadata", pa.string()),
    pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
]
POINTERS = [
    pa.field("read_version", pa.uint64()),
    pa.field("read_branch", pa.string()),
    pa.field("read_tag", pa.string()),
]
VALUES = [
    pa.field("partition_field_event_date", pa.date32()),
    pa.field("partition_field_event_year", pa.int32()),
    pa.field("partition_field_country", pa.string()),
]


def events(*rows: tuple[int, date | None, str | None]) -> pa.Table:
    """Rows of the example's schema."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def write_leaves(root: str) -> None:
    """Appendix C's leaves: v1's has five versions on main and a sixth that nobody is to read, v2's three."""
    first = f"{root}/{LOCATIONS[V1_LEAF]}"
    for number in range(1, 7):
        country = "US" if number % 2 else "FR"
        lance.write_dataset(events((number, DAY, country)), first, mode="create" if number == 1 else "append")
    second = f"{root}/{LOCATIONS[V2_LEAF]}"
    for number, month in enumerate((12, 6, 1), start=11):
        rows = events((number, date(2025, month, 10), "US"))
        lance.write_dataset(rows, second, mode="create" if number == 11 else "append")


def appendix_c(**pointers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of Appendix C, with other read columns for a leaf if given (by ``v1`` and ``v2``)."""
    v2, year, country = V2_LEAF.split("$")[:3]
    first = pointers.get("v1", {"read_version": 5})
    second = pointers.get("v2", {"read_version": 3})
    in_year, in_country = {"partition_field_event_year": 2025}, {"partition_field_country": "US"}
    return [
        {"object_id": "v1", "object_type": "namespace"},
        {"object_id": V1_LEAF.rsplit("$", 1)[0], "object_type": "namespace", "partition_field_event_date": DAY},
        {"object_id": V1_LEAF, "object_type": "table", "partition_field_event_date": DAY, **first},
        {"object_id": v2, "object_type": "namespace"},
        {"object_id": f"{v2}${year}", "object_type": "namespace", **in_year},
        {"object_id": f"{v2}${year}${country}", "object_type": "namespace", **in_year, **in_country},
        {"object_id": V2_LEAF, "object_type": "table", **in_year, **in_country, **second},
    ]


def write_manifest(
    root: str,
    records: Sequence[Mapping[str, Any]],
    metadata: Mapping[str, Any] = METADATA,
    *,
    pointers: bool = True,
    values: Sequence[pa.Field] = VALUES,
) -> None:
    """The manifest with some rows, and the properties in its metadata map; ``pointers`` gives it the read columns."""
    schema = pa.schema([*COLUMNS, *(POINTERS if pointers else []), *values])
    full = [{"metadata": "{}", "location": LOCATIONS.get(row["object_id"]), **row} for row in records]
    handle = lance.write_dataset(pa.Table.from_pylist(full, schema=schema), f"{root}/__manifest")
    handle.update_metadata({key: json.dumps(value) for key, value in metadata.items()})


def ids(table: Any, where: str | None = None) -> list[int]:
    """The ids of the rows that match, in order."""
    return sorted(table.scan(where, columns=["id"]).to_arrow().column("id").to_pylist())
