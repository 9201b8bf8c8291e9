"""Upkeep: ``compact``, ``rewrite``, ``expire``, ``orphans``, ``index``, ``upgrade``, ``check``."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.console import Console

from lancepart.cli.command import FINDINGS, DryRun, Root, Where, command
from lancepart.cli.output import rows_of, show_record, show_rows, size
from lancepart.cli.shell import Answer, Shell, key_values
from lancepart.cli.target import Target
from lancepart.errors import InvalidInputError
from lancepart.maintain.collect import SAFE_AGE
from lancepart.maintain.leaf_maintenance import TARGET_ROWS, MaintenanceResult
from lancepart.model.duration import age
from lancepart.table import PartitionedTable
from lancepart.table import upgrade as upgrade_table

Age = Annotated[str, typer.Option("--older-than", help="An age such as 7d, 12h or 30m, or a moment.")]
_INDICES = ["name", "type", "columns", "leaves", "rows", "indexed_rows"]
_BROKEN = ["object_id", "partition", "error"]
_UNPUBLISHED = ["object_id", "read_version", "main_version", "main_rows"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app)(compact)
    command(app)(rewrite)
    command(app, destroys=True)(expire)
    command(app, destroys=True)(orphans)
    command(app, destroys=True)(index)
    command(app, destroys=True)(upgrade)
    command(app)(check)


def _done(result: MaintenanceResult) -> Answer:
    payload = asdict(result)

    def show(console: Console) -> None:
        kept = {key: value for key, value in payload.items() if value not in (None, (), 0) or key == "changed"}
        show_record(console, kept | ({"freed_bytes": size(result.freed_bytes)} if result.freed_bytes else {}))

    return Answer(payload=payload, show=show)


def compact(
    shell: Shell,
    root: Root,
    target_rows: Annotated[int, typer.Option("--target-rows", min=1, help="Rows of a fragment.")] = TARGET_ROWS,
) -> Answer:
    """Put small fragments together and drop deleted rows."""
    return _done(shell.table(root).maintenance.compact(target_rows=target_rows))


def rewrite(shell: Shell, root: Root, where: Where = None) -> Answer:
    """Move rows that older partitionings placed into the partitions of the newest."""
    return _done(shell.table(root).maintenance.rewrite(where))


def expire(shell: Shell, root: Root, older_than: Age, dry_run: DryRun = False) -> Answer:
    """Forget old snapshots and remove what only they needed; the last hour and tagged ones stay."""
    table, limit = shell.table(root), age(older_than)
    old = expiring(table, limit)
    if dry_run:
        names = ["version", "timestamp", "operation"]
        return Answer(payload=old, show=lambda console: show_rows(console, old, names))
    shell.confirm(f"this forgets {len(old):,} snapshots of {table.root}")
    return _done(table.maintenance.expire(limit))


def expiring(table: PartitionedTable, older_than: timedelta | datetime) -> list[dict[str, object]]:
    """The snapshots that an expiry would forget, as far as this machine's clock tells."""
    now = datetime.now(UTC)
    cutoff = min(now - older_than if isinstance(older_than, timedelta) else older_than, now - SAFE_AGE)
    tagged = set(table.tags.list().values())
    found = table.inspect.snapshots()
    newest = table.version
    stamps = found.column("timestamp").to_pylist()
    rows = [row for row, taken in zip(rows_of(found), stamps, strict=True) if taken < cutoff]
    return [row for row in rows[:-1] if row["version"] not in tagged and row["version"] != newest] if rows else []


def orphans(shell: Shell, root: Root, older_than: Age = "7d", dry_run: DryRun = False) -> Answer:
    """Remove files that failed writers left; the age must be longer than the longest write."""
    table, limit = shell.table(root), age(older_than)
    found = table.maintenance.remove_orphans(limit, dry_run=True)
    if dry_run or not found.removed_files:
        return _done(found)
    shell.confirm(f"this removes {found.removed_files:,} files, {size(found.freed_bytes)}, that no snapshot names")
    return _done(table.maintenance.remove_orphans(limit))


def index(
    shell: Shell,
    root: Root,
    column: Annotated[str | None, typer.Argument(help="The column; without one all indices are shown.")] = None,
    kind: Annotated[
        str | None, typer.Argument(help="BTREE, BITMAP, INVERTED, IVF_PQ, …; by the type if not given.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="What the index is called.")] = None,
    where: Where = None,
    param: Annotated[list[str], typer.Option("--param", help="A parameter of the index, key=value.")] = [],  # noqa: B006
    optimize: Annotated[
        bool, typer.Option("--optimize", help="Cover new rows and partitions.", show_default=False)
    ] = False,
    drop: Annotated[str | None, typer.Option("--drop", help="The name of an index that goes.")] = None,
) -> Answer:
    """Show the indices, build one in every leaf, cover new rows, or drop one."""
    table = shell.table(root)
    if (column is not None) + optimize + (drop is not None) > 1:
        raise InvalidInputError("give one of a column, --optimize and --drop")
    if optimize:
        return _done(table.maintenance.optimize_indices())
    if drop is not None:
        shell.confirm(f"this drops the index {drop} of {table.root}")
        return _done(table.maintenance.drop_index(drop))
    if column is not None:
        given = {key: _value(text) for key, text in key_values(param, "--param").items()}
        return _done(table.maintenance.create_index(column, kind, name=name, where=where, **given))
    rows = _indices(table)
    return Answer(payload=rows, show=lambda console: show_rows(console, rows, _INDICES))


def _indices(table: PartitionedTable) -> list[dict[str, object]]:
    """The indices of a table, all leaves of each together."""
    found: dict[str, dict[str, Any]] = {}
    for row in table.inspect.indices().to_pylist():
        own = {"name": row["name"], "type": row["type"], "columns": ", ".join(row["columns"])}
        known = found.setdefault(row["name"], {**own, "leaves": 0, "rows": 0, "indexed_rows": 0})
        known["leaves"] += 1 if row["indexed_rows"] else 0
        known["rows"] += row["rows"]
        known["indexed_rows"] += row["indexed_rows"]
    return list(found.values())


def _value(text: str) -> Any:
    """A parameter of Lance's: a number or a truth where it reads as one."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def upgrade(
    shell: Shell,
    root: Root,
    remove_old: Annotated[bool, typer.Option("--remove-old", help="Remove the old tree.", show_default=False)] = False,
) -> Answer:
    """Turn a table of an older layout into the current one."""
    target = Target.parse(root)
    if remove_old:
        shell.confirm(f"this removes the old tree of {target}")
    options = shell.storage or None
    done = upgrade_table(target.root, namespace=target.path, remove_old=remove_old, storage_options=options)
    return Answer(payload={"root": done.root, "layout": done.metadata.layout, "version": done.version})


def check(shell: Shell, root: Root) -> Answer:
    """Look for leaves that can't be read, and for commits that bypassed the table; exit code 5 if there are any."""
    inspect = shell.table(root).inspect
    broken, unpublished = rows_of(inspect.broken()), rows_of(inspect.unpublished_commits())

    def show(console: Console) -> None:
        if not broken and not unpublished:
            console.print("every leaf can be opened and has its files; no commit bypassed the table")
        if broken:
            console.print(f"{len(broken)} leaves can't be read: bring their files back, or delete or overwrite them")
            show_rows(console, broken, _BROKEN)
        if unpublished:
            console.print(f"{len(unpublished)} leaves have commits that no snapshot names: readers do not see them")
            show_rows(console, unpublished, _UNPUBLISHED)

    payload = {"broken": broken, "unpublished": unpublished}
    return Answer(payload=payload, show=show, code=FINDINGS if broken or unpublished else 0)
