"""Tables made and filled: ``create``, ``load``, ``upsert``."""

from __future__ import annotations

from typing import Annotated

import typer

from lancepart.cli import files
from lancepart.cli.command import Root, command
from lancepart.cli.files import Source
from lancepart.cli.schema_text import parse_columns
from lancepart.cli.shell import Answer, Shell, committed
from lancepart.cli.target import Target
from lancepart.errors import InvalidInputError, NamespaceNotFoundError, TableNotFoundError
from lancepart.layout.metadata import STRONG, WEAK
from lancepart.table import PartitionedTable

By = Annotated[
    list[str], typer.Option("--by", help="A partition field: country, year(ts), bucket(id, 16); once for each level.")
]
Files = Annotated[list[str], typer.Argument(help="Files, directories or globs.", metavar="FILES...")]
Format = Annotated[
    str | None, typer.Option("--format", help="parquet, csv, json, arrow or lance; by the names if not given.")
]
Key = Annotated[str | None, typer.Option("--key", help="The run's name: of all runs with one name only one commits.")]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Show no progress.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app)(create)
    command(app)(load)
    command(app)(upsert)


def create(
    shell: Shell,
    root: Root,
    schema: Annotated[str | None, typer.Option("--schema", help="The columns: 'id int64, v float32[768]'.")] = None,
    like: Annotated[str | None, typer.Option("--like", help="A file whose columns the table gets.")] = None,
    by: By = [],  # noqa: B006
    weak: Annotated[bool, typer.Option("--weak", help="Commit each partition on its own.", show_default=False)] = False,
    layout: Annotated[str, typer.Option("--layout", help="manifest or hive")] = "manifest",
) -> Answer:
    """Make an empty table."""
    if (schema is None) == (like is None):
        raise InvalidInputError("give the columns with --schema 'id int64, country string', or a file with --like")
    if schema is not None:
        columns = parse_columns(schema)
    else:
        assert like is not None
        names = files.found([like])
        columns = Source.of(names, files.format_of(names, None)).schema
    mode = WEAK if weak else STRONG
    made = Target.parse(root).create(columns, by, shell.storage, transactions=mode, layout=layout)
    return Answer(payload={"root": made.root, "version": made.version, "columns": columns.names, "partition_by": by})


def load(
    shell: Shell,
    root: Root,
    file: Files,
    format: Format = None,
    mode: Annotated[
        str, typer.Option("--mode", help="append, or overwrite the partitions that the rows touch")
    ] = "append",
    by: By = [],  # noqa: B006
    key: Key = None,
    no_progress: NoProgress = False,
) -> Answer:
    """Load files in one commit; with --by a table that is not there yet is made."""
    if mode not in ("append", "overwrite"):
        raise InvalidInputError(f"--mode is {mode!r}: use append or overwrite; lancepart upsert replaces rows by key")
    names = files.found(file)
    kind = files.format_of(names, format)
    table, made = _opened(shell, root, names, kind, by)
    rows = Source.of(names, kind, table.schema).reader(progress=not no_progress)
    write = table.append if mode == "append" else table.overwrite
    with files.read_errors():
        version = write(rows, idempotency_key=key)
    summary = {"root": table.root, **committed(version), "files": len(names)}
    return Answer(payload={**summary, "rows": table.scan().count(), "created": made})


def _opened(shell: Shell, root: str, names: list[str], kind: str, by: list[str]) -> tuple[PartitionedTable, bool]:
    """The table to load, made if it is not there and its partitioning is given; whether it was made."""
    try:
        return shell.table(root), False
    except (NamespaceNotFoundError, TableNotFoundError) as error:
        if not by:
            raise TableNotFoundError(f"{error}, lancepart create, or give --by to load") from None
    columns = Source.of(names, kind).schema
    return Target.parse(root).create(columns, by, shell.storage), True


def upsert(
    shell: Shell,
    root: Root,
    file: Files,
    on: Annotated[list[str], typer.Option("--on", help="A key column; once for each.")],
    format: Format = None,
    key: Key = None,
    no_progress: NoProgress = False,
) -> Answer:
    """Replace the rows that have a key of the files', and add the others, in one commit."""
    names = files.found(file)
    kind = files.format_of(names, format)
    table = shell.table(root)
    rows = files.uneven_rows(names) if kind == "json" else None
    if rows is None:
        rows = Source.of(names, kind, table.schema).reader(progress=not no_progress)
    with files.read_errors():
        version = table.upsert(rows, on=on, idempotency_key=key)
    summary = {"root": table.root, **committed(version), "files": len(names)}
    return Answer(payload={**summary, "rows": table.scan().count()})
