"""Answers about the past: snapshots, what changed between two, and how the schema and the partitioning became so."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError
from lancepart.layout.metadata import TableMetadata
from lancepart.maintain.describe import partition_by
from lancepart.model.schema import field_id
from lancepart.report.leaf_frame import LeafFrame
from lancepart.report.values import plain, rows_of, safe_integers
from lancepart.table import PartitionedTable
from lancepart.ui.explorer import Explorer, snapshot_of
from lancepart.ui.params import Params
from lancepart.ui.partitions import Answer

_DEFINITIONS = 300
_MOST_CHANGES = 100


def snapshots(explorer: Explorer, params: Params) -> Answer:
    """A page of the commits that are kept, the newest first, with their tags."""
    table = explorer.requested(params)
    names: dict[int, list[str]] = {}
    for name, version in table.tags.list().items():
        names.setdefault(version, []).append(name)
    limit = params.limit(50)
    found = table.inspect.snapshots(limit=limit, before=params.number("before", 0) or None)
    rows = [{**row, "tags": sorted(names.get(int(str(row["version"])), []))} for row in rows_of(found)[::-1]]
    more = len(rows) == limit
    return {"snapshots": plain(rows), "next": rows[-1]["version"] if more else None, "latest": table.version}


def diff(explorer: Explorer, params: Params) -> Answer:
    """What is different between two snapshots: columns, partitioning, and partitions that came, went or changed."""
    name = params.text("table", ".")
    one, other = (_at(explorer, name, params.required(each)) for each in ("from", "to"))
    if one.version > other.version:
        one, other = other, one
    before, after = explorer.frame(name, one), explorer.frame(name, other)
    leaves, counts = _leaf_changes(before, after, params.number("offset", 0), params.limit(50))
    return {
        "from": one.version,
        "to": other.version,
        "columns": column_changes(one.metadata, other.metadata),
        "partition_by": [partition_by(each.metadata) for each in (one, other)],
        "rows": [before.total("rows"), after.total("rows")],
        "bytes": [before.total("bytes"), after.total("bytes")],
        "partitions": [len(before), len(after)],
        "counts": counts,
        "leaves": leaves,
    }


def _at(explorer: Explorer, name: str, text: str) -> PartitionedTable:
    return explorer.table(name, snapshot_of(text))


def _leaf_changes(
    before: LeafFrame, after: LeafFrame, offset: int, limit: int
) -> tuple[list[Answer], Mapping[str, int]]:
    """The leaves that are not the same, those whose number of rows changed most first."""
    sides = [_flat(before), _flat(after)]
    joined = sides[0].join(sides[1], "object_id", join_type="full outer", right_suffix="_after")
    gone, new = pc.is_null(joined.column("read_version_after")), pc.is_null(joined.column("read_version"))
    same = pc.fill_null(pc.equal(joined.column("read_version"), joined.column("read_version_after")), fill_value=False)
    kind = pc.if_else(gone, "removed", pc.if_else(new, "added", "changed"))
    joined = joined.append_column("kind", kind).filter(pc.invert(same))
    rows = [pc.fill_null(joined.column(name), 0) for name in ("rows", "rows_after")]
    joined = joined.append_column("delta", pc.subtract(rows[1], rows[0]))
    order = pa.table({"size": pc.abs(joined.column("delta")), "id": joined.column("object_id")})
    joined = joined.take(pc.sort_indices(order, sort_keys=[("size", "descending"), ("id", "ascending")]))
    counts = {str(each["values"]): int(each["counts"]) for each in pc.value_counts(joined.column("kind")).to_pylist()}
    shown = joined.slice(offset, limit).to_pylist()
    return [_leaf_change(row) for row in shown], {name: counts.get(name, 0) for name in ("added", "changed", "removed")}


def _leaf_change(row: Mapping[str, str | int | None]) -> Answer:
    return {
        "kind": row["kind"],
        "name": row["name"] if row["name"] is not None else row["name_after"],
        "rows": [row["rows"], row["rows_after"]],
        "bytes": [row["bytes"], row["bytes_after"]],
        "delta": row["delta"],
    }


def _flat(frame: LeafFrame) -> pa.Table:
    """The leaves of all spec versions, each with its values as one text; those without a version count as version 0."""
    parts = []
    for spec in frame.specs:
        texts = [
            pc.binary_join_element_wise(f"{field}=", pc.fill_null(spec.leaves.column(level), "NULL"), "")
            for field, level in zip(spec.fields, spec.levels, strict=True)
        ]
        names = (
            pc.binary_join_element_wise(*texts, " / ")
            if texts
            else pa.array(["all rows"] * spec.leaves.num_rows, pa.string())
        )
        kept = spec.leaves.select(["object_id", "read_version", "rows", "bytes"]).append_column("name", names)
        versions = pc.fill_null(kept.column("read_version"), pa.scalar(0, pa.uint64()))
        parts.append(kept.set_column(1, "read_version", versions))
    return pa.concat_tables(parts, promote_options="permissive")


def column_changes(before: TableMetadata, after: TableMetadata) -> list[Answer]:
    """Columns that were added, dropped, renamed or given another type, matched by their field ids."""
    old = {field_id(field): field for field in before.schema}
    new = {field_id(field): field for field in after.schema}
    found: list[Answer] = [
        {"kind": "dropped", "name": field.name, "detail": str(field.type)}
        for number, field in old.items()
        if number not in new
    ]
    for number, field in new.items():
        was = old.get(number)
        if was is None:
            found.append({"kind": "added", "name": field.name, "detail": str(field.type)})
            continue
        if was.name != field.name:
            found.append({"kind": "renamed", "name": field.name, "detail": f"was {was.name}"})
        if was.type != field.type:
            found.append({"kind": "widened", "name": field.name, "detail": f"{was.type} to {field.type}"})
    return found


def changes(explorer: Explorer, params: Params) -> Answer:
    """Some of the rows that were inserted and deleted between two snapshots."""
    since, until = snapshot_of(params.required("from")), snapshot_of(params.required("to"))
    assert since is not None
    limit = params.limit(20, _MOST_CHANGES)
    found = explorer.requested(params).changes(since, until)
    rows: list[pa.RecordBatch] = []
    for batch in found.to_batches():
        rows.append(batch.slice(0, limit - sum(each.num_rows for each in rows)))
        if sum(each.num_rows for each in rows) >= limit:
            break
    shown = _short(pa.Table.from_batches(rows, schema=found.schema))
    return {"columns": shown.schema.names, "rows": safe_integers(plain(rows_of(shown)))}


def _short(table: pa.Table) -> pa.Table:
    """Rows without columns of bytes, which a page could not show."""
    kept = [field.name for field in table.schema if not _is_bytes(field.type)]
    if not kept:
        raise InvalidInputError("the table has only columns of bytes, which can't be shown here")
    return table.select(kept)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def schema(explorer: Explorer, params: Params) -> Answer:
    """The columns, the versions of the partitioning, and the commits that changed either."""
    name = params.text("table", ".")
    table = explorer.requested(params)
    metadata = table.metadata
    return {
        "version": table.version,
        "columns": [
            {"id": field_id(field), "name": field.name, "type": str(field.type), "nullable": field.nullable}
            for field in metadata.schema
        ],
        "specs": plain(rows_of(table.inspect.specs())),
        "current_spec": table.spec.id,
        "history": _definitions(explorer, name, table),
    }


def _definitions(explorer: Explorer, name: str, table: PartitionedTable) -> list[Answer]:
    found = rows_of(table.inspect.snapshots(limit=_DEFINITIONS))
    changed = [row for row in found if row["operation"] == "define"]
    history: list[Answer] = []
    before: TableMetadata | None = None
    for row in changed:
        after = _at(explorer, name, str(row["version"])).metadata
        entry: Answer = {"version": row["version"], "timestamp": plain(row["timestamp"]), "spec": after.spec.id}
        entry["partition_by"] = None if before is not None and before.spec == after.spec else partition_by(after)
        entry["columns"] = [] if before is None else column_changes(before, after)
        history.append(entry)
        before = after
    return history[::-1]
