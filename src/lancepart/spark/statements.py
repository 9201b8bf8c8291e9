"""What the jar's catalog asks of a warehouse, one function a question; refusals are answers, so that they read well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.types import StructType

from lancepart.catalog.context import shown
from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    LanceNamespaceError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from lancepart.layout.metadata import STRONG
from lancepart.queries.warehouse import Entry, Warehouse
from lancepart.spark import altering, metadata_tables, procedures
from lancepart.spark.describe import answering, only, table_info
from lancepart.spark.options import check_properties
from lancepart.spark.repartitioning import refuse_new_cycles
from lancepart.spark.types import arrow_schema, commented, read_schema, spark_schema
from lancepart.table import PartitionedTable, create_table, open_pinned, open_table

Options = Mapping[str, str]
Question = Mapping[str, Any]

_STORAGE = "storage."
_KINDS: tuple[tuple[type[LanceNamespaceError], str], ...] = (
    (TableNotFoundError, "no_table"),
    (NamespaceNotFoundError, "no_namespace"),
    (TableAlreadyExistsError, "table_exists"),
    (NamespaceAlreadyExistsError, "namespace_exists"),
    (NamespaceNotEmptyError, "not_empty"),
)
_REFUSALS = (
    TableAlreadyExistsError,
    NamespaceNotFoundError,
    ConcurrentModificationError,
    InvalidInputError,
)
_PROVIDERS = {None, "lance", "lancepart"}


def respond(options: Options, question: Question) -> Any:
    """Do what a statement asks, and answer with a schema that has the answer on it."""
    try:
        return _ANSWERS[question["do"]](_warehouse(options), question)
    except LanceNamespaceError as error:
        kind = next((name for each, name in _KINDS if isinstance(error, each)), "refused")
        return only({"error": kind, "message": str(error)})


def _warehouse(options: Options) -> Warehouse:
    root = options.get("warehouse")
    if not root:
        raise InvalidInputError("the catalog has no root: set spark.sql.catalog.<name>.warehouse to a path or a URI")
    storage = {key.removeprefix(_STORAGE): value for key, value in options.items() if key.startswith(_STORAGE)}
    return Warehouse.at(root, storage)


def _namespaces(warehouse: Warehouse, question: Question) -> Any:
    return only({"names": warehouse.namespaces(question["id"])})


def _namespace(warehouse: Warehouse, question: Question) -> Any:
    return only({"properties": warehouse.properties(question["id"])})


def _create_namespace(warehouse: Warehouse, question: Question) -> Any:
    properties = dict(question["properties"])
    if "location" in properties:
        raise UnsupportedOperationError("a namespace has no LOCATION of its own: leave it out")
    warehouse.create_namespace(question["id"], properties)
    return only({})


def _alter_namespace(warehouse: Warehouse, question: Question) -> Any:
    warehouse.alter_namespace(question["id"], question["properties"])
    return only({})


def _drop_namespace(warehouse: Warehouse, question: Question) -> Any:
    warehouse.drop_namespace(question["id"], cascade=bool(question["cascade"]))
    return only({})


def _tables(warehouse: Warehouse, question: Question) -> Any:
    return only({"names": warehouse.tables(question["id"])})


def _load(warehouse: Warehouse, question: Question) -> Any:
    """A table or, where a table's name comes before the last one, what that table is made of."""
    path = question["id"]
    try:
        found = warehouse.find(path)
    except TableNotFoundError:
        if len(path) < 2 or path[-1].lower() not in metadata_tables.KINDS:
            raise
        return _load_inspected(warehouse, warehouse.find(path[:-1]), question)
    if not found.partitioned:
        return _load_plain(warehouse, found, question)
    return _loaded(warehouse, found, _opened(warehouse, found.location, question))


def _loaded(warehouse: Warehouse, entry: Entry, table: PartitionedTable, **more: Any) -> Any:
    answer = {
        "path": warehouse.catalog.root.uri_of(entry.location),
        "table": table_info(table, table.version),
        "properties": {
            **entry.properties,
            "provider": "lancepart",
            "location": warehouse.catalog.root.uri_of(entry.location),
            "is_managed_location": "true",
        },
    }
    return answering(spark_schema(table.schema), answer | more)


def _load_plain(warehouse: Warehouse, entry: Entry, question: Question) -> Any:
    if question.get("timestamp") is not None:
        raise UnsupportedOperationError("a plain Lance table is read AS OF a version or a tag, not a moment")
    handle = metadata_tables.open_plain(warehouse.catalog.root, entry.location, question.get("version"))
    side = {"kind": metadata_tables.PLAIN, "location": entry.location, "version": int(handle.version)}
    properties = {**entry.properties, "provider": "lance"}
    return answering(spark_schema(handle.schema), {"side": side, "properties": properties})


def _load_inspected(warehouse: Warehouse, entry: Entry, question: Question) -> Any:
    table, kind = _opened(warehouse, entry.location, question), question["id"][-1].lower()
    side = {"kind": kind, "location": entry.location, "version": table.version}
    return answering(spark_schema(metadata_tables.inspected(table, kind).schema), {"side": side, "properties": {}})


def plan_side(options: Options, question: Question) -> tuple[Any, metadata_tables.Plan]:
    """The columns and the plan of a scan of what is no partitioned table."""
    warehouse = _warehouse(options)
    root = warehouse.catalog.root
    if question["kind"] == metadata_tables.PLAIN:
        schema = metadata_tables.open_plain(root, question["location"], question["version"]).schema
        plan = metadata_tables.plan_plain(root, question)
    else:
        place = root.uri_of(question["location"])
        table = open_pinned(place, int(question["version"]), storage_options=dict(root.storage_options))
        schema = metadata_tables.inspected(table, question["kind"]).schema
        plan = metadata_tables.plan_inspected(table, question)
    names = list(question["columns"]) or [schema.names[0]]
    shown = spark_schema(schema)
    return answering(StructType([shown[name] for name in names]), {}), plan


def _opened(warehouse: Warehouse, location: str, question: Question) -> PartitionedTable:
    """The table in a directory, at one snapshot: that which is asked for, or the newest."""
    root = warehouse.catalog.root
    wanted: int | str | datetime | None = question.get("version")
    if isinstance(wanted, str) and wanted.isdigit():
        wanted = int(wanted)
    if question.get("timestamp") is not None:
        wanted = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=question["timestamp"])
    options = dict(root.storage_options)
    table = open_table(root.uri_of(location), version=wanted, storage_options=options)
    return open_pinned(root.uri_of(location), table.version, storage_options=options)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A table that has its directory and not yet its row."""

    entry: Entry
    replaced: str | None
    table: PartitionedTable


def _make(warehouse: Warehouse, question: Question) -> _Made:
    path, mode = question["id"], question["mode"]
    location, there = warehouse.place(path)
    if there is not None and mode == "create":
        raise TableAlreadyExistsError(f"table {shown(path)} already exists")
    if there is None and mode == "replace":
        raise TableNotFoundError(f"table {shown(path)} does not exist")
    if there is not None and not there.partitioned:
        raise UnsupportedOperationError(f"table {shown(path)} is a plain Lance table: drop it first")
    properties = dict(question["properties"])
    _check(properties, question["by"])
    root = warehouse.catalog.root
    asked = read_schema(question["schema"])
    columns = commented(arrow_schema(asked), asked)
    refuse_new_cycles(question["by"], columns, properties)
    try:
        create_table(
            root.uri_of(location),
            columns,
            question["by"],
            transactions=properties.get("transactions", STRONG),
            storage_options=dict(root.storage_options),
        )
        table = _opened(warehouse, location, {})
    except BaseException:
        warehouse.discard(location)
        raise
    entry = Entry(location=location, properties=properties)
    return _Made(entry=entry, replaced=None if there is None else there.location, table=table)


def _check(properties: dict[str, str], by: list[str]) -> None:
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


def _create(warehouse: Warehouse, question: Question) -> Any:
    made = _make(warehouse, question)
    _published(warehouse, question["id"], made.entry, made.replaced)
    return _loaded(warehouse, made.entry, made.table)


def _published(warehouse: Warehouse, path: list[str], entry: Entry, replaced: str | None) -> None:
    """Give a new table its row; its directory goes only where it is certain that the row was refused.

    A commit whose outcome is not known may still land: then the directory stays, for the table or for a sweep.
    """
    try:
        warehouse.publish(path, entry.location, entry.properties, replaced=replaced)
    except _REFUSALS:
        warehouse.discard(entry.location)
        raise


def _stage(warehouse: Warehouse, question: Question) -> Any:
    made = _make(warehouse, question)
    publish = {
        "id": question["id"],
        "location": made.entry.location,
        "properties": made.entry.properties,
        "replaced": made.replaced,
    }
    return _loaded(warehouse, made.entry, made.table, staged=publish)


def _publish(warehouse: Warehouse, question: Question) -> Any:
    entry = Entry(location=question["location"], properties=question["properties"])
    _published(warehouse, question["id"], entry, question["replaced"])
    return only({})


def _discard(warehouse: Warehouse, question: Question) -> Any:
    warehouse.discard(question["location"])
    return only({})


def _drop(warehouse: Warehouse, question: Question) -> Any:
    return only({"dropped": warehouse.drop(question["id"])})


def _rename(warehouse: Warehouse, question: Question) -> Any:
    warehouse.rename(question["id"], question["to"])
    return only({})


def _alter(warehouse: Warehouse, question: Question) -> Any:
    altering.alter(warehouse, question["id"], question["changes"])
    return only({})


_ANSWERS: Mapping[str, Callable[[Warehouse, Question], Any]] = {
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
