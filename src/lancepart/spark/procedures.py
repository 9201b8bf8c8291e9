"""The procedures that ``CALL lance.system.…`` knows: their arguments, and the columns of what they answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lancepart.errors import InvalidInputError, LanceNamespaceError
from lancepart.layout.declared_indices import AUTO
from lancepart.maintain.leaf_maintenance import TARGET_ROWS
from lancepart.maintain.local import using
from lancepart.queries.warehouse import Warehouse
from lancepart.spark import calls, handed_work
from lancepart.spark.calls import Arguments, Rows
from lancepart.spark.catalog_messages import CallReply, CallRequest, Parameter, ProcedureInfo, ProceduresReply
from lancepart.spark.describe import schema_json
from lancepart.spark.protocol import Message
from lancepart.spark.table_messages import Nothing
from lancepart.spark.types import spark_schema

NAMESPACE = "system"
_REQUIRED, _NULL = None, "NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """What can be called: with which arguments, giving which columns."""

    run: Callable[[Warehouse, Arguments], Rows]
    comment: str
    parameters: tuple[Parameter, ...]
    columns: pa.Schema

    def info(self) -> ProcedureInfo:
        """What Spark must know to bind a call."""
        return ProcedureInfo(comment=self.comment, parameters=self.parameters)


def listed(warehouse: Warehouse, request: Nothing) -> Message:
    """All procedures, and the namespace that they are in."""
    return ProceduresReply(namespace=NAMESPACE, procedures={name: each.info() for name, each in PROCEDURES.items()})


def call(warehouse: Warehouse, request: CallRequest) -> Message:
    """Run a procedure; its rows are the reply."""
    name = request.procedure
    procedure = PROCEDURES[name]
    try:
        _refuse_nulls(procedure, request.arguments)
        with using(handed_work.executor(request.parallelism)):
            rows = calls.run(name, procedure.run, warehouse, {"catalog": request.catalog, **request.arguments})
    except LanceNamespaceError as error:
        error.args = (f"{name}: {error}",)
        raise
    names = procedure.columns.names
    return CallReply(
        schema=schema_json(spark_schema(procedure.columns)),
        rows=tuple(tuple(row[name] for name in names) for row in rows),
    )


def _refuse_nulls(procedure: Procedure, given: Arguments) -> None:
    for each in procedure.parameters:
        if each.default != _NULL and given.get(each.name) is None:
            raise InvalidInputError(f"the argument {each.name} is NULL: give it a value")


_TABLE = Parameter("table", "the table: namespace.table, with back-ticks around names that hold dots")
_FIELD = Parameter("field", "a partition field: its name, or how it is written, such as bucket(16, id)")
_NEW_FIELD = Parameter(
    name="field", comment="how the partition field is written: country, year(ts), bucket(16, id) AS name"
)
_OLDER_THAN = Parameter("older_than", "a moment", "timestamp", _NULL)
_AGE = Parameter("age", "in the place of a moment: 7d, 12h, 30m", default=_NULL)

_COUNT, _TEXTS = pa.int64(), pa.list_(pa.string())
_COMMITTED = pa.schema([("changed", _COUNT), ("skipped", _TEXTS), ("version", _COUNT)])
_REMOVED = pa.schema([("changed", _COUNT), ("removed_files", _COUNT), ("freed_bytes", _COUNT)])
_SWEPT = pa.schema([*_REMOVED, ("locations", _TEXTS)])
_SPEC = pa.schema([("spec_id", _COUNT), *((name, pa.string()) for name in ("field_id", "source", "transform"))])
_TAGGED = pa.schema([("name", pa.string()), ("version", _COUNT)])

PROCEDURES: Mapping[str, Procedure] = {
    "compact": Procedure(
        run=calls.compact,
        comment="Put small fragments together and drop deleted rows",
        parameters=(
            _TABLE,
            Parameter("target_rows", "rows of a fragment", "bigint", str(TARGET_ROWS)),
        ),
        columns=_COMMITTED,
    ),
    "rewrite": Procedure(
        run=calls.rewrite,
        comment="Move rows that older partitionings placed into the partitions of the newest",
        parameters=(
            _TABLE,
            Parameter("where", "which rows, in SQL of DataFusion's dialect", default=_NULL),
        ),
        columns=_COMMITTED,
    ),
    "create_index": Procedure(
        run=calls.create_index,
        comment="Declare an index and build it, in place of one of the same name",
        parameters=(
            _TABLE,
            Parameter("column", "the column"),
            Parameter("kind", "BTREE, BITMAP, IVF_PQ, FTS, …; what suits the column, unless given", default=_NULL),
            Parameter("name", "what the index is called", default=_NULL),
            Parameter("params", "parameters of the index", "map<string,string>", _NULL),
            Parameter("scope", "leaf (in each partition), table (one over all of them) or auto", default=f"'{AUTO}'"),
            Parameter("where", "in which partitions, in SQL of DataFusion's dialect", default=_NULL),
        ),
        columns=_COMMITTED,
    ),
    "optimize_indices": Procedure(
        run=calls.optimize_indices,
        comment="Let indices cover rows and partitions that came since they were built",
        parameters=(_TABLE,),
        columns=_COMMITTED,
    ),
    "drop_index": Procedure(
        run=calls.drop_index,
        comment="Remove an index from all partitions",
        parameters=(_TABLE, Parameter("name", "what the index is called")),
        columns=_COMMITTED,
    ),
    "expire": Procedure(
        run=calls.expire,
        comment="Forget old snapshots and remove what only they needed",
        parameters=(_TABLE, _OLDER_THAN, _AGE),
        columns=_REMOVED,
    ),
    "remove_orphans": Procedure(
        run=calls.remove_orphans,
        comment="Remove what failed writers left in a table or, without one, tables that failed statements left",
        parameters=(
            Parameter("table", "the table, or the whole warehouse", default=_NULL),
            _OLDER_THAN,
            _AGE,
            Parameter("dry_run", "only list what would be removed", "boolean", "false"),
        ),
        columns=_SWEPT,
    ),
    "repair": Procedure(
        run=calls.repair,
        comment="Empty the partitions whose files are gone or damaged; their rows are lost",
        parameters=(
            _TABLE,
            Parameter("dry_run", "only list them, as skipped", "boolean", "false"),
            Parameter("leaves", "the ids of those that may be emptied; all, unless given", "array<string>", _NULL),
        ),
        columns=_COMMITTED,
    ),
    "rollback": Procedure(
        run=calls.rollback,
        comment="Bring back the rows of an older snapshot, as a new one",
        parameters=(
            _TABLE,
            Parameter("version", "the snapshot's number, or a tag", default=_NULL),
            Parameter("timestamp", "in its place: the snapshot of a moment", "timestamp", _NULL),
        ),
        columns=pa.schema([("version", _COUNT)]),
    ),
    "create_tag": Procedure(
        run=calls.create_tag,
        comment="Name a snapshot; a named one does not expire",
        parameters=(
            _TABLE,
            Parameter("name", "what it is to be called"),
            Parameter(
                name="version", comment="the snapshot's number; the newest, unless given", type="bigint", default=_NULL
            ),
        ),
        columns=_TAGGED,
    ),
    "drop_tag": Procedure(
        run=calls.drop_tag,
        comment="Take a name of a snapshot away",
        parameters=(_TABLE, Parameter("name", "what it is called")),
        columns=_TAGGED,
    ),
    "upgrade": Procedure(
        run=calls.upgrade,
        comment="Turn a table of an older layout into the current one",
        parameters=(
            _TABLE,
            Parameter("remove_old", "remove the old tree", "boolean", "false"),
        ),
        columns=pa.schema([("version", _COUNT), ("rows", _COUNT)]),
    ),
    "add_partition_field": Procedure(
        run=calls.add_field,
        comment="Partition new rows by one more field",
        parameters=(_TABLE, _NEW_FIELD),
        columns=_SPEC,
    ),
    "drop_partition_field": Procedure(
        run=calls.drop_field,
        comment="Partition new rows by one field less",
        parameters=(_TABLE, _FIELD),
        columns=_SPEC,
    ),
    "replace_partition_field": Procedure(
        run=calls.replace_field,
        comment="Partition new rows by another field in the place of one",
        parameters=(
            _TABLE,
            _FIELD,
            Parameter("by", "how the new field is written: day(ts), bucket(32, id)"),
        ),
        columns=_SPEC,
    ),
}
