"""The appendices of document 002, written by hand with plain pylance: no writer of ours made any of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

import lance
import pyarrow as pa
from lance.fragment import write_fragments

import lancepart as lp
from tests.support.catalogs import Place

METADATA: dict[str, Any] = {
    "partition_spec_v1": {
        "id": 1,
        "fields": [
            {
                "field_id": "event_date",
                "source_ids": [1],
                "transform": {"type": "identity"},
                "result_type": {"type": "date32"},
            }
        ],
    },
    "partition_spec_v2": {
        "id": 2,
        "fields": [
            {
                "field_id": "event_year",
                "source_ids": [1],
                "transform": {"type": "year"},
                "result_type": {"type": "int32"},
            },
            {
                "field_id": "country",
                "source_ids": [2],
                "transform": {"type": "identity"},
                "result_type": {"type": "utf8"},
            },
        ],
    },
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

Record = tuple[str, str, int | None, date | None, int | None, str | None]

MANIFEST = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
        pa.field("read_version", pa.uint64()),
        pa.field("partition_field_event_date", pa.date32()),
        pa.field("partition_field_event_year", pa.int32()),
        pa.field("partition_field_country", pa.string()),
    ]
)


def events(*rows: tuple[int, date | None, str | None]) -> pa.Table:
    """Rows of the example's schema."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def write_leaves(root: str) -> dict[str, int]:
    """Both leaves, and the detached version that is the second of the first one.

    Its main has moved on with a row of its own, which no row of the manifest names.
    """
    first = f"{root}/{LOCATIONS[V1_LEAF]}"
    lance.write_dataset(events((1, DAY, "US"), (2, DAY, "FR")), first)
    added = write_fragments(events((3, DAY, "US")), lance.dataset(first))
    operation = lance.LanceOperation.Append(added)
    detached = lance.LanceDataset.commit(first, operation, read_version=1, detached=True).version
    lance.write_dataset(events((99, DAY, "US")), first, mode="append")
    second = f"{root}/{LOCATIONS[V2_LEAF]}"
    lance.write_dataset(events((4, DAY, "US"), (5, date(2025, 6, 1), "US")), second)
    return {V1_LEAF: detached, V2_LEAF: 1}


def appendix_c(detached: int) -> list[Record]:
    """The rows of Appendix C: id, type, read_version, event_date, event_year, country."""
    v2, year, country = V2_LEAF.split("$")[:3]
    return [
        ("v1", "namespace", None, None, None, None),
        (V1_LEAF.rsplit("$", 1)[0], "namespace", None, DAY, None, None),
        (V1_LEAF, "table", None, DAY, None, None),
        (f"{V1_LEAF}$1", "table_version", 1, None, None, None),
        (f"{V1_LEAF}$2", "table_version", detached, None, None, None),
        (v2, "namespace", None, None, None, None),
        (f"{v2}${year}", "namespace", None, None, 2025, None),
        (f"{v2}${year}${country}", "namespace", None, None, 2025, "US"),
        (V2_LEAF, "table", None, None, 2025, "US"),
        (f"{V2_LEAF}$1", "table_version", 1, None, None, None),
    ]


def as_manifest(records: list[Record]) -> pa.Table:
    """Rows in all columns of the manifest."""
    return pa.Table.from_pylist(
        [
            {
                "object_id": key,
                "object_type": kind,
                "location": LOCATIONS.get(key),
                "metadata": "{}",
                "read_version": version,
                "partition_field_event_date": day,
                "partition_field_event_year": year,
                "partition_field_country": country,
            }
            for key, kind, version, day, year, country in records
        ],
        schema=MANIFEST,
    )


def write_manifest(root: str, records: list[Record], metadata: Mapping[str, Any] = METADATA) -> None:
    """The manifest with some rows, and the properties in its metadata map."""
    handle = lance.write_dataset(as_manifest(records), f"{root}/__manifest")
    handle.update_metadata({key: json.dumps(value) for key, value in metadata.items()})


def written_by_us(place: Place) -> lp.PartitionedTable:
    """The same table, made by lancepart."""
    table = lp.create_table(place.root, SCHEMA, ["event_date"], storage_options=place.storage_options)
    table.append(events((1, DAY, "US"), (2, DAY, "FR")))
    table.append(events((3, DAY, "US")))
    table.update_spec(["year(event_date) AS event_year", "country"])
    table.append(events((4, DAY, "US"), (5, date(2025, 6, 1), "US")))
    return table


def ids(table: lp.PartitionedTable, where: str | None = None) -> list[int]:
    """The ids of the rows that match, in order."""
    return sorted(table.scan(where, columns=["id"]).to_arrow().column("id").to_pylist())
