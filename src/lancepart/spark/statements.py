"""What the planning service does for a catalog: one function for each operation on a warehouse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.types import StructType

from lancepart.catalog.context import shown
from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from lancepart.layout.metadata import STRONG
from lancepart.queries.warehouse import Entry, Warehouse
from lancepart.spark import altering, metadata_tables, procedures, warm
from lancepart.spark import operations as ops
from lancepart.spark.answers import read_plan
from lancepart.spark.describe import schema_json, table_info
from lancepart.spark.options import check_properties
from lancepart.spark.protocol import Message
from lancepart.spark.repartitioning import refuse_new_cycles
from lancepart.spark.types import arrow_schema, commented, read_schema, spark_schema
from lancepart.table import PartitionedTable, create_table

Options = Mapping[str, str]

_STORAGE = "storage."
_REFUSALS = (
    TableAlreadyExistsError,
    NamespaceNotFoundError,
    ConcurrentModificationError,
    InvalidInputError,
)
_PROVIDERS = {None, "lance", "lancepart"}


def respond(options: Options, op: str, request: Message) -> Message:
    """Do what a statement asks of a warehouse."""
    return _ANSWERS[op](_warehouse(options), request)


def _warehouse(options: Options) -> Warehouse:
    root = options.get("warehouse")
    if not root:
        raise InvalidInputError("the catalog has no root: set spark.sql.catalog.<name>.warehouse to a path or a URI")
    storage = {key.removeprefix(_STORAGE): value for key, value in options.items() if key.startswith(_STORAGE)}
    return Warehouse.at(root, storage)


def _namespaces(warehouse: Warehouse, request: ops.PathRequest) -> Message:
    return ops.NamesReply(names=tuple(warehouse.namespaces(request.id)))


def _namespace(warehouse: Warehouse, request: ops.PathRequest) -> Message:
    return ops.PropertiesReply(properties=warehouse.properties(request.id))


def _create_namespace(warehouse: Warehouse, request: ops.PropertiesRequest) -> Message:
    properties = {key: value for key, value in request.properties.items() if value is not None}
    if "location" in properties:
        raise UnsupportedOperationError("a namespace has no LOCATION of its own: leave it out")
    warehouse.create_namespace(request.id, properties)
    return ops.Nothing()


def _alter_namespace(warehouse: Warehouse, request: ops.PropertiesRequest) -> Message:
    warehouse.alter_namespace(request.id, request.properties)
    return ops.Nothing()


def _drop_namespace(warehouse: Warehouse, request: ops.DropNamespaceRequest) -> Message:
    warehouse.drop_namespace(request.id, cascade=request.cascade)
    return ops.Nothing()


def _tables(warehouse: Warehouse, request: ops.PathRequest) -> Message:
    return ops.NamesReply(names=tuple(warehouse.tables(request.id)))


def _load(warehouse: Warehouse, request: ops.LoadRequest) -> Message:
    """A table or, where a table's name comes before the last one, one of its metadata tables."""
    path = request.id
    try:
        found = warehouse.find(path)
    except TableNotFoundError:
        if len(path) < 2 or path[-1].lower() not in metadata_tables.KINDS:
            raise
        return _load_inspected(warehouse, warehouse.find(path[:-1]), request)
    if not found.partitioned:
        return _load_plain(warehouse, found, request)
    return _loaded(warehouse, found, _opened(warehouse, found.location, request))


def _loaded(
    warehouse: Warehouse, entry: Entry, table: PartitionedTable, staged: ops.StagedTable | None = None
) -> Message:
    place = warehouse.catalog.root.uri_of(entry.location)
    shown = {"provider": "lancepart", "location": place, "is_managed_location": "true"}
    return ops.LoadReply(
        schema=schema_json(spark_schema(table.schema)),
        properties={**entry.properties, **shown},
        path=place,
        table=table_info(table, table.version),
        staged=staged,
    )


def _load_plain(warehouse: Warehouse, entry: Entry, request: ops.LoadRequest) -> Message:
    if request.timestamp is not None:
        raise UnsupportedOperationError("a plain Lance table is read AS OF a version or a tag, not a moment")
    handle = metadata_tables.open_plain(warehouse.catalog.root, entry.location, request.version)
    return ops.LoadReply(
        schema=schema_json(spark_schema(handle.schema)),
        properties={**entry.properties, "provider": "lance"},
        side=ops.SideTable(kind=metadata_tables.PLAIN, location=entry.location, version=int(handle.version)),
    )


def _load_inspected(warehouse: Warehouse, entry: Entry, request: ops.LoadRequest) -> Message:
    table, kind = _opened(warehouse, entry.location, request), request.id[-1].lower()
    return ops.LoadReply(
        schema=schema_json(spark_schema(metadata_tables.inspected(table, kind).schema)),
        side=ops.SideTable(kind=kind, location=entry.location, version=table.version),
    )


def _side(warehouse: Warehouse, request: ops.SideRequest) -> Message:
    """The columns and the plan of a scan of what is no partitioned table."""
    root, side = warehouse.catalog.root, request.table
    if side.kind == metadata_tables.PLAIN:
        schema = metadata_tables.open_plain(root, side.location, side.version).schema
        plan = metadata_tables.plan_plain(root, request)
    else:
        table = warm.pinned(root.uri_of(side.location), side.version, dict(root.storage_options))
        schema = metadata_tables.inspected(table, side.kind).schema
        plan = metadata_tables.plan_inspected(table, request)
    names = list(request.columns) or [schema.names[0]]
    shown = spark_schema(schema)
    chosen = StructType([shown[name] for name in names])
    return ops.RowsReply(schema=schema_json(chosen), read=read_plan(plan, chosen))


def _opened(warehouse: Warehouse, location: str, request: ops.LoadRequest) -> PartitionedTable:
    """The table in a directory, at one snapshot: that which is asked for, or the newest."""
    root = warehouse.catalog.root
    wanted: int | str | datetime | None = request.version
    if isinstance(wanted, str) and wanted.isdigit():
        wanted = int(wanted)
    if request.timestamp is not None:
        wanted = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=request.timestamp)
    return warm.fresh(root.uri_of(location), wanted, dict(root.storage_options))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A table that has its directory and not yet its row."""

    entry: Entry
    replaced: str | None
    table: PartitionedTable


def _make(warehouse: Warehouse, request: ops.CreateRequest) -> _Made:
    path, mode = request.id, request.mode
    location, there = warehouse.place(path)
    if there is not None and mode == "create":
        raise TableAlreadyExistsError(f"table {shown(path)} already exists")
    if there is None and mode == "replace":
        raise TableNotFoundError(f"table {shown(path)} does not exist")
    if there is not None and not there.partitioned:
        raise UnsupportedOperationError(f"table {shown(path)} is a plain Lance table: drop it first")
    properties = dict(request.properties)
    _check(properties, request.by)
    root = warehouse.catalog.root
    asked = read_schema(request.schema)
    columns = commented(arrow_schema(asked), asked)
    refuse_new_cycles(request.by, columns, properties)
    try:
        create_table(
            root.uri_of(location),
            columns,
            request.by,
            transactions=properties.get("transactions", STRONG),
            storage_options=dict(root.storage_options),
        )
        table = _opened(warehouse, location, ops.LoadRequest(id=path))
    except BaseException:
        warehouse.discard(location)
        raise
    entry = Entry(location=location, properties=properties)
    return _Made(entry=entry, replaced=None if there is None else there.location, table=table)


def _check(properties: dict[str, str], by: Sequence[str]) -> None:
    """Refuse what a table can't be, before anything is written; what only says how it is made is taken out."""
    provider = properties.pop("provider", None)
    if provider not in _PROVIDERS:
        raise UnsupportedOperationError(f"USING {provider}: tables of this catalog are USING lancepart")
    if "location" in properties:
        raise UnsupportedOperationError("LOCATION: the warehouse chooses the directory itself; leave it out")
    for key in ("is_managed_location", "external"):
        properties.pop(key, None)
    check_properties(properties)
    if not by:
        raise UnsupportedOperationError("a table needs at least one partition field: add PARTITIONED BY (…)")


def _create(warehouse: Warehouse, request: ops.CreateRequest) -> Message:
    made = _make(warehouse, request)
    _published(warehouse, request.id, made.entry, made.replaced)
    return _loaded(warehouse, made.entry, made.table)


def _published(warehouse: Warehouse, path: Sequence[str], entry: Entry, replaced: str | None) -> None:
    """Give a new table its row; its directory goes only where it is certain that the row was refused.

    A commit whose outcome is not known may still land: then the directory stays, for the table or for a sweep.
    """
    try:
        warehouse.publish(path, entry.location, entry.properties, replaced=replaced)
    except _REFUSALS:
        warehouse.discard(entry.location)
        raise


def _stage(warehouse: Warehouse, request: ops.CreateRequest) -> Message:
    made = _make(warehouse, request)
    staged = ops.StagedTable(
        id=request.id, location=made.entry.location, properties=made.entry.properties, replaced=made.replaced
    )
    return _loaded(warehouse, made.entry, made.table, staged)


def _publish(warehouse: Warehouse, request: ops.StagedTable) -> Message:
    entry = Entry(location=request.location, properties=request.properties)
    _published(warehouse, request.id, entry, request.replaced)
    return ops.Nothing()


def _discard(warehouse: Warehouse, request: ops.StagedTable) -> Message:
    warehouse.discard(request.location)
    return ops.Nothing()


def _drop(warehouse: Warehouse, request: ops.PathRequest) -> Message:
    return ops.DroppedReply(dropped=warehouse.drop(request.id))


def _rename(warehouse: Warehouse, request: ops.RenameRequest) -> Message:
    warehouse.rename(request.id, request.to)
    return ops.Nothing()


def _alter(warehouse: Warehouse, request: ops.AlterRequest) -> Message:
    altering.alter(warehouse, request.id, request.changes)
    return ops.Nothing()


_ANSWERS: Mapping[str, Callable[[Warehouse, Any], Message]] = {
    "side": _side,
    "namespaces": _namespaces,
    "namespace": _namespace,
    "create_namespace": _create_namespace,
    "alter_namespace": _alter_namespace,
    "drop_namespace": _drop_namespace,
    "tables": _tables,
    "load": _load,
    "create": _create,
    "stage": _stage,
    "publish": _publish,
    "discard": _discard,
    "drop": _drop,
    "rename": _rename,
    "alter": _alter,
    "procedures": procedures.listed,
    "call": procedures.call,
}
