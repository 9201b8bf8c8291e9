"""Questions: ``sql``, ``search``, ``join``."""

from __future__ import annotations

import json
from typing import Annotated, cast, get_args

import typer

from lancepart.cli.command import AtVersion, Columns, MayLimit, Root, Where, command
from lancepart.cli.look import shown
from lancepart.cli.shell import Answer, Shell, key_values
from lancepart.cli.usage import UsageError, among, choice
from lancepart.model.aliases import JoinType
from lancepart.queries.connection import connect
from lancepart.queries.connection import sql as run_sql

_HOW = among(get_args(JoinType))
Explain = Annotated[bool, typer.Option("--explain", help="Show the plan instead of rows.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app)(sql)
    command(app)(search)
    command(app)(join)


def sql(
    shell: Shell,
    query: Annotated[str, typer.Argument(help="The query: SQL in DataFusion's dialect.")],
    tables: Annotated[
        list[str], typer.Argument(help="Tables by name, name=TABLE; or one warehouse.", metavar="[NAME=TABLE]...")
    ] = [],  # noqa: B006
    limit: MayLimit = None,
    explain: Explain = False,
) -> Answer:
    """Run a query over tables that are given by name, or over all tables of a warehouse."""
    warehouses = [each for each in tables if "=" not in each]
    if len(warehouses) > 1:
        raise UsageError(f"{warehouses[1]!r}: name the tables as name=TABLE, and one warehouse at most")
    named = {name: shell.table(root) for name, root in key_values([t for t in tables if "=" in t], "table").items()}
    if warehouses:
        found = connect(warehouses[0], storage_options=shell.storage or None).sql(query, params=None, **named)
    else:
        found = run_sql(query, params=None, **named)
    return _explained(found.explain()) if explain else shown(found.to_arrow(), shell.most(limit, 100))


def search(
    shell: Shell,
    root: Root,
    query: Annotated[str, typer.Argument(help="A text, or a vector as a JSON list: '[0.1, 0.2]'.")],
    on: Annotated[str | None, typer.Option("--on", help="The column that is searched.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many rows.")] = 10,
    where: Where = None,
    column: Columns = [],  # noqa: B006
    version: AtVersion = None,
    explain: Explain = False,
) -> Answer:
    """Find the rows whose vectors are nearest, or whose texts match best."""
    found = shell.table(root, version).search(query_of(query), on, k, where, column or None)
    return _explained(found.explain()) if explain else shown(found.to_arrow())


def query_of(text: str) -> str | list[float]:
    """A query: a JSON list of numbers is a vector, everything else a text.

    >>> query_of("[1, 0.5]"), query_of("red fox")
    ([1, 0.5], 'red fox')
    """
    if not text.lstrip().startswith("["):
        return text
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(item, int | float) for item in found):
        raise UsageError(f"{text!r} is no vector: write a JSON list of numbers, such as '[0.1, 0.2]'")
    return found


def join(
    shell: Shell,
    left: Root,
    right: Annotated[str, typer.Argument(help="The other table.", metavar="TABLE")],
    on: Annotated[list[str], typer.Option("--on", help="A key: id, or left=right where the names differ.")],
    how: Annotated[str, typer.Option("--how", help="inner, left, right, full, semi or anti", autocompletion=_HOW)] = (
        "inner"
    ),
    where: Where = None,
    column: Columns = [],  # noqa: B006
    limit: MayLimit = None,
    explain: Explain = False,
) -> Answer:
    """Join two tables, partition by partition where these agree."""
    choice("--how", how, get_args(JoinType))
    keys = [(key.partition("=")[0], key.partition("=")[2]) if "=" in key else key for key in on]
    found = shell.table(left).join(shell.table(right), keys, cast(JoinType, how), where, column or None)
    if explain:
        return _explained(found.explain())
    return shown(found.to_arrow(), shell.most(limit, 10))


def _explained(text: str) -> Answer:
    return Answer(payload={"plan": text}, show=lambda console: console.print(text, markup=False))
