"""``health``: what a table suffers from, and the command that helps."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from lancepart.cli.command import FINDINGS, Root, command
from lancepart.cli.output import show_rows
from lancepart.cli.shell import Answer, Shell
from lancepart.layout.layouts import capabilities
from lancepart.report.health import findings
from lancepart.report.leaf_frame import LeafFrame


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app)(health)


def health(
    shell: Shell,
    root: Root,
    most: Annotated[
        int, typer.Option("--most", min=1, help="Look for unindexed rows in so many partitions, the largest ones.")
    ] = 1_000,
) -> Answer:
    """Show what could be better and what to run for it; exit code 5 if there is anything."""
    table = shell.table(root)
    frame = LeafFrame.of(table) if capabilities(table.metadata).maintenance else None
    found = list(findings(table, shlex.quote(root), leaves=frame, most=most))
    partly = frame is not None and most < len(frame)
    rows = [asdict(each) for each in found]

    def show(console: Console) -> None:
        if rows:
            show_rows(console, rows, ["kind", "detail", "run"])
        else:
            console.print("nothing to do")
        if partly:
            console.print(f"unindexed rows were looked for in the {most:,} largest partitions; --most for more")

    return Answer(payload=rows, show=show, code=FINDINGS if rows else 0)
