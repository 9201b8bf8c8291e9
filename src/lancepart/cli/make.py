"""Tables made and filled: ``create``, ``load``, ``upsert``."""

from __future__ import annotations

from typing import Annotated, cast, get_args

import typer

from lancepart.cli import files
from lancepart.cli.command import Root, command
from lancepart.cli.schema_text import parse_columns
from lancepart.cli.shell import VERSIONS, Answer, Shell, committed
from lancepart.cli.target import Target
from lancepart.cli.usage import UsageError, among, choice
from lancepart.errors import TableNotFoundError
from lancepart.layout.same_definition import refuse_other_partitioning
from lancepart.model.aliases import FileFormat, TableLayout, Transactions
from lancepart.storage.row_files import RowFiles
from lancepart.table import PartitionedTable

_MODES = ("append", "overwrite")
By = Annotated[
    list[str], typer.Option("--by", help="A partition field: country, year(ts), bucket(id, 16); once for each level.")
]
Files = Annotated[list[str], typer.Argument(help="Files, directories or globs.", metavar="FILES...")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="parquet, csv, json, arrow or lance; by the names if not given.",
        autocompletion=among(get_args(FileFormat)),
    ),
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
    layout: Annotated[
        str, typer.Option("--layout", help="manifest or hive", autocompletion=among(get_args(TableLayout)))
    ] = "manifest",
) -> Answer:
    """Make an empty table."""
    choice("--layout", layout, get_args(TableLayout))
    if (schema is None) == (like is None):
        raise UsageError("give the columns with --schema 'id int64, country string', or a file with --like")
    if schema is not None:
        columns = parse_columns(schema)
    else:
        assert like is not None
        columns = files.found(shell, [like]).reader().schema.remove_metadata()
    mode: Transactions = "weak" if weak else "strong"
    made = Target.parse(root).create(columns, by, shell.storage, transactions=mode, layout=cast(TableLayout, layout))
    payload = {"root": made.root, "version": made.version, "columns": columns.names, "partition_by": by}
    return Answer(payload=payload, note=VERSIONS)


def load(
    shell: Shell,
    root: Root,
    file: Files,
    format: Format = None,
    mode: Annotated[
        str,
        typer.Option(
            "--mode", help="append, or overwrite the partitions that the rows touch", autocompletion=among(_MODES)
        ),
    ] = "append",
    by: By = [],  # noqa: B006
    key: Key = None,
    no_progress: NoProgress = False,
) -> Answer:
    """Load files in one commit; with --by a table that is not there yet is made."""
    choice("--mode", mode, _MODES)
    given = files.found(shell, file, format)
    target = Target.parse(root)
    made = None if target.exists(shell.storage) else _made(shell, target, given, by)
    table = made or shell.table(root)
    if made is None and by:
        refuse_other_partitioning(table.metadata, by)
    write = table.append if mode == "append" else table.overwrite
    try:
        with files.reading(given, table.schema, progress=not no_progress) as rows:
            version = write(rows, idempotency_key=key)
    except BaseException:
        if made is not None:
            target.discard(made, shell.storage)
        raise
    summary = {"root": table.root, **committed(version)}
    return Answer(payload={**summary, "rows": table.scan().count(), "created": made is not None}, note=VERSIONS)


def _made(shell: Shell, target: Target, given: RowFiles, by: list[str]) -> PartitionedTable:
    """A new table with the columns of the files."""
    if not by:
        raise TableNotFoundError(
            f"there is no table at {str(target)!r}: make one with lancepart create, or give --by to make it by loading"
        )
    return target.create(given.reader().schema.remove_metadata(), by, shell.storage)


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
    given = files.found(shell, file, format, same_columns=True)
    table = shell.table(root)
    uneven = files.uneven_rows(given, table.schema)
    if uneven is not None:
        version = table.upsert(uneven, on=on, idempotency_key=key)
    else:
        with files.reading(given, table.schema, progress=not no_progress) as rows:
            version = table.upsert(rows, on=on, idempotency_key=key)
    return Answer(payload={"root": table.root, **committed(version), "rows": table.scan().count()})
