"""The command ``lancepart``: the list of its commands, whose modules are imported when one of them runs.

So the help and the completion of names come at once; importing everything takes more than a second.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import version
from typing import Annotated, Any

import typer
import typer.main

from lancepart.cli import register
from lancepart.cli.usage import Commands

MODULES: dict[str, dict[str, str]] = {
    "make": {
        "create": "Make an empty table.",
        "load": "Load files in one commit; with --by a table that is not there yet is made.",
        "upsert": "Replace the rows that have a key of the files', and add the others, in one commit.",
    },
    "look": {
        "info": "Show what a table is: columns, partitioning, size, snapshot.",
        "tree": "Show the partitions as a tree, with the rows and bytes of each level.",
        "partitions": "Show the partitions by size, with a bar each, and how skewed they are.",
        "head": "Show some rows.",
        "sample": "Show rows drawn at random.",
        "plan": "Show what a filter would read, and why; no leaf is opened.",
    },
    "ask": {
        "sql": "Run a query over tables that are given by name, or over all tables of a warehouse.",
        "search": "Find the rows whose vectors are nearest, or whose texts match best.",
        "join": "Join two tables, partition by partition where these agree.",
    },
    "change": {
        "delete": "Delete the rows that match, in one commit.",
        "evolve": "Partition new rows differently; rows that are there stay, and rewrite moves them.",
        "columns": "Show the columns, or add, rename, widen and drop some; each change is a commit of its own.",
    },
    "history": {
        "snapshots": "Show the commits that are kept, the newest first.",
        "changes": "Show the rows that were inserted and deleted between two snapshots.",
        "tag": "Show the tags, or name a snapshot, which then does not expire.",
        "rollback": "Bring back the rows of an older snapshot, as a new one.",
    },
    "upkeep": {
        "compact": "Put small fragments together and drop deleted rows.",
        "rewrite": "Move rows that older partitionings placed into the partitions of the newest.",
        "expire": "Forget old snapshots and remove what only they needed; the last hour and tagged ones stay.",
        "orphans": "Remove files that failed writers left; the age must be longer than the longest write.",
        "index": "Show the indices, build one, cover new rows and partitions, or drop one.",
        "upgrade": "Turn a table of an older layout into the current one.",
        "check": "Look for leaves, published unions and table-wide indices that can't be read; exit code 5 if there "
        "are any.",
    },
    "health": {"health": "Show what could be better and what to run for it; exit code 5 if there is anything."},
    "explore": {
        "ui": "Show tables in a browser, read-only: partitions, filters, snapshots, search, health. Ctrl-C ends it."
    },
    "measure": {
        "bench": "Measure how long opening, planning, counting, reading and searching take; nothing is written to "
        "TABLE."
    },
    "namespaces": {"ns": "The catalog of a warehouse: its namespaces and tables."},
}
"""The commands by the module that has them, each with the line that the list of commands shows."""


@cache
def commands_of(module: str) -> dict[str, Any]:
    """The commands of a module, by their names."""
    part = typer.Typer(callback=lambda: None)
    register(module, part)
    return dict(typer.main.get_group(part).commands)


def _load(name: str) -> Any:
    """The command of a name in the list, with its options."""
    return commands_of(next(module for module, found in MODULES.items() if name in found))[name]


class _Listed(Commands):
    """The list of commands; what stands for a command gives way to the command when it is used."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments name."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if found is None or name is None else _load(name), rest


app = typer.Typer(
    name="lancepart",
    cls=_Listed,
    help="Partitioned Lance tables: look at them, load, query and maintain them. TABLE is the root of a table, or "
    "warehouse:namespace.table. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 conflict with another "
    "writer, 5 findings, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _commands in MODULES.values():
    for _name, _line in _commands.items():
        app.command(_name, help=_line)(lambda: None)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"lancepart {version('lancepart')}")
        raise typer.Exit


@app.callback()
def _main(
    wanted: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True, show_default=False)
    ] = False,
) -> None:
    """Options of the command itself."""


def main() -> None:
    """Run the command; what Lance itself logs is shown from errors up, unless ``LANCE_LOG`` says otherwise."""
    os.environ.setdefault("LANCE_LOG", "error")
    app(prog_name="lancepart")
