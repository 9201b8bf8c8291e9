"""Upkeep: ``compact``, ``rewrite``, ``expire``, ``orphans``, ``index``, ``upgrade``, ``check``."""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Any, cast, get_args

import typer
from rich.console import Console

from lancepart.cli.command import FINDINGS, DryRun, Root, Where, command
from lancepart.cli.output import show_record, show_rows
from lancepart.cli.shell import Answer, Shell, key_values
from lancepart.cli.target import Target
from lancepart.cli.usage import UsageError, among, choice
from lancepart.errors import InvalidInputError, TableIndexNotFoundError
from lancepart.maintain.leaf_maintenance import TARGET_ROWS, MaintenanceResult
from lancepart.maintain.maintenance import Maintenance
from lancepart.model.aliases import IndexKind, IndexScope
from lancepart.model.duration import age
from lancepart.model.suggest import near
from lancepart.report.health import expiring
from lancepart.report.values import counted, rows_of, size
from lancepart.table import PartitionedTable
from lancepart.table import upgrade as upgrade_table

Age = Annotated[str, typer.Option("--older-than", help="An age such as 7d, 12h or 30m, or a moment.")]
_SCOPES = get_args(IndexScope)
_INDICES = ["name", "scope", "type", "columns", "leaves", "rows", "indexed_rows"]
_BROKEN = ["object_id", "partition", "error"]
_UNIONS = ["uri", "error"]
_SEGMENTS = ["name", "segment", "error"]
_UNPUBLISHED = ["object_id", "read_version", "main_version", "main_rows"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app)(compact)
    command(app)(rewrite)
    command(app, destroys=True)(expire)
    command(app, destroys=True)(orphans)
    command(app, destroys=True)(index)
    command(app, destroys=True)(upgrade)
    command(app, destroys=True)(check)


def _done(result: MaintenanceResult) -> Answer:
    payload = asdict(result)

    def show(console: Console) -> None:
        kept = {key: value for key, value in payload.items() if value not in (None, (), 0) or key == "changed"}
        show_record(console, kept | ({"freed_bytes": size(result.freed_bytes)} if result.freed_bytes else {}))

    return Answer(payload=payload, show=show)


def _age(text: str) -> timedelta | datetime:
    try:
        return age(text)
    except InvalidInputError as error:
        raise UsageError(f"--older-than {error}") from None


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
    table, limit = shell.table(root), _age(older_than)
    old = expiring(table, limit)
    if dry_run:
        names = ["version", "timestamp", "operation"]
        return Answer(payload=old, show=lambda console: show_rows(console, old, names))
    shell.confirm(f"this forgets {counted(len(old), 'snapshot')} of {table.root}")
    return _done(table.maintenance.expire(limit))


def orphans(shell: Shell, root: Root, older_than: Age = "7d", dry_run: DryRun = False) -> Answer:
    """Remove files that failed writers left; the age must be longer than the longest write."""
    table, limit = shell.table(root), _age(older_than)
    found = table.maintenance.remove_orphans(limit, dry_run=True)
    if dry_run or not found.removed_files:
        return _done(found)
    files = counted(found.removed_files, "file")
    shell.confirm(f"this removes {files}, {size(found.freed_bytes)}, that no snapshot names")
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
    scope: Annotated[
        str,
        typer.Option("--scope", help="leaf, table or auto: where the index is", autocompletion=among(_SCOPES)),
    ] = "auto",
    param: Annotated[list[str], typer.Option("--param", help="A parameter of the index, key=value.")] = [],  # noqa: B006
    optimize: Annotated[
        bool, typer.Option("--optimize", help="Cover new rows and partitions.", show_default=False)
    ] = False,
    drop: Annotated[str | None, typer.Option("--drop", help="The name of an index that goes.")] = None,
    dry_run: DryRun = False,
) -> Answer:
    """Show the indices, build one, cover new rows and partitions, or drop one."""
    choice("--scope", scope, _SCOPES)
    table = shell.table(root)
    if (column is not None) + optimize + (drop is not None) > 1:
        raise UsageError("give one of a column, --optimize and --drop")
    if dry_run and drop is None:
        raise UsageError("--dry-run shows what --drop would do: give it with --drop NAME")
    if optimize:
        return _done(table.maintenance.optimize_indices())
    if drop is not None:
        if dry_run:
            return _dropped(table, drop)
        shell.confirm(f"this drops the index {drop} of {table.root}")
        return _done(table.maintenance.drop_index(drop))
    if column is not None:
        given = _parameters(param)
        chosen, place = cast("IndexKind | None", kind), cast("IndexScope", scope)
        return _done(table.maintenance.create_index(column, chosen, scope=place, where=where, name=name, **given))
    rows = _indices(table)
    return Answer(payload=rows, show=lambda console: show_rows(console, rows, _INDICES))


def _dropped(table: PartitionedTable, name: str) -> Answer:
    """What dropping an index would do."""
    known = _indices(table)
    found = [row for row in known if row["name"] == name]
    if not found:
        hint = near(name, [str(row["name"]) for row in known])
        raise TableIndexNotFoundError(f"there is no index {name!r}{hint}; lancepart index TABLE shows them")
    return Answer(payload={"root": table.root, "dry_run": True, **found[0]})


def _indices(table: PartitionedTable) -> list[dict[str, object]]:
    """The indices of a table, all leaves of each together."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in table.inspect.indices().to_pylist():
        own = {key: row[key] for key in ("name", "scope", "type")} | {"columns": ", ".join(row["columns"])}
        known = found.setdefault((row["name"], row["scope"]), {**own, "leaves": 0, "rows": 0, "indexed_rows": 0})
        known["leaves"] += 1 if row["indexed_rows"] else 0
        known["rows"] += row["rows"]
        known["indexed_rows"] += row["indexed_rows"]
    return list(found.values())


def _parameters(texts: list[str]) -> dict[str, Any]:
    """Lance's parameters of an index; what the command has an option or an argument for is none of them."""
    given = key_values(texts, "--param")
    if known := [name for name in given if name in inspect.signature(Maintenance.create_index).parameters]:
        where = "the command's own: lancepart index -h shows how to give it"
        if known[0] in ("progress", "self", "spark", "params"):
            where = "no parameter of an index: leave it out"
        raise UsageError(f"--param {known[0]!r} is {where}")
    return {name: _value(text) for name, text in given.items()}


def _value(text: str) -> Any:
    """A parameter of Lance's: a number or a boolean where it reads as one."""
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


def check(
    shell: Shell,
    root: Root,
    repair: Annotated[
        bool, typer.Option("--repair", help="Empty the leaves that can't be read.", show_default=False)
    ] = False,
    dry_run: DryRun = False,
) -> Answer:
    """Look for leaves, published unions and table-wide indices that can't be read; exit code 5 if there are any.

    Commits that bypassed the table are found too.
    """
    table = shell.table(root)
    if repair:
        return _repaired(shell, table, dry_run=dry_run)
    inspect = table.inspect
    broken, unpublished = rows_of(inspect.broken()), rows_of(inspect.unpublished_commits())
    unions, indices = rows_of(inspect.broken_unions()), rows_of(inspect.broken_indices())
    payload = {"broken": broken, "unpublished": unpublished, "unions": unions, "indices": indices}

    def show(console: Console) -> None:
        if not any(payload.values()):
            console.print("every leaf, union and index has its files; no commit bypassed the table")
        if broken:
            console.print(f"{len(broken)} leaves can't be read: bring their files back, or run check --repair")
            show_rows(console, broken, _BROKEN)
        if unpublished:
            console.print(f"{len(unpublished)} leaves have commits that no snapshot names: readers do not see them")
            show_rows(console, unpublished, _UNPUBLISHED)
        if unions:
            console.print(f"{len(unions)} published unions can't be read: unpublish them and publish them again")
            show_rows(console, unions, _UNIONS)
        if indices:
            console.print(
                f"{len(indices)} segments of table-wide indices can't be read: drop and create the indices again"
            )
            show_rows(console, indices, _SEGMENTS)

    return Answer(payload=payload, show=show, code=FINDINGS if any(payload.values()) else 0)


def _repaired(shell: Shell, table: PartitionedTable, *, dry_run: bool) -> Answer:
    """Give up the leaves that can't be read, after a yes; their rows can be loaded again."""
    found = table.maintenance.repair(dry_run=True)
    if dry_run or not found.skipped:
        return _done(found)
    shell.confirm(
        f"this empties {len(found.skipped):,} leaves of {table.root} that can't be read, and their rows are lost; "
        "bring their files back from a backup first if there is one"
    )
    return _done(table.maintenance.repair(found.skipped))
