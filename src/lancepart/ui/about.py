"""Answers about tables as a whole: which there are, what one is, its indices and its health."""

from __future__ import annotations

import shlex
from dataclasses import asdict

from lancepart.layout.declared_indices import LEAF, TABLE, declared
from lancepart.layout.layouts import capabilities
from lancepart.maintain.describe import partition_by
from lancepart.report.health import findings
from lancepart.ui.explorer import Explorer
from lancepart.ui.params import Params
from lancepart.ui.partitions import Answer
from lancepart.ui.rows import kind_of

LOOKED_INTO = 100
"""In how many leaves, those with the most rows, indices are looked at for one page."""


def tables(explorer: Explorer, params: Params) -> Answer:
    """A page of the tables, those whose name contains a text."""
    contains, offset = params.text("contains").lower(), params.number("offset", 0)
    found = [name for name in explorer.names() if contains in name.lower()]
    shown = found[offset : offset + params.limit(200, 500)]
    return {"root": explorer.root, "warehouse": explorer.is_warehouse, "tables": shown, "total": len(found)}


def table(explorer: Explorer, params: Params) -> Answer:
    """What a table is: columns, partitioning, size, snapshot, and what can be done with it."""
    found = explorer.requested(params)
    metadata = found.metadata
    frame = explorer.frame(params.text("table", "."), found)
    can = capabilities(metadata)
    return {
        "label": explorer.label(params.text("table", ".")),
        "root": found.root,
        "layout": metadata.layout,
        "transactions": metadata.transactions,
        "version": frame.version,
        "partition_by": partition_by(metadata),
        "spec_versions": len(metadata.specs),
        "partitions": len(frame),
        **{name: frame.total(name) for name in ("rows", "bytes", "fragments")},
        "columns": [
            {"name": field.name, "type": str(field.type), "kind": kind_of(field.type)} for field in found.schema
        ],
        "snapshots": can.snapshots,
        "maintenance": can.maintenance,
    }


def indices(explorer: Explorer, params: Params) -> Answer:
    """The indices and how much of the largest leaves they cover."""
    found = explorer.requested(params)
    frame = explorer.frame(params.text("table", "."), found)
    seen: dict[tuple[str, str], dict[str, object]] = {}
    counts: dict[tuple[str, str], list[int]] = {}
    for row in found.inspect.indices(leaves=frame.largest(LOOKED_INTO)).to_pylist():
        key = (row["name"], row["scope"])
        seen.setdefault(key, {each: row[each] for each in ("name", "scope", "type", "columns")})
        if row["indexed_rows"]:
            seen[key]["type"] = row["type"]
        count = counts.setdefault(key, [0, 0, 0, 0])
        covered = row["rows"] - row["indexed_rows"] <= 0
        for at, more in enumerate((1, covered, row["rows"], row["indexed_rows"])):
            count[at] += more
    scan = found.scan()
    for index in declared(scan.snapshot) if capabilities(scan.metadata).declared_indices else ():
        for key in ((index.name, LEAF), (index.name, TABLE)):
            if key in seen and index.column in scan.metadata.columns:
                seen[key]["columns"] = [scan.metadata.columns[index.column].name]
    names = ("leaves", "covered_leaves", "rows", "indexed_rows")
    rows = [{**seen[key], **dict(zip(names, counts[key], strict=True))} for key in seen]
    return {"indices": rows, "looked_into": min(LOOKED_INTO, len(frame)), "partitions": len(frame)}


def health(explorer: Explorer, params: Params) -> Answer:
    """What could be better, and the command to run for it."""
    name = params.text("table", ".")
    found = explorer.table(name)
    label = shlex.quote(explorer.label(name))
    frame = explorer.frame(name, found)
    most = min(LOOKED_INTO, len(frame))
    return {
        "findings": [asdict(each) for each in findings(found, label, leaves=frame, most=most)],
        "commands": [f"lancepart check {label}", f"lancepart health {label}"],
        "looked_into": most,
    }
