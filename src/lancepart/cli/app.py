"""The command ``lancepart``."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from lancepart.cli import ask, change, explore, health, history, look, make, measure, namespaces, upkeep
from lancepart.cli.usage import Commands

app = typer.Typer(
    name="lancepart",
    cls=Commands,
    help="Partitioned Lance tables: look at them, load, query and maintain them. TABLE is the root of a table, or "
    "warehouse:namespace.table. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 conflict with another "
    "writer, 5 findings, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in (make, look, ask, change, history, upkeep, health, explore, measure, namespaces):
    group.register(app)


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
    """Run the command."""
    app(prog_name="lancepart")
