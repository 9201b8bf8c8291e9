"""The procedures, one function each: run in this process, with the outcome as rows."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from lancepart import table
from lancepart.catalog.context import shown
from lancepart.errors import InvalidInputError, TableNotFoundError, UnsupportedOperationError
from lancepart.layout.metadata import TableMetadata
from lancepart.layout.opening import is_unmoved_tree
from lancepart.maintain.leaf_maintenance import MaintenanceResult
from lancepart.model.duration import age
from lancepart.model.ids import object_id
from lancepart.model.snapshot_text import number_or_tag
from lancepart.queries.warehouse import Entry, Warehouse
from lancepart.spark import altering, garbage, plain_calls, plain_tables, repartitioning

Arguments = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]
Procedure = Callable[[Warehouse, Arguments], Rows]

_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s.`]+))\s*")


def path_of(text: str) -> list[str]:
    """The parts of a name, which are in backticks if they contain dots or spaces.

    >>> path_of("ns.`we.ird`.t"), path_of("`a``b`")
    (['ns', 'we.ird', 't'], ['a`b'])
    """
    parts, position = [], 0
    while match := _PART.match(text, position):
        parts.append(match[1].replace("``", "`") if match[1] is not None else match[2])
        position = match.end()
        if position == len(text):
            return parts
        if text[position] != ".":
            break
        position += 1
    raise InvalidInputError(
        f"{text!r} is no name of a table: write namespace.table, with `back-ticks` around odd parts"
    )


def _found(warehouse: Warehouse, given: Arguments) -> tuple[list[str], Entry | None]:
    """The table that a call names, with or without the catalog's name before it, if there is one."""
    path = path_of(given["table"])
    paths = [path, path[1:]] if len(path) > 1 and path[0] == given["catalog"] else [path]
    for each in paths:
        with contextlib.suppress(TableNotFoundError):
            return each, warehouse.find(each)
    snapshot = warehouse.catalog.snapshot()
    return next((each for each in paths if snapshot.row(object_id(each)) is not None), path), None


def _entry(warehouse: Warehouse, given: Arguments) -> Entry:
    path, entry = _found(warehouse, given)
    if entry is None and is_unmoved_tree(warehouse.catalog.snapshot(), path):
        raise UnsupportedOperationError(f"table {shown(path)} is a Hive-style one: CALL system.upgrade first")
    if entry is None:
        raise TableNotFoundError(f"table {shown(path)} does not exist")
    return entry


def _table(warehouse: Warehouse, given: Arguments) -> table.PartitionedTable:
    root, entry = warehouse.catalog.root, _entry(warehouse, given)
    return table.open_table(root.uri_of(entry.location), storage_options=dict(root.storage_options))


def run(name: str, usual: Procedure, warehouse: Warehouse, given: Arguments) -> Rows:
    """Run a procedure: the usual one or, for a plain Lance table, its like there."""
    if given.get("table") is None or name == "upgrade":
        return usual(warehouse, given)
    path, entry = _found(warehouse, given)
    if entry is None or entry.partitioned:
        return usual(warehouse, given)
    if name not in plain_calls.PROCEDURES:
        raise plain_calls.refusal(name, shown(path))
    location = plain_tables.writable(warehouse.catalog, tuple(path))
    prepared = {
        **given,
        "params": _params(given),
        "limit": _age(given) if name == "expire" else None,
        "snapshot": _snapshot(given) if name == "rollback" else None,
    }
    done = plain_calls.PROCEDURES[name](warehouse.catalog.root, location, prepared)
    return _result_rows(done) if isinstance(done, MaintenanceResult) else [done]


def _params(given: Arguments) -> dict[str, Any]:
    """The parameters of an index, which SQL gives as texts."""
    return {key: value_of(text) for key, text in (given.get("params") or {}).items() if text is not None}


def _age(given: Arguments) -> datetime | timedelta:
    """The moment or the age that a call must give."""
    limit = _limit(given)
    if limit is None:
        raise InvalidInputError("say what is to expire: older_than => TIMESTAMP '…' or age => '7d'")
    return limit


def _limit(given: Arguments) -> datetime | timedelta | None:
    """The moment or the age that a call gives, if any."""
    moment, old = given["older_than"], given["age"]
    if moment is not None and old is not None:
        raise InvalidInputError("give either older_than, a moment, or age, such as '7d'")
    if moment is not None:
        return _moment(moment)
    return None if old is None else age(old)


def _snapshot(given: Arguments) -> int | str | datetime:
    """The snapshot that a call names: a number, a tag, or the one of a moment."""
    version, moment = given["version"], given["timestamp"]
    if (version is None) == (moment is None):
        raise InvalidInputError("say what comes back: either version, a number or a tag, or timestamp, a moment")
    return number_or_tag(version) if moment is None else _moment(moment)


def _moment(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def value_of(text: str) -> Any:
    """A parameter that was given as a text: a number or a boolean where it reads as one.

    >>> value_of("4"), value_of("true"), value_of("cosine")
    (4, True, 'cosine')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def _result_rows(report: MaintenanceResult) -> Rows:
    return [asdict(report)]


def compact(warehouse: Warehouse, given: Arguments) -> Rows:
    """Put small fragments together."""
    return _result_rows(_table(warehouse, given).maintenance.compact(target_rows=given["target_rows"], progress=False))


def rewrite(warehouse: Warehouse, given: Arguments) -> Rows:
    """Move rows into the partitions of the newest spec."""
    return _result_rows(_table(warehouse, given).maintenance.rewrite(given["where"], progress=False))


def create_index(warehouse: Warehouse, given: Arguments) -> Rows:
    """Declare an index and build it, in partitions or over the table."""
    params = _params(given)
    if taken := sorted(params.keys() & {"column", "kind", "name", "scope", "where", "spark", "progress"}):
        raise InvalidInputError(f"{taken[0]!r} is no parameter of an index")
    done = _table(warehouse, given).maintenance.create_index(
        given["column"],
        given["kind"],
        scope=given["scope"],
        where=given["where"],
        name=given["name"],
        progress=False,
        **params,
    )
    return _result_rows(done)


def optimize_indices(warehouse: Warehouse, given: Arguments) -> Rows:
    """Let indices cover rows and partitions that came since."""
    return _result_rows(_table(warehouse, given).maintenance.optimize_indices(progress=False))


def drop_index(warehouse: Warehouse, given: Arguments) -> Rows:
    """Remove an index."""
    return _result_rows(_table(warehouse, given).maintenance.drop_index(given["name"], progress=False))


def expire(warehouse: Warehouse, given: Arguments) -> Rows:
    """Forget old snapshots."""
    return _result_rows(_table(warehouse, given).maintenance.expire(_age(given), progress=False))


def remove_orphans(warehouse: Warehouse, given: Arguments) -> Rows:
    """Remove what failed writers left in a table, or failed statements in the warehouse."""
    limit = _limit(given)
    limit = garbage.AGE if limit is None else limit
    dry_run = bool(given["dry_run"])
    if given["table"] is None:
        return _result_rows(garbage.remove_orphans(warehouse, limit, dry_run=dry_run))
    return _result_rows(_table(warehouse, given).maintenance.remove_orphans(limit, dry_run, progress=False))


def repair(warehouse: Warehouse, given: Arguments) -> Rows:
    """Empty partitions whose files are gone."""
    found = _table(warehouse, given).maintenance.repair(given["leaves"], dry_run=bool(given["dry_run"]))
    return _result_rows(found)


def rollback(warehouse: Warehouse, given: Arguments) -> Rows:
    """Bring back the rows of an older snapshot."""
    return [{"version": _table(warehouse, given).maintenance.rollback(_snapshot(given))}]


def create_tag(warehouse: Warehouse, given: Arguments) -> Rows:
    """Name a snapshot."""
    found = _table(warehouse, given)
    version = found.version if given["version"] is None else given["version"]
    found.tags.create(given["name"], version)
    return [{"name": given["name"], "version": version}]


def drop_tag(warehouse: Warehouse, given: Arguments) -> Rows:
    """Take a name away."""
    tags = _table(warehouse, given).tags
    version = tags.list().get(given["name"])
    tags.delete(given["name"])
    return [{"name": given["name"], "version": version}]


def upgrade(warehouse: Warehouse, given: Arguments) -> Rows:
    """Turn a table into the current layout; one that is a Hive-style tree is a namespace to the catalog before that."""
    root, (path, entry) = warehouse.catalog.root, _found(warehouse, given)
    if entry is not None and not entry.partitioned:
        raise UnsupportedOperationError(f"table {shown(path)} is a plain Lance table: there is nothing to upgrade")
    options = dict(root.storage_options)
    made = table.upgrade(root.uri, namespace=path, remove_old=bool(given["remove_old"]), storage_options=options)
    return [{"version": made.version, "rows": made.scan().count()}]


def add_field(warehouse: Warehouse, given: Arguments) -> Rows:
    """Partition new rows by one more field."""
    return _evolved(warehouse, given, lambda old: repartitioning.added(old, given["field"]))


def drop_field(warehouse: Warehouse, given: Arguments) -> Rows:
    """Partition new rows by one field less."""
    return _evolved(warehouse, given, lambda old: repartitioning.dropped(old, given["field"]))


def replace_field(warehouse: Warehouse, given: Arguments) -> Rows:
    """Partition new rows by another field in the place of one."""
    return _evolved(warehouse, given, lambda old: repartitioning.replaced(old, given["field"], given["by"]))


def _evolved(warehouse: Warehouse, given: Arguments, step: Callable[[TableMetadata], TableMetadata]) -> Rows:
    entry = _entry(warehouse, given)

    def checked(old: TableMetadata) -> TableMetadata:
        new = step(old)
        repartitioning.refuse_cycles(new.spec.fields, new.schema, entry.properties, old.spec.fields)
        return new

    return repartitioning.field_rows(altering.evolved(warehouse, entry, checked))
