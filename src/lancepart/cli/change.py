"""Rows and definitions changed: ``delete``, ``evolve``, ``columns``."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

from lancepart.cli.command import DryRun, Root, command
from lancepart.cli.output import show_rows
from lancepart.cli.schema_text import parse_column
from lancepart.cli.shell import Answer, Shell, committed, key_values
from lancepart.cli.usage import UsageError
from lancepart.errors import TableColumnNotFoundError
from lancepart.layout import evolution
from lancepart.maintain.describe import partition_by
from lancepart.model.suggest import near
from lancepart.report.values import counted, rows_of
from lancepart.table import PartitionedTable


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, destroys=True)(delete)
    command(app)(evolve)
    command(app, destroys=True)(columns)


def delete(
    shell: Shell,
    root: Root,
    where: Annotated[str, typer.Argument(help="Which rows: SQL in DataFusion's dialect; 'true' means all.")],
    dry_run: DryRun = False,
) -> Answer:
    """Delete the rows that match, in one commit."""
    table = shell.table(root)
    if not where.strip():
        raise UsageError("the filter is empty: write 'true' to mean all rows")
    scan = table.scan(where)
    count, leaves = scan.count(), len(scan.plan().leaves)
    payload: dict[str, object] = {"root": table.root, "rows": count, "leaves": leaves, "dry_run": dry_run}
    if dry_run or not count:
        return Answer(payload={**payload, "version": table.version})
    shell.confirm(f"this deletes {counted(count, 'row')} in at most {counted(leaves, 'partition')}")
    return Answer(payload={**payload, **committed(table.delete(where))})


def evolve(
    shell: Shell,
    root: Root,
    by: Annotated[list[str], typer.Argument(help="The partition fields of new rows: country, bucket(id, 16).")],
) -> Answer:
    """Partition new rows differently; rows that are there stay, and rewrite moves them."""
    table = shell.table(root)
    spec = table.update_spec(by)
    specs = [row for row in rows_of(table.inspect.specs()) if row["spec_id"] == spec.id]
    fields = partition_by(table.metadata)
    rows = [{**row, "partition_by": field} for row, field in zip(specs, fields, strict=True)]
    names = ["spec_id", "field_id", "partition_by", "result_type"]
    return Answer(payload=rows, show=lambda console: show_rows(console, rows, names))


def columns(
    shell: Shell,
    root: Root,
    add: Annotated[list[str], typer.Option("--add", help="A new column: 'name type'.")] = [],  # noqa: B006
    rename: Annotated[list[str], typer.Option("--rename", help="old=new")] = [],  # noqa: B006
    widen: Annotated[list[str], typer.Option("--widen", help="A larger type for a column: 'name type'.")] = [],  # noqa: B006
    drop: Annotated[list[str], typer.Option("--drop", help="A column that goes.")] = [],  # noqa: B006
    dry_run: DryRun = False,
) -> Answer:
    """Show the columns, or add, rename, widen and drop some; each change is a commit of its own."""
    table = shell.table(root)
    added, widened = [parse_column(text) for text in add], [parse_column(text) for text in widen]
    renamed = key_values(rename, "--rename", "old=new")
    if missing := [name for name in drop if name not in table.schema.names]:
        raise TableColumnNotFoundError(
            f"there is no column {missing[0]!r}: the table has {', '.join(table.schema.names)}"
            f"{near(missing[0], table.schema.names)}"
        )
    if dry_run:
        return _planned(table, added, renamed, widened, drop)
    if drop:
        shell.confirm(f"this removes the columns {', '.join(drop)}")
    for field in added:
        table.add_column(field)
    for old, new in renamed.items():
        table.rename_column(old, new)
    for field in widened:
        table.widen_column(field.name, field.type)
    for name in drop:
        table.drop_column(name)
    rows = [{"column": each.name, "type": str(each.type), "nullable": each.nullable} for each in table.schema]
    return Answer(payload=rows, show=lambda console: show_rows(console, rows, ["column", "type", "nullable"]))


def _planned(
    table: PartitionedTable, added: list[pa.Field], renamed: dict[str, str], widened: list[pa.Field], dropped: list[str]
) -> Answer:
    """What a change of columns would do."""
    rows = [{"change": "add", "column": field.name, "to": str(field.type)} for field in added]
    rows += [{"change": "rename", "column": old, "to": new} for old, new in renamed.items()]
    rows += [{"change": "widen", "column": field.name, "to": str(field.type)} for field in widened]
    rows += [{"change": "drop", "column": name, "to": ""} for name in dropped]
    _refuse_impossible(table, added, renamed, widened, dropped)
    payload = {"root": table.root, "dry_run": True, "changes": rows}
    return Answer(payload=payload, show=lambda console: show_rows(console, rows, ["change", "column", "to"]))


def _refuse_impossible(
    table: PartitionedTable, added: list[pa.Field], renamed: dict[str, str], widened: list[pa.Field], dropped: list[str]
) -> None:
    """Make the changes in memory alone, so that what the table would refuse is refused."""
    metadata = table.metadata
    for field in added:
        metadata = evolution.add_column(metadata, field)
    for old, new in renamed.items():
        metadata = evolution.rename_column(metadata, old, new)
    for field in widened:
        metadata = evolution.widen_column(metadata, field.name, field.type)
    for name in dropped:
        metadata = evolution.drop_column(metadata, name)
