"""Partitioned tables by hand, as a client could write them that knows nothing but document 002 and pylance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import lance
import pyarrow as pa

from lancepart.model.schema import type_to_json

CATALOG = [
    pa.field("object_id", pa.string(), nullable=False),
    pa.field("object_type", pa.string(), nullable=False),
    pa.field("location", pa.string()),
    pa.field("metadata", pa.string()),
    pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
    pa.field("read_version", pa.uint64()),
]


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """One leaf: its partition values, its rows, and what its ``table`` row says."""

    values: Mapping[str, Any]
    rows: pa.Table
    name: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


def partition_field(name: str, sources: Sequence[int], transform: Mapping[str, Any], result: Any) -> dict[str, Any]:
    """One field of a spec."""
    spelled = type_to_json(result).to_dict()
    return {"field_id": name, "source_ids": list(sources), "transform": dict(transform), "result_type": spelled}


def column(name: str, kind: Any, number: int, *, nullable: bool = True) -> dict[str, Any]:
    """One column of the namespace's schema."""
    spelled = type_to_json(kind).to_dict()
    return {"name": name, "nullable": nullable, "type": spelled, "metadata": {"lance:field_id": str(number)}}


def struct_column(name: str, kind: str, number: int, inner: Sequence[Any]) -> dict[str, Any]:
    """One column of the namespace's schema with fields inside."""
    spelled = {"type": kind, "fields": list(inner)}
    return {"name": name, "nullable": True, "type": spelled, "metadata": {"lance:field_id": str(number)}}


def make(root: str, columns: Sequence[Any], fields: Sequence[Any], leaves: Sequence[Leaf], **more: Any) -> None:
    """A table of one spec version whose leaves all have one version."""
    types = more.pop("types", None) or {}
    partition = [
        pa.field(f"partition_field_{each['field_id']}", types.get(each["field_id"]) or more["results"][at])
        for at, each in enumerate(fields)
    ]
    schema = pa.schema([*CATALOG, *partition])
    rows: dict[str, dict[str, Any]] = {"v1": {"object_id": "v1", "object_type": "namespace"}}
    for leaf in leaves:
        path = ["v1"]
        held: dict[str, Any] = {}
        for at, each in enumerate(fields):
            held = {**held, f"partition_field_{each['field_id']}": leaf.values[each["field_id"]]}
            path.append(f"{leaf.name}x{at}".ljust(16, "0"))
            rows["$".join(path)] = {"object_id": "$".join(path), "object_type": "namespace", **held}
        key = "$".join([*path, "dataset"])
        location = f"{crc32(key.encode()):08x}_{key}"
        lance.write_dataset(leaf.rows, f"{root}/{location}")
        told = json.dumps(dict(leaf.metadata))
        rows[key] = {"object_id": key, "object_type": "table", "location": location, "metadata": told, **held}
        rows[f"{key}$1"] = {"object_id": f"{key}$1", "object_type": "table_version", "read_version": 1}
    found = [{"metadata": "{}", **row} for row in rows.values()]
    handle = lance.write_dataset(pa.Table.from_pylist(found, schema=schema), f"{root}/__manifest")
    spec = {"id": 1, "fields": list(fields)}
    handle.update_metadata({"schema": json.dumps({"fields": list(columns)}), "partition_spec_v1": json.dumps(spec)})


def publish(root: str, leaf: str, number: int, rows: pa.Table, *, pointer: bool = False, keyed: bool = False) -> int:
    """A detached version of a leaf with more rows, under a number; ``pointer`` moves the table's row alone.

    A ``keyed`` merge tells Lance which keys it inserts, so that it conflicts with none that inserts others.
    """
    manifest = lance.dataset(f"{root}/__manifest")
    (row,) = manifest.to_table(filter=f"object_id = '{leaf}'").to_pylist()
    place = f"{root}/{row['location']}"
    found = manifest.to_table(filter=f"object_id LIKE '{leaf}$%' AND object_type = 'table_version'").to_pylist()
    base = (
        row["read_version"]
        or max((int(each["object_id"].rsplit("$", 1)[-1]), each["read_version"]) for each in found)[1]
    )
    added = lance.fragment.write_fragments(rows, lance.dataset(place, version=base))
    operation = lance.LanceOperation.Append(added)
    start = place if base >> 63 else lance.dataset(place, version=base)
    newer = int(lance.LanceDataset.commit(start, operation, read_version=base, detached=True).version)
    if pointer:
        manifest.update({"read_version": str(newer)}, where=f"object_id = '{leaf}'")
    else:
        record = {"object_id": f"{leaf}${number}", "object_type": "table_version", "metadata": "{}"}
        given = pa.Table.from_pylist([{**record, "read_version": newer}], schema=manifest.schema)
        merge = manifest.merge_insert("object_id").when_not_matched_insert_all()
        (merge.when_matched_update_all().use_index(False) if keyed else merge).execute(given)
    return newer
