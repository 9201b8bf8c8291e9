"""What ``CALL lance.system.…`` does: one function a procedure, in this process, with rows that tell what was done."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from lancepart.catalog.context import shown
from lancepart.errors import InvalidInputError, TableNotFoundError, UnsupportedOperationError
from lancepart.layout import hive
from lancepart.layout.hivetree import namespace_properties
from lancepart.layout.metadata import TableMetadata
from lancepart.maintain.upkeep import TARGET_ROWS, Report
from lancepart.model.duration import age
from lancepart.spark import altering, garbage, repartitioning
from lancepart.spark.describe import answering, only
from lancepart.spark.types import spark_schema
from lancepart.spark.warehouse import Entry, Warehouse
from lancepart.table import PartitionedTable, open_table, upgrade

NAMESPACE = "system"

Arguments = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]

_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s.`]+))\s*")
_REQUIRED = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a procedure: its type and, unless it must be given, its default, as Spark spells them."""

    name: str
    comment: str
    type: str = "string"
    default: str | None = _REQUIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """What can be called: with which arguments, giving which columns."""

    run: Callable[[Warehouse, Arguments], Rows]
    comment: str
    parameters: tuple[Parameter, ...]
    columns: pa.Schema

    def to_json(self) -> dict[str, Any]:
        """What the jar must know to bind a call."""
        return {"comment": self.comment, "parameters": [asdict(each) for each in self.parameters]}


def listed(warehouse: Warehouse, question: Mapping[str, Any]) -> Any:
    """All procedures, and the namespace that they are in."""
    return only({"namespace": NAMESPACE, "procedures": {name: each.to_json() for name, each in PROCEDURES.items()}})


def call(warehouse: Warehouse, question: Mapping[str, Any]) -> Any:
    """Run a procedure; its rows are the answer."""
    procedure = PROCEDURES[question["procedure"]]
    given = {"catalog": question["catalog"], **question["arguments"]}
    for each in procedure.parameters:
        if each.default is _REQUIRED and given.get(each.name) is None:
            raise InvalidInputError(f"the argument {each.name} is NULL: give it a value")
    rows = procedure.run(warehouse, given)
    names = procedure.columns.names
    return answering(spark_schema(procedure.columns), {"rows": [[row[name] for name in names] for row in rows]})


def path_of(text: str) -> list[str]:
    """The parts of a name, which stand in back-ticks where they hold dots or spaces.

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
    return path, None


def _entry(warehouse: Warehouse, given: Arguments) -> Entry:
    path, entry = _found(warehouse, given)
    if entry is None and hive.is_hive(namespace_properties(warehouse.catalog.snapshot(), path)):
        raise UnsupportedOperationError(f"table {shown(path)} is a Hive-style one: CALL {NAMESPACE}.upgrade first")
    if entry is None:
        raise TableNotFoundError(f"table {shown(path)} does not exist")
    if not entry.partitioned:
        raise UnsupportedOperationError(
            f"table {shown(path)} is a plain Lance table: procedures are for partitioned ones"
        )
    return entry


def _table(warehouse: Warehouse, given: Arguments) -> PartitionedTable:
    root, entry = warehouse.catalog.root, _entry(warehouse, given)
    return open_table(root.uri_of(entry.location), storage_options=dict(root.storage_options))


def _limit(given: Arguments) -> datetime | timedelta | None:
    """The moment or the age that a call gives, if any."""
    moment, old = given["older_than"], given["age"]
    if moment is not None and old is not None:
        raise InvalidInputError("give either older_than, a moment, or age, such as '7d'")
    if moment is not None:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment)
    return None if old is None else age(old)


def _version(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def value_of(text: str) -> Any:
    """A parameter that was given as a text: a number or a truth where it reads as one.

    >>> value_of("4"), value_of("true"), value_of("cosine")
    (4, True, 'cosine')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def _told(report: Report) -> Rows:
    return [asdict(report)]


def _compact(warehouse: Warehouse, given: Arguments) -> Rows:
    table = _table(warehouse, given)
    return _told(table.maintenance.compact(target_rows=given["target_rows"], progress=False))


def _rewrite(warehouse: Warehouse, given: Arguments) -> Rows:
    return _told(_table(warehouse, given).maintenance.rewrite(given["where"], progress=False))


def _create_index(warehouse: Warehouse, given: Arguments) -> Rows:
    params = {key: value_of(text) for key, text in (given["params"] or {}).items()}
    upkeep = _table(warehouse, given).maintenance
    done = upkeep.create_index(given["column"], given["kind"], name=given["name"], progress=False, **params)
    return _told(done)


def _expire(warehouse: Warehouse, given: Arguments) -> Rows:
    limit = _limit(given)
    if limit is None:
        raise InvalidInputError("say what is to expire: older_than => TIMESTAMP '…' or age => '7d'")
    return _told(_table(warehouse, given).maintenance.expire(limit, progress=False))


def _remove_orphans(warehouse: Warehouse, given: Arguments) -> Rows:
    limit = _limit(given)
    limit = garbage.AGE if limit is None else limit
    dry_run = bool(given["dry_run"])
    if given["table"] is None:
        return _told(garbage.remove_orphans(warehouse, limit, dry_run=dry_run))
    return _told(_table(warehouse, given).maintenance.remove_orphans(limit, dry_run, progress=False))


def _rollback(warehouse: Warehouse, given: Arguments) -> Rows:
    return [{"version": _table(warehouse, given).maintenance.rollback(_version(given["version"]))}]


def _create_tag(warehouse: Warehouse, given: Arguments) -> Rows:
    table = _table(warehouse, given)
    version = table.version if given["version"] is None else given["version"]
    table.tags.create(given["name"], version)
    return [{"name": given["name"], "version": version}]


def _drop_tag(warehouse: Warehouse, given: Arguments) -> Rows:
    tags = _table(warehouse, given).tags
    version = tags.list().get(given["name"])
    tags.delete(given["name"])
    return [{"name": given["name"], "version": version}]


def _upgrade(warehouse: Warehouse, given: Arguments) -> Rows:
    """A tree that is a namespace of the catalog, as Hive-style tables are to it, has no table of its name yet."""
    root, (path, entry) = warehouse.catalog.root, _found(warehouse, given)
    if entry is not None and not entry.partitioned:
        raise UnsupportedOperationError(f"table {shown(path)} is a plain Lance table: there is nothing to upgrade")
    options = dict(root.storage_options)
    made = upgrade(root.uri, namespace=path, remove_old=bool(given["remove_old"]), storage_options=options)
    return [{"version": made.version, "rows": made.scan().count()}]


def _add_field(warehouse: Warehouse, given: Arguments) -> Rows:
    return _evolved(warehouse, given, lambda old: repartitioning.added(old, given["field"]))


def _drop_field(warehouse: Warehouse, given: Arguments) -> Rows:
    return _evolved(warehouse, given, lambda old: repartitioning.dropped(old, given["field"]))


def _replace_field(warehouse: Warehouse, given: Arguments) -> Rows:
    return _evolved(warehouse, given, lambda old: repartitioning.replaced(old, given["field"], given["by"]))


def _evolved(warehouse: Warehouse, given: Arguments, step: Callable[[TableMetadata], TableMetadata]) -> Rows:
    return repartitioning.told(altering.evolved(warehouse, _entry(warehouse, given), step))


_TABLE = Parameter("table", "the table: namespace.table, with back-ticks around names that hold dots")
_FIELD = Parameter("field", "a partition field: its name, or how it is written, such as bucket(16, id)")
_NEW_FIELD = Parameter("field", "how the partition field is written: country, year(ts), bucket(16, id) AS name")
_OLDER_THAN = Parameter("older_than", "a moment", "timestamp", "NULL")
_AGE = Parameter("age", "in the place of a moment: 7d, 12h, 30m", default="NULL")

_COUNT, _TEXTS = pa.int64(), pa.list_(pa.string())
_COMMITTED = pa.schema([("changed", _COUNT), ("skipped", _TEXTS), ("version", _COUNT)])
_REMOVED = pa.schema([("changed", _COUNT), ("removed_files", _COUNT), ("freed_bytes", _COUNT)])
_SWEPT = pa.schema([*_REMOVED, ("locations", _TEXTS)])
_SPEC = pa.schema([("spec_id", _COUNT), *((name, pa.string()) for name in ("field_id", "source", "transform"))])
_TAGGED = pa.schema([("name", pa.string()), ("version", _COUNT)])

PROCEDURES: Mapping[str, Procedure] = {
    "compact": Procedure(
        run=_compact,
        comment="Put small fragments together and drop deleted rows",
        parameters=(_TABLE, Parameter("target_rows", "rows of a fragment", "bigint", str(TARGET_ROWS))),
        columns=_COMMITTED,
    ),
    "rewrite": Procedure(
        run=_rewrite,
        comment="Move rows that older partitionings placed into the partitions of the newest",
        parameters=(_TABLE, Parameter("where", "which rows, in SQL of DataFusion's dialect", default="NULL")),
        columns=_COMMITTED,
    ),
    "create_index": Procedure(
        run=_create_index,
        comment="Build an index in every partition, in place of one of the same name",
        parameters=(
            _TABLE,
            Parameter("column", "the column"),
            Parameter("kind", "BTREE, BITMAP, IVF_PQ, INVERTED, …"),
            Parameter("name", "what the index is called", default="NULL"),
            Parameter("params", "parameters of the index", "map<string,string>", "NULL"),
        ),
        columns=_COMMITTED,
    ),
    "expire": Procedure(
        run=_expire,
        comment="Forget old snapshots and remove what only they needed",
        parameters=(_TABLE, _OLDER_THAN, _AGE),
        columns=_REMOVED,
    ),
    "remove_orphans": Procedure(
        run=_remove_orphans,
        comment="Remove what failed writers left in a table or, without one, tables that failed statements left",
        parameters=(
            Parameter("table", "the table, or the whole warehouse", default="NULL"),
            _OLDER_THAN,
            _AGE,
            Parameter("dry_run", "only tell what would be removed", "boolean", "false"),
        ),
        columns=_SWEPT,
    ),
    "rollback": Procedure(
        run=_rollback,
        comment="Bring back the rows of an older snapshot, as a new one",
        parameters=(_TABLE, Parameter("version", "the snapshot's number, or a tag")),
        columns=pa.schema([("version", _COUNT)]),
    ),
    "create_tag": Procedure(
        run=_create_tag,
        comment="Name a snapshot; a named one does not expire",
        parameters=(
            _TABLE,
            Parameter("name", "what it is to be called"),
            Parameter("version", "the snapshot's number; the newest, unless given", "bigint", "NULL"),
        ),
        columns=_TAGGED,
    ),
    "drop_tag": Procedure(
        run=_drop_tag,
        comment="Take a name of a snapshot away",
        parameters=(_TABLE, Parameter("name", "what it is called")),
        columns=_TAGGED,
    ),
    "upgrade": Procedure(
        run=_upgrade,
        comment="Turn a table of an older layout into the current one",
        parameters=(_TABLE, Parameter("remove_old", "remove the old tree", "boolean", "false")),
        columns=pa.schema([("version", _COUNT), ("rows", _COUNT)]),
    ),
    "add_partition_field": Procedure(
        run=_add_field,
        comment="Partition new rows by one more field",
        parameters=(_TABLE, _NEW_FIELD),
        columns=_SPEC,
    ),
    "drop_partition_field": Procedure(
        run=_drop_field,
        comment="Partition new rows by one field less",
        parameters=(_TABLE, _FIELD),
        columns=_SPEC,
    ),
    "replace_partition_field": Procedure(
        run=_replace_field,
        comment="Partition new rows by another field in the place of one",
        parameters=(_TABLE, _FIELD, Parameter("by", "how the new field is written: day(ts), bucket(32, id)")),
        columns=_SPEC,
    ),
}
