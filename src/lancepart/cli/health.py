"""``health``: what a table suffers from, and the command that helps."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from statistics import median

import typer
from rich.console import Console

from lancepart.cli.command import FINDINGS, Root, command
from lancepart.cli.leaves import LeafInfo, leaves_of, total
from lancepart.cli.output import show_rows, size
from lancepart.cli.shell import Answer, Shell
from lancepart.cli.upkeep import expiring
from lancepart.layout.layouts import capabilities
from lancepart.layout.metadata import STRONG
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


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app)(health)


def health(shell: Shell, root: Root) -> Answer:
    """Show what could be better and what to run for it; exit code 5 if there is anything."""
    found = list(findings(shell.table(root), shlex.quote(root)))
    rows = [asdict(each) for each in found]

    def show(console: Console) -> None:
        if rows:
            show_rows(console, rows, ["kind", "detail", "run"])
        else:
            console.print("nothing to do")

    return Answer(payload=rows, show=show, code=FINDINGS if rows else 0)


def findings(table: PartitionedTable, name: str) -> Iterator[Finding]:
    """All findings of a table; ``name`` is how the commands to run name it."""
    metadata = table.metadata
    if not capabilities(metadata).maintenance:
        detail = f"the layout {metadata.layout!r} has no maintenance"
        yield Finding(kind="older layout", detail=detail, run=f"lancepart upgrade {name}")
        return
    leaves = leaves_of(table)
    yield from broken(leaves, name)
    yield from sizes(leaves, name)
    if metadata.transactions != STRONG:
        return
    yield from unindexed(table, name)
    yield from unused(table, leaves, name)


def broken(leaves: Sequence[LeafInfo], name: str) -> Iterator[Finding]:
    """Leaves whose size is not known because they can't be opened."""
    count = sum(1 for leaf in leaves if leaf.rows is None)
    if count:
        yield Finding(kind="broken leaves", detail=f"{count:,} can't be opened", run=f"lancepart check {name}")


def sizes(leaves: Sequence[LeafInfo], name: str) -> Iterator[Finding]:
    """Small files, partitions that are far larger than the others, and too many small ones."""
    small = [
        leaf
        for leaf in leaves
        if (leaf.fragments or 0) >= MANY_FRAGMENTS and leaf.measure("bytes") / leaf.measure("fragments") < SMALL_BYTES
    ]
    if small:
        each = total(small, "bytes") / total(small, "fragments")
        detail = f"{total(small, 'fragments'):,} fragments of {size(each)} on average in {len(small):,} partitions"
        yield Finding(kind="small files", detail=detail, run=f"lancepart compact {name}")
    held = [leaf.measure("bytes") for leaf in leaves if leaf.rows]
    middle = median(held) if held else 0
    if held and max(held) > max(SKEW * middle, SKEWED_BYTES):
        largest = max(leaves, key=lambda leaf: leaf.measure("bytes"))
        detail = f"{largest.label} has {size(max(held))}, the median {size(middle)}"
        run = f"lancepart evolve {name} … 'bucket(<key>, 16)'"
        yield Finding(kind="skew", detail=detail, run=run)
    if len(held) >= MANY_LEAVES and middle < TINY_BYTES:
        detail = f"{len(held):,} partitions of {size(middle)} (median): a coarser partitioning reads faster"
        yield Finding(kind="small partitions", detail=detail, run=f"lancepart evolve {name} <fewer values>")


def unindexed(table: PartitionedTable, name: str) -> Iterator[Finding]:
    """Rows that an index of the table does not cover; partitions too small for a vector index have none."""
    missing: dict[str, int] = {}
    for row in table.inspect.indices().to_pylist():
        if row["indexed_rows"] or not str(row["type"]).upper().startswith("IVF"):
            missing[row["name"]] = missing.get(row["name"], 0) + row["rows"] - row["indexed_rows"]
    for index, rows in missing.items():
        if rows:
            detail = f"the index {index} does not cover {rows:,} rows"
            yield Finding(kind="unindexed rows", detail=detail, run=f"lancepart index {name} --optimize")


def unused(table: PartitionedTable, leaves: Sequence[LeafInfo], name: str) -> Iterator[Finding]:
    """Leaves without rows, rows that older partitionings placed, and snapshots that could go."""
    old = expiring(table, OLD)
    if old:
        detail = f"{len(old):,} snapshots are older than {OLD.days} days"
        yield Finding(kind="history", detail=detail, run=f"lancepart expire {name} --older-than {OLD.days}d")
    empty = sum(1 for leaf in leaves if leaf.rows == 0)
    if empty:
        run = f"lancepart expire {name} --older-than 1h"
        yield Finding(kind="empty leaves", detail=f"{empty:,} leaves have no rows", run=run)
    elsewhere = [leaf for leaf in leaves if leaf.spec_id != table.spec.id and leaf.rows]
    if elsewhere:
        detail = f"{total(elsewhere, 'rows'):,} rows are where older partitionings placed them"
        yield Finding(kind="older specs", detail=detail, run=f"lancepart rewrite {name}")
