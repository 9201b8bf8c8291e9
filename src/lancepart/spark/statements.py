"""What the planning service does for a catalog: one function for each operation on a warehouse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pyarrow as pa
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
from lancepart.model.aliases import Transactions
from lancepart.model.snapshot_text import number_or_tag
from lancepart.queries.warehouse import Entry, Warehouse
from lancepart.spark import (
    altering,
    catalog_messages,
    metadata_tables,
    new_tables,
    plain_tables,
    procedures,
    table_messages,
    warm,
)
from lancepart.spark.answers import read_plan
from lancepart.spark.describe import schema_json, table_info
from lancepart.spark.options import check_order
from lancepart.spark.protocol import Message
from lancepart.spark.repartitioning import refuse_new_cycles
from lancepart.spark.scan_sizes import column_bytes
from lancepart.spark.types import spark_schema
from lancepart.table import PartitionedTable, create_table

Options = Mapping[str, str]

_STORAGE = "storage."
_REFUSALS = (
    TableAlreadyExistsError,
    NamespaceNotFoundError,
    ConcurrentModificationError,
    InvalidInputError,
)


def respond(options: Options, op: str, request: Message) -> Message:
    """Execute a statement on a warehouse."""
    return _ANSWERS[op](_warehouse(options), request)


def _warehouse(options: Options) -> Warehouse:
    root = options.get("warehouse")
    if not root:
        raise InvalidInputError("the catalog has no root: set spark.sql.catalog.<name>.warehouse to a path or a URI")
    storage = {key.removeprefix(_STORAGE): value for key, value in options.items() if key.startswith(_STORAGE)}
    return Warehouse.at(root, storage)


def _namespaces(warehouse: Warehouse, request: catalog_messages.PathRequest) -> Message:
    return catalog_messages.NamesReply(names=tuple(warehouse.namespaces(request.id)))


def _namespace(warehouse: Warehouse, request: catalog_messages.PathRequest) -> Message:
    return catalog_messages.PropertiesReply(properties=warehouse.properties(request.id))


def _create_namespace(warehouse: Warehouse, request: catalog_messages.PropertiesRequest) -> Message:
    properties = {key: value for key, value in request.properties.items() if value is not None}
    if "location" in properties:
        raise UnsupportedOperationError("a namespace has no LOCATION of its own: leave it out")
    warehouse.create_namespace(request.id, properties)
    return table_messages.Nothing()


def _alter_namespace(warehouse: Warehouse, request: catalog_messages.PropertiesRequest) -> Message:
    warehouse.alter_namespace(request.id, request.properties)
    return table_messages.Nothing()


def _drop_namespace(warehouse: Warehouse, request: catalog_messages.DropNamespaceRequest) -> Message:
    warehouse.drop_namespace(request.id, cascade=request.cascade)
    return table_messages.Nothing()


def _write_plain(warehouse: Warehouse, request: table_messages.PlainWriteRequest) -> Message:
    from lancepart.spark import plain_writes

    return plain_writes.plan(warehouse, request)


def _tables(warehouse: Warehouse, request: catalog_messages.PathRequest) -> Message:
    return catalog_messages.NamesReply(names=tuple(warehouse.tables(request.id)))


def _load(warehouse: Warehouse, request: catalog_messages.LoadRequest) -> Message:
    """A table or, if the parent of the last name is a table, one of its metadata tables."""
    path, snapshot = request.id, warm.newest(warehouse.catalog)
    try:
        found = warehouse.find(path, snapshot)
    except TableNotFoundError:
        if len(path) < 2 or path[-1].lower() not in metadata_tables.KINDS:
            raise
        return _load_inspected(warehouse, warehouse.find(path[:-1], snapshot), request)
    if not found.partitioned:
        return _load_plain(warehouse, found, request)
    return _loaded(warehouse, found, _opened(warehouse, found.location, request))


def _loaded(
    warehouse: Warehouse, entry: Entry, table: PartitionedTable, staged: catalog_messages.StagedTable | None = None
) -> Message:
    place = warehouse.catalog.root.uri_of(entry.location)
    shown = {"provider": "lancepart", "location": place, "is_managed_location": "true"}
    return catalog_messages.LoadReply(
        schema=schema_json(spark_schema(table.schema)),
        properties={**entry.properties, **shown},
        path=place,
        table=table_info(table, table.version),
        staged=staged,
    )


def _load_plain(warehouse: Warehouse, entry: Entry, request: catalog_messages.LoadRequest) -> Message:
    if request.timestamp is not None:
        raise UnsupportedOperationError("a plain Lance table is read AS OF a version or a tag, not a moment")
    root = warehouse.catalog.root
    table = plain_tables.opened(root, entry.location, request.version)
    return catalog_messages.LoadReply(
        schema=schema_json(spark_schema(table.schema)),
        properties={**entry.properties, "provider": "lance"},
        path=root.uri_of(entry.location),
        table=table_info(table, table.version),
        plain=entry.location,
    )


def _load_inspected(warehouse: Warehouse, entry: Entry, request: catalog_messages.LoadRequest) -> Message:
    table, kind = _opened(warehouse, entry.location, request), request.id[-1].lower()
    return catalog_messages.LoadReply(
        schema=schema_json(spark_schema(metadata_tables.inspected(table, kind).schema)),
        read_only=table_messages.ReadOnlySource(kind=kind, location=entry.location, version=table.version),
    )


def _read_only(warehouse: Warehouse, request: table_messages.ReadOnlyRequest) -> Message:
    """The columns and the plan of a scan of a metadata table."""
    root, source = warehouse.catalog.root, request.table
    table = warm.pinned(root.uri_of(source.location), source.version, dict(root.storage_options))
    found = metadata_tables.inspected(table, source.kind)
    schema, rows, size = found.schema, found.num_rows, found.nbytes
    plan = metadata_tables.plan_inspected(table, request)
    names = list(request.columns) or [schema.names[0]]
    shown = spark_schema(schema)
    chosen = StructType([shown[name] for name in names])
    size = column_bytes(rows, size, pa.schema([schema.field(name) for name in names]), schema)
    return table_messages.RowsReply(schema=schema_json(chosen), read=read_plan(plan, chosen), rows=rows, bytes=size)


def _opened(warehouse: Warehouse, location: str, request: catalog_messages.LoadRequest) -> PartitionedTable:
    """The table in a directory, at one snapshot: the requested one, or the newest."""
    root = warehouse.catalog.root
    wanted: int | str | datetime | None = None if request.version is None else number_or_tag(request.version)
    if request.timestamp is not None:
        wanted = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=request.timestamp)
    return warm.fresh(root.uri_of(location), wanted, dict(root.storage_options))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A table that has its directory and not yet its row."""

    entry: Entry
    replaced: str | None
    table: PartitionedTable


def _make(warehouse: Warehouse, request: catalog_messages.CreateRequest) -> _Made:
    """Make a table in a directory; one that a user chose may hold somebody's table, which stays if this fails."""
    path, mode = request.id, request.mode
    location, there = warehouse.place(path)
    if there is not None and mode == "create":
        raise TableAlreadyExistsError(f"table {shown(path)} already exists")
    if there is None and mode == "replace":
        raise TableNotFoundError(f"table {shown(path)} does not exist")
    properties = new_tables.checked_properties(request.properties)
    chosen = properties.pop("location", None)
    if chosen is not None:
        location = new_tables.location_of(warehouse, chosen)
    root = warehouse.catalog.root
    columns = new_tables.columns_of_new(request.schema, properties)
    check_order(properties, columns.names)
    refuse_new_cycles(request.by, columns, properties)
    own = chosen is None
    try:
        create_table(
            root.uri_of(location),
            columns,
            request.by,
            transactions=cast(Transactions, properties.get("transactions", STRONG)),
            storage_options=dict(root.storage_options),
        )
        own = True
        table = _opened(warehouse, location, catalog_messages.LoadRequest(id=path))
    except BaseException as error:
        if own:
            warehouse.discard(location)
        if isinstance(error, TableAlreadyExistsError):
            raise InvalidInputError(f"LOCATION can't be used: {error}") from None
        raise
    entry = Entry(location=location, properties=properties)
    return _Made(entry=entry, replaced=None if there is None else there.location, table=table)


def _create(warehouse: Warehouse, request: catalog_messages.CreateRequest) -> Message:
    made = _make(warehouse, request)
    _published(warehouse, request.id, made.entry, made.replaced)
    return _loaded(warehouse, made.entry, made.table)


def _published(warehouse: Warehouse, path: Sequence[str], entry: Entry, replaced: str | None) -> None:
    """Insert a new table's row; its directory is removed only if the row was certainly refused.

    A commit whose outcome is unknown may still succeed: then the directory is kept, for the table or for a sweep.
    """
    try:
        warehouse.publish(path, entry.location, entry.properties, replaced=replaced)
    except _REFUSALS:
        warehouse.discard(entry.location)
        raise


def _stage(warehouse: Warehouse, request: catalog_messages.CreateRequest) -> Message:
    made = _make(warehouse, request)
    staged = catalog_messages.StagedTable(
        id=request.id, location=made.entry.location, properties=made.entry.properties, replaced=made.replaced
    )
    return _loaded(warehouse, made.entry, made.table, staged)


def _publish(warehouse: Warehouse, request: catalog_messages.StagedTable) -> Message:
    entry = Entry(location=request.location, properties=request.properties)
    _published(warehouse, request.id, entry, request.replaced)
    return table_messages.Nothing()


def _discard(warehouse: Warehouse, request: catalog_messages.StagedTable) -> Message:
    warehouse.discard(request.location)
    return table_messages.Nothing()


def _drop(warehouse: Warehouse, request: catalog_messages.PathRequest) -> Message:
    return catalog_messages.DroppedReply(dropped=warehouse.drop(request.id))


def _rename(warehouse: Warehouse, request: catalog_messages.RenameRequest) -> Message:
    warehouse.rename(request.id, request.to)
    return table_messages.Nothing()


def _alter(warehouse: Warehouse, request: catalog_messages.AlterRequest) -> Message:
    altering.alter(warehouse, request.id, request.changes)
    return table_messages.Nothing()


_ANSWERS: Mapping[str, Callable[[Warehouse, Any], Message]] = {
    "read_only": _read_only,
    "namespaces": _namespaces,
    "namespace": _namespace,
    "create_namespace": _create_namespace,
    "alter_namespace": _alter_namespace,
    "drop_namespace": _drop_namespace,
    "tables": _tables,
    "write_plain": _write_plain,
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
