"""What is in a table: ``info``, ``tree``, ``partitions``, ``head``, ``sample``, ``plan``."""

from __future__ import annotations

from statistics import median
from typing import Annotated

import pyarrow as pa
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from lancepart.cli.command import AtVersion, Columns, Limit, MayLimit, Root, Where, command
from lancepart.cli.output import show_record, show_rows
from lancepart.cli.shell import Answer, Shell
from lancepart.cli.usage import among, choice
from lancepart.maintain.describe import partition_by
from lancepart.plan import planner
from lancepart.report.leaf_frame import LeafFrame
from lancepart.report.leaves import Branch, leaves_of
from lancepart.report.values import bar, number, rows_of, size

_SORTS = ("bytes", "rows", "fragments", "name")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app)(info)
    command(app)(tree)
    command(app)(partitions)
    command(app)(head)
    command(app)(sample)
    command(app)(plan)


def info(shell: Shell, root: Root, version: AtVersion = None) -> Answer:
    """Show what a table is: columns, partitioning, size, snapshot."""
    table = shell.table(root, version)
    metadata, leaves = table.metadata, LeafFrame.of(table)
    rows, held = leaves.total("rows"), leaves.total("bytes")
    fields = list(partition_by(metadata))
    columns = {field.name: str(field.type) for field in table.schema}
    about = {
        "root": table.root,
        "layout": metadata.layout,
        "transactions": metadata.transactions,
        "version": table.version,
    }
    payload = {
        **about,
        "rows": rows,
        "bytes": held,
        "partitions": len(leaves),
        "partition_by": fields,
        "spec_versions": len(table.specs),
        "columns": columns,
    }

    def show(console: Console) -> None:
        sizes = {"rows": number(rows), "size": size(held), "partitions": number(len(leaves))}
        show_record(console, {**about, **sizes, "partition_by": ", ".join(fields), "spec_versions": len(table.specs)})
        console.print()
        show_rows(console, [{"column": name, "type": kind} for name, kind in columns.items()], ["column", "type"])

    return Answer(payload=payload, show=show)


def tree(
    shell: Shell,
    root: Root,
    depth: Annotated[int, typer.Option("--depth", min=1, help="How many levels.")] = 8,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="How many children of a level are shown.")] = 20,
    version: AtVersion = None,
) -> Answer:
    """Show the partitions as a tree, with the rows and bytes of each level."""
    table = shell.table(root, version)
    leaves = leaves_of(table)
    found = [
        Branch.of(f"spec v{spec.id}", [leaf for leaf in leaves if leaf.spec_id == spec.id]) for spec in table.specs
    ]

    def show(console: Console) -> None:
        top = Tree(escape(table.root))
        for each in found:
            _grow(top, each, depth + 1, limit)
        console.print(top)

    return Answer(payload={"root": table.root, "specs": [each.to_json() for each in found]}, show=show)


def _grow(parent: Tree, branch: Branch, depth: int, limit: int) -> None:
    node = parent.add(f"[bold]{escape(branch.name)}[/bold]  {branch.rows:,} rows  {size(branch.bytes)}")
    if depth <= 1 and branch.children:
        node.add(f"… {branch.leaves:,} leaves")
        return
    for child in branch.children[:limit]:
        _grow(node, child, depth - 1, limit)
    if len(branch.children) > limit:
        node.add(f"… and {len(branch.children) - limit:,} more")


def partitions(
    shell: Shell,
    root: Root,
    sort: Annotated[
        str, typer.Option("--sort", help="bytes, rows, fragments or name", autocompletion=among(_SORTS))
    ] = "bytes",
    limit: MayLimit = None,
    version: AtVersion = None,
) -> Answer:
    """Show the partitions by size, with a bar each, and how skewed they are."""
    choice("--sort", sort, _SORTS)
    measured = "bytes" if sort == "name" else sort
    leaves = leaves_of(shell.table(root, version))
    leaves.sort(key=lambda leaf: (0 if sort == "name" else -leaf.measure(measured), leaf.order))
    sizes = [leaf.measure(measured) for leaf in leaves]
    kept = leaves[: shell.most(limit, 50)]
    largest, middle = max(sizes, default=0), median(sizes) if sizes else 0

    def show(console: Console) -> None:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for name in ("partition", "rows", "size", "fragments", ""):
            table.add_column(name, justify="left" if name in ("partition", "") else "right", overflow="fold")
        for leaf in kept:
            share = leaf.measure(measured) / max(largest, 1)
            sizes = (number(leaf.rows), size(leaf.bytes), number(leaf.fragments))
            table.add_row(escape(leaf.label), *sizes, bar(share))
        console.print(table)
        more = f", {len(leaves) - len(kept):,} not shown" if len(leaves) > len(kept) else ""
        skew = f"; the largest has {largest / middle:.1f} times the {measured} of the median" if middle else ""
        console.print(f"{len(leaves):,} partitions{more}{skew}")

    payload = {
        "partitions": len(leaves),
        "measured": measured,
        "largest": largest,
        "median": middle,
        "empty": sum(1 for leaf in leaves if leaf.rows == 0),
        "leaves": [leaf.to_json() for leaf in kept],
    }
    return Answer(payload=payload, show=show)


def shown(rows: pa.Table, limit: int | None = None) -> Answer:
    """Rows as an answer; what a limit leaves out is counted for people."""
    found, more = rows_of(rows.slice(0, limit)), 0 if limit is None else rows.num_rows - limit

    def show(console: Console) -> None:
        show_rows(console, found, rows.schema.names, null="NULL")
        if more > 0:
            console.print(f"… and {more:,} more {'row' if more == 1 else 'rows'}: -n shows more")

    return Answer(payload=found, show=show)


def head(
    shell: Shell,
    root: Root,
    limit: Limit = 10,
    where: Where = None,
    column: Columns = [],  # noqa: B006
    version: AtVersion = None,
) -> Answer:
    """Show some rows."""
    return shown(shell.table(root, version).scan(where, column or None, limit).to_arrow())


def sample(
    shell: Shell,
    root: Root,
    limit: Limit = 10,
    where: Where = None,
    column: Columns = [],  # noqa: B006
    seed: Annotated[int | None, typer.Option("--seed", help="The same number gives the same rows.")] = None,
    version: AtVersion = None,
) -> Answer:
    """Show rows drawn at random."""
    return shown(shell.table(root, version).sample(limit, column or None, where, seed=seed))


def plan(
    shell: Shell,
    root: Root,
    where: Annotated[str | None, typer.Argument(help="The filter: SQL in DataFusion's dialect.")] = None,
    version: AtVersion = None,
) -> Answer:
    """Show what a filter would read, and why; no leaf is opened."""
    scan = shell.table(root, version).scan(where)
    found = scan.plan()
    totals = planner.leaf_counts(scan.snapshot, scan.metadata)
    stats = [leaf.stats for leaf in found.leaves if leaf.stats is not None]
    rows, held = sum(each.rows for each in stats), sum(each.bytes for each in stats)
    payload = {
        "version": found.version,
        "leaves": [leaf.object_id for leaf in found.leaves],
        "kept": len(found.leaves),
        "of": sum(totals.values()),
        "rows": rows,
        "bytes": held,
        "specs": [{"spec_id": each.spec_id, "kept": each.kept, "reasons": list(each.reasons)} for each in found.specs],
    }

    def show(console: Console) -> None:
        console.print(found.explain(totals), markup=False)
        console.print(f"\nto read: at most {rows:,} rows, {size(held)}")

    return Answer(payload=payload, show=show)
