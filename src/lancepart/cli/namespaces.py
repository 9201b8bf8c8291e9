"""``ns``: the catalog of a warehouse."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated

import typer
from lance_namespace import (
    CreateNamespaceRequest,
    DescribeNamespaceRequest,
    DropNamespaceRequest,
    DropTableRequest,
    ListTablesRequest,
)

from lancepart.catalog import dropping, namespaces, rename, tables
from lancepart.catalog.context import Catalog
from lancepart.catalog.properties import own_root
from lancepart.cli.command import DryRun, command
from lancepart.cli.output import show_rows
from lancepart.cli.shell import Answer, Shell, key_values
from lancepart.cli.target import Target
from lancepart.cli.usage import UsageError
from lancepart.errors import NamespaceNotEmptyError, NamespaceNotFoundError
from lancepart.format.names import NAMESPACE
from lancepart.layout.opening import refuse_table
from lancepart.model.ids import object_id
from lancepart.model.table_names import joined
from lancepart.storage.root_contents import beneath

NAMESPACE_KIND, PARTITIONED, PLAIN = "namespace", "partitioned table", "plain table"
Place = Annotated[
    str, typer.Argument(help="A warehouse, or warehouse:namespace in it.", metavar="WAREHOUSE[:NAMESPACE]")
]

ns = typer.Typer(help="The catalog of a warehouse: its namespaces and tables.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    app.add_typer(ns, name="ns")


def _catalog(shell: Shell, target: Target) -> Catalog:
    """The catalog at a root; what is in the root of a table are its leaves, which only the table changes."""
    found = Catalog.of({"root": target.root, **{f"storage.{key}": value for key, value in shell.storage.items()}})
    refuse_table(found.root, found.snapshot())
    return found


def _existing(shell: Shell, target: Target) -> Catalog:
    """The catalog at a root, which must be there if it is a local directory."""
    catalog = _catalog(shell, target)
    if catalog.root.is_local and not os.path.isdir(catalog.root.uri):
        raise NamespaceNotFoundError(f"there is no directory {target.root!r}: give that of a warehouse")
    return catalog


@command(ns, "list")
def list_all(
    shell: Shell,
    place: Place,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="All levels.", show_default=False)] = False,
) -> Answer:
    """Show the namespaces and tables of a warehouse or of a namespace."""
    target = Target.parse(place)
    catalog = _existing(shell, target)
    catalog.require_namespace(catalog.snapshot(), target.path)
    if not target.path and (found := beneath(catalog.root)):
        raise NamespaceNotFoundError(
            f"{target.root!r} is no warehouse: give a table beneath it to lancepart info, such as {found[0]!r}"
        )
    rows = [{"name": joined(path), "kind": kind} for path, kind in _children(catalog, target.path, recursive)]
    return Answer(payload=rows, show=lambda console: show_rows(console, rows, ["name", "kind"]))


def _children(catalog: Catalog, path: tuple[str, ...], recursive: bool) -> Iterator[tuple[tuple[str, ...], str]]:
    snapshot = catalog.snapshot()
    names = snapshot.names(object_id(path), NAMESPACE)
    rows = snapshot.rows(object_id([*path, name]) for name in names)
    for name in names:
        below = (*path, name)
        is_table = own_root(rows[object_id(below)].metadata) is not None
        yield below, PARTITIONED if is_table else NAMESPACE_KIND
        if recursive and not is_table:
            yield from _children(catalog, below, recursive)
    for name in tables.list_tables(catalog, ListTablesRequest(id=list(path))).tables:
        yield (*path, name), PLAIN


@command(ns)
def create(
    shell: Shell,
    place: Place,
    prop: Annotated[list[str], typer.Option("--property", help="A property, key=value.")] = [],  # noqa: B006
) -> Answer:
    """Make a namespace."""
    target = _named(place)
    properties = key_values(prop, "--property")
    try:
        namespaces.create(_catalog(shell, target), CreateNamespaceRequest(id=list(target.path), properties=properties))
    except NamespaceNotFoundError as error:
        above = f"{target.root}:{joined(target.path[:-1])}"
        raise NamespaceNotFoundError(f"{error}: make it first, with lancepart ns create {above}") from None
    return Answer(payload={"name": joined(target.path), "properties": properties})


@command(ns)
def describe(shell: Shell, place: Place) -> Answer:
    """Show the properties of a namespace."""
    target = _named(place)
    found = namespaces.describe(_catalog(shell, target), DescribeNamespaceRequest(id=list(target.path)))
    return Answer(payload={"name": joined(target.path), "properties": found.properties or {}})


@command(ns, destroys=True)
def drop(
    shell: Shell,
    place: Place,
    cascade: Annotated[bool, typer.Option("--cascade", help="With all that is in it.", show_default=False)] = False,
    dry_run: DryRun = False,
) -> Answer:
    """Drop a namespace or a table, with all its rows."""
    target = _named(place)
    catalog, path, name = _catalog(shell, target), list(target.path), joined(target.path)
    snapshot = catalog.snapshot()
    row = snapshot.row(object_id(path))
    is_namespace = row is not None and row.object_type == NAMESPACE
    if not is_namespace:
        tables.require(catalog, snapshot, path)
    is_table = not is_namespace or own_root(row.metadata if row is not None else None) is not None
    inside = [] if is_table else [joined(each) for each, _ in _children(catalog, target.path, True)]
    payload = {"name": name, "kind": "table" if is_table else NAMESPACE_KIND, "inside": inside, "dry_run": dry_run}
    if dry_run:
        return Answer(payload=payload)
    if inside and not cascade:
        shown = ", ".join(inside[:3]) + (", …" if len(inside) > 3 else "")
        raise NamespaceNotEmptyError(f"namespace {name!r} is not empty: it has {shown}; --cascade drops these too")
    more = f" with {len(inside):,} {'object' if len(inside) == 1 else 'objects'} in it" if inside else ""
    shell.confirm(f"this drops the {payload['kind']} {name}{more}")
    if is_namespace:
        behavior = "Cascade" if cascade or is_table else "Restrict"
        namespaces.drop(catalog, DropNamespaceRequest(id=path, behavior=behavior))
    else:
        dropping.drop(catalog, DropTableRequest(id=path))
    return Answer(payload=payload)


@command(ns)
def migrate(shell: Shell, place: Place) -> Answer:
    """Enter the tables that only a listing finds into the manifest."""
    return Answer(payload={"migrated": rename.migrate(_existing(shell, Target.parse(place)))})


def _named(place: str) -> Target:
    target = Target.parse(place)
    if not target.path:
        raise UsageError(f"{place!r} names no namespace: write warehouse:namespace")
    return target
