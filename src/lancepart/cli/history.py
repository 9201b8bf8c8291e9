"""Snapshots: ``snapshots``, ``changes``, ``tag``, ``rollback``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from lancepart.cli.command import DryRun, MayLimit, Root, command
from lancepart.cli.look import shown
from lancepart.cli.output import show_rows
from lancepart.cli.shell import VERSIONS, Answer, Shell, snapshot_of
from lancepart.cli.usage import UsageError
from lancepart.report.values import rows_of

_SHOWN = ["version", "timestamp", "operation", "partitions", "rows_added", "rows_deleted", "by", "tags"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app)(snapshots)
    command(app)(changes)
    command(app, destroys=True)(tag)
    command(app, destroys=True)(rollback)


def snapshots(shell: Shell, root: Root, limit: MayLimit = None) -> Answer:
    """Show the commits that are kept, the newest first."""
    table = shell.table(root)
    names: dict[int, list[str]] = {}
    for name, version in table.tags.list().items():
        names.setdefault(version, []).append(name)
    every = rows_of(table.inspect.snapshots())[::-1]
    rows = every[: shell.most(limit, 20)]
    found = [{**row, "tags": ", ".join(names.get(int(str(row["version"])), []))} for row in rows]

    def show(console: Console) -> None:
        show_rows(console, found, _SHOWN)
        if more := len(every) - len(found):
            console.print(f"… and {more:,} more {'snapshot' if more == 1 else 'snapshots'}: -n shows more")

    return Answer(payload=found, show=show, note=VERSIONS)


def changes(
    shell: Shell,
    root: Root,
    since: Annotated[str, typer.Argument(help="A snapshot: its number, a tag or a moment.")],
    until: Annotated[str | None, typer.Argument(help="A later one; the newest unless given.")] = None,
    limit: MayLimit = None,
) -> Answer:
    """Show the rows that were inserted and deleted between two snapshots."""
    last = None if until is None else snapshot_of(until)
    return shown(shell.table(root).changes(snapshot_of(since), last), shell.most(limit, 20))


def tag(
    shell: Shell,
    root: Root,
    name: Annotated[str | None, typer.Argument(help="The tag; without one all are shown.")] = None,
    version: Annotated[int | None, typer.Option("--version", help="The snapshot; the newest unless given.")] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Take the name away.", show_default=False)] = False,
    dry_run: DryRun = False,
) -> Answer:
    """Show the tags, or name a snapshot, which then does not expire."""
    table = shell.table(root)
    if name is None:
        if delete or version is not None:
            raise UsageError("name the tag: lancepart tag TABLE NAME")
    elif delete:
        version = table.tags.list().get(name)
        if dry_run and version is not None:
            return Answer(payload={"root": table.root, "dry_run": True, "tag": name, "version": version})
        if version is not None:
            shell.confirm(f"this deletes the tag {name} of snapshot {version}, which may then expire")
        table.tags.delete(name)
    elif dry_run:
        raise UsageError("--dry-run shows what --delete would do: give it with --delete")
    else:
        table.tags.create(name, table.version if version is None else version)
    rows = [{"tag": each, "version": number} for each, number in sorted(table.tags.list().items())]
    return Answer(payload=rows, show=lambda console: show_rows(console, rows, ["tag", "version"]))


def rollback(
    shell: Shell,
    root: Root,
    version: Annotated[str, typer.Argument(help="A snapshot: its number, a tag or a moment.")],
    dry_run: DryRun = False,
) -> Answer:
    """Bring back the rows of an older snapshot, as a new one."""
    table, past = shell.table(root), shell.table(root, version)
    if dry_run:
        payload = {"root": table.root, "dry_run": True, "version": table.version, "to": past.version}
        return Answer(payload={**payload, "rows": table.count(), "rows_after": past.count()})
    shell.confirm(f"this replaces the rows of {table.root} by those of snapshot {version}")
    done = table.maintenance.rollback(snapshot_of(version))
    return Answer(payload={"root": table.root, "version": done, "rows": table.scan().count()})
