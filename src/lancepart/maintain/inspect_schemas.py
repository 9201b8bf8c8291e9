"""The columns of the metadata tables that ``table.inspect`` gives."""

from __future__ import annotations

import pyarrow as pa

PARTITIONS = pa.schema(
    [
        ("spec_id", pa.int32()),
        ("partition", pa.map_(pa.string(), pa.string())),
        ("object_id", pa.string()),
        ("location", pa.string()),
        ("read_version", pa.uint64()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("fragments", pa.int32()),
    ]
)
SPECS = pa.schema(
    [
        ("spec_id", pa.int32()),
        ("field_id", pa.string()),
        ("source", pa.string()),
        ("transform", pa.string()),
        ("result_type", pa.string()),
    ]
)
SNAPSHOTS = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("by", pa.string()),
        ("transaction", pa.string()),
        ("partitions", pa.int64()),
        ("rows_added", pa.int64()),
        ("rows_deleted", pa.int64()),
    ]
)
FRAGMENTS = pa.schema(
    [
        ("object_id", pa.string()),
        ("fragment", pa.int64()),
        ("rows", pa.int64()),
        ("deleted", pa.int64()),
        ("bytes", pa.int64()),
    ]
)
INDICES = pa.schema(
    [
        ("object_id", pa.string()),
        ("name", pa.string()),
        ("type", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("rows", pa.int64()),
        ("indexed_rows", pa.int64()),
        ("segments", pa.int32()),
        ("scope", pa.string()),
    ]
)
BROKEN = pa.schema(
    [
        ("spec_id", pa.int32()),
        ("partition", pa.map_(pa.string(), pa.string())),
        ("object_id", pa.string()),
        ("location", pa.string()),
        ("read_version", pa.uint64()),
        ("error", pa.string()),
    ]
)
UNPUBLISHED = pa.schema(
    [
        ("object_id", pa.string()),
        ("location", pa.string()),
        ("read_version", pa.uint64()),
        ("main_version", pa.uint64()),
        ("main_rows", pa.int64()),
    ]
)
BROKEN_UNIONS = pa.schema([("uri", pa.string()), ("error", pa.string())])
BROKEN_INDICES = pa.schema([("name", pa.string()), ("segment", pa.string()), ("error", pa.string())])
UNIONS = pa.schema(
    [
        ("uri", pa.string()),
        ("snapshot", pa.int64()),
        ("version", pa.int64()),
        ("fragments", pa.int64()),
        ("pinned", pa.list_(pa.int64())),
    ]
)
