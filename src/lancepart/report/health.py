"""What a table suffers from, and the command that helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow.compute as pc

from lancepart.layout.layouts import capabilities
from lancepart.layout.metadata import STRONG
from lancepart.maintain.collect import SAFE_AGE
from lancepart.report.leaf_frame import LeafFrame
from lancepart.report.values import counted, rows_of, size
from lancepart.table import PartitionedTable

SMALL_BYTES = 16 << 20
MANY_FRAGMENTS = 4
SKEW = 10.0
SKEWED_BYTES = 256 << 20
TINY_BYTES = 1 << 20
MANY_LEAVES = 1_000
OLD = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that could be better: what, how much of it, and what to run."""

    kind: str
    detail: str
    run: str


def findings(
    table: PartitionedTable, name: str, *, leaves: LeafFrame | None = None, most: int | None = None
) -> Iterator[Finding]:
    """All findings of a table; ``name`` is how the commands to run name it.

    ``leaves`` are those of its newest snapshot, if they were read already. With ``most``, indices are looked for in so
    many leaves only, those with the most rows.
    """
    metadata = table.metadata
    if not capabilities(metadata).maintenance:
        detail = f"the layout {metadata.layout!r} has no maintenance"
        yield Finding(kind="older layout", detail=detail, run=f"lancepart upgrade {name}")
        return
    frame = LeafFrame.of(table) if leaves is None else leaves
    yield from broken(frame, name)
    yield from sizes(frame, name)
    if metadata.transactions != STRONG:
        return
    yield from unindexed(table, name, None if most is None else frame.largest(most))
    yield from unused(table, frame, name)


def broken(leaves: LeafFrame, name: str) -> Iterator[Finding]:
    """Leaves whose size is not known because they can't be opened."""
    count = sum(spec.leaves.column("rows").null_count for spec in leaves.specs)
    if count:
        yield Finding(kind="broken leaves", detail=f"{count:,} can't be opened", run=f"lancepart check {name}")


def sizes(leaves: LeafFrame, name: str) -> Iterator[Finding]:
    """Small files, partitions that are far larger than the others, and too many small ones."""
    rows, bytes_held, fragments = (leaves.sizes(measure) for measure in ("rows", "bytes", "fragments"))
    small = (fragments >= MANY_FRAGMENTS) & (bytes_held < SMALL_BYTES * fragments)
    if small.any():
        files = int(fragments[small].sum())
        each = int(bytes_held[small].sum()) / files
        detail = f"{files:,} fragments of {size(each)} on average in {counted(int(small.sum()), 'partition')}"
        yield Finding(kind="small files", detail=detail, run=f"lancepart compact {name}")
    held = bytes_held[rows > 0]
    middle = float(np.median(held)) if len(held) else 0.0
    if len(held) and held.max() > max(SKEW * middle, SKEWED_BYTES):
        detail = f"{leaves.label(int(bytes_held.argmax()))} has {size(int(held.max()))}, the median {size(middle)}"
        run = f"lancepart evolve {name} … 'bucket(<key>, 16)'"
        yield Finding(kind="skew", detail=detail, run=run)
    if len(held) >= MANY_LEAVES and middle < TINY_BYTES:
        detail = f"{len(held):,} partitions of {size(middle)} (median): a coarser partitioning reads faster"
        yield Finding(kind="small partitions", detail=detail, run=f"lancepart evolve {name} <fewer values>")


def unindexed(table: PartitionedTable, name: str, leaves: Sequence[str] | None = None) -> Iterator[Finding]:
    """Rows that an index does not cover, in some leaves or in all; those too small for a vector index have none."""
    missing: dict[str, int] = {}
    for row in table.inspect.indices(leaves=leaves).to_pylist():
        if row["indexed_rows"] or not str(row["type"]).upper().startswith("IVF"):
            missing[row["name"]] = missing.get(row["name"], 0) + row["rows"] - row["indexed_rows"]
    for index, rows in missing.items():
        if rows:
            detail = f"the index {index} does not cover {counted(rows, 'row')}"
            yield Finding(kind="unindexed rows", detail=detail, run=f"lancepart index {name} --optimize")


def unused(table: PartitionedTable, leaves: LeafFrame, name: str) -> Iterator[Finding]:
    """Leaves without rows, rows that older partitionings placed, and snapshots that could go."""
    old = expiring(table, OLD)
    if old:
        detail = f"{len(old):,} snapshots are older than {OLD.days} days"
        yield Finding(kind="history", detail=detail, run=f"lancepart expire {name} --older-than {OLD.days}d")
    empty = sum(int(pc.sum(pc.equal(spec.leaves.column("rows"), 0)).as_py() or 0) for spec in leaves.specs)
    if empty:
        run = f"lancepart expire {name} --older-than 1h"
        yield Finding(
            kind="empty leaves",
            detail="1 leaf has no rows" if empty == 1 else f"{empty:,} leaves have no rows",
            run=run,
        )
    elsewhere = sum(int(spec.sizes("rows").sum()) for spec in leaves.specs if spec.spec_id != table.spec.id)
    if elsewhere:
        detail = f"{elsewhere:,} rows are where older partitionings placed them"
        yield Finding(kind="older specs", detail=detail, run=f"lancepart rewrite {name}")


def expiring(table: PartitionedTable, older_than: timedelta | datetime) -> list[dict[str, object]]:
    """The snapshots that an expiry would remove, by this machine's clock."""
    now = datetime.now(UTC)
    cutoff = min(now - older_than if isinstance(older_than, timedelta) else older_than, now - SAFE_AGE)
    tagged = set(table.tags.list().values())
    found = table.inspect.snapshots()
    newest = table.version
    stamps = found.column("timestamp").to_pylist()
    rows = [row for row, taken in zip(rows_of(found), stamps, strict=True) if taken < cutoff]
    return [row for row in rows[:-1] if row["version"] not in tagged and row["version"] != newest] if rows else []
