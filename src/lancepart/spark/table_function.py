"""The table function ``lance_search`` of Spark SQL: what its arguments mean, and what it answers.

Where all arguments are constants the planning service searches itself, with what it keeps in memory, and the rows
travel with the reply. Where the query comes from rows of another table, Spark's Python workers search for each of them.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_type_hints

import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.layout.plain import PlainManifest
from lancepart.model.aliases import Value
from lancepart.model.suggest import near
from lancepart.model.values import logical_type
from lancepart.read.search import Search
from lancepart.read.search_request import SearchOptions, is_vector_type
from lancepart.spark import table_messages
from lancepart.spark.describe import schema_json
from lancepart.spark.types import arrow_schema, as_spark, read_type, spark_schema
from pyspark_lancepart.search_function import SearchFunction

if TYPE_CHECKING:
    from lancepart.table import PartitionedTable

NAME = "lance_search"
VARYING = ("query", "text", "where")
"""The arguments that may be columns of other tables."""
_OPTIONS = tuple(get_type_hints(SearchOptions))
_TEXTS = ("column", "text_column", "text", "where")
ARGUMENTS = ("column", "query", "k", "where", "text", "text_column", "columns", *_OPTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCall:
    """A call of the function; an argument that is NULL is one that was not given."""

    arguments: Mapping[str, Value]

    def __post_init__(self) -> None:
        for name, value in self.arguments.items():
            if name not in ARGUMENTS:
                raise InvalidInputError(f"{NAME} has no argument {name!r}{near(name, ARGUMENTS)}")
            if name in _TEXTS and value is not None and not isinstance(value, str):
                raise InvalidInputError(f"the argument {name} of {NAME} is {value!r}: give a text")
        columns = self.arguments.get("columns")
        if columns is not None and not (isinstance(columns, list) and all(isinstance(each, str) for each in columns)):
            raise InvalidInputError(f"the argument columns of {NAME} is {columns!r}: give an array of names")

    def search(self, table: PartitionedTable, columns: Sequence[str] | None = None) -> Search:
        """The search that the call describes; ``columns`` are those needed, if they are fewer."""
        given = {name: value for name, value in self.arguments.items() if value is not None}
        options = {name: given[name] for name in ("k", *_OPTIONS) if name in given}
        scan = table.scan(given.get("where"), given.get("columns") if columns is None else columns)
        query, text = given.get("query"), given.get("text")
        vector_column, text_column = given.get("column"), given.get("text_column")
        if text is None:
            if text_column is not None and not isinstance(query, str):
                raise InvalidInputError("text_column names the column of a text: give one with text => '…'")
            return Search.of(scan, query, text_column or vector_column, options=options)
        if query is None:
            return Search.of(scan, text, text_column or vector_column, options=options)
        if isinstance(query, str):
            raise InvalidInputError("query and text are both texts: for a hybrid search query is a vector")
        return Search.of(scan, None, (vector_column, text_column), hybrid=(query, text), options=options)


def planned(
    table: PartitionedTable, request: table_messages.SearchRequest, location: tuple[str, dict[str, str]]
) -> table_messages.SearchReply:
    """The columns that a call answers, and what Spark's workers run where it is not all constant."""
    for name in request.varying:
        if name not in VARYING:
            raise InvalidInputError(
                f"the argument {name} of {NAME} is not a constant: only {', '.join(VARYING)} may be columns"
            )
    kinds = {name: arrow_schema(_struct(name, kind)).field(0).type for name, kind in request.varying.items()}
    samples = {name: _sample(table, request.arguments, name, kind) for name, kind in kinds.items()}
    call = SearchCall(arguments={**request.arguments, **samples})
    schema = schema_json(spark_schema(call.search(table).schema))
    if not request.varying:
        return table_messages.SearchReply(schema=schema)
    root, storage = location
    manifest = table._manifest
    work = {
        "root": manifest.root.uri if isinstance(manifest, PlainManifest) else root,
        "plain": manifest.snapshot().location if isinstance(manifest, PlainManifest) else None,
        "storage": storage,
        "version": request.version,
        "arguments": dict(request.arguments),
        "varying": list(request.varying),
        "schema": schema,
    }
    return table_messages.SearchReply(schema=schema, function=pickle.dumps(SearchFunction(json.dumps(work))))


def _struct(name: str, kind: Value) -> Value:
    from pyspark.sql.types import StructType

    return StructType().add(name, read_type(json.dumps(kind)))


def _sample(table: PartitionedTable, arguments: Mapping[str, Value], name: str, kind: pa.DataType) -> Value:
    """A value of an argument that varies, so that the call can be checked before any row is there."""
    if pa.types.is_string(kind):
        return None if name == "where" else ""
    if name != "query" or not pa.types.is_list(kind) or not _is_number(kind.value_type):
        wanted = "a vector or a text" if name == "query" else "a text"
        raise InvalidInputError(f"the argument {name} of {NAME} is {kind}: give {wanted}")
    fields = {field.name: field.type for field in table.schema if is_vector_type(field.type)}
    column = arguments.get("column") or next(iter(fields), None)
    return [0.0] * logical_type(fields[column]).list_size if column in fields else [0.0]


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind))


def answered(table: PartitionedTable, request: table_messages.SearchRowsRequest) -> table_messages.InlineReply:
    """The rows of a call with constant arguments."""
    names = table.schema.names
    columns = [name for name in request.columns if name in names] or names[:1]
    search = SearchCall(arguments=request.arguments).search(table, columns)
    shown = spark_schema(search.schema)
    schema = arrow_schema(type(shown)([shown[name] for name in request.columns]))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        for batch in search.to_arrow().combine_chunks().to_batches():
            stream.write_batch(as_spark(batch, schema))
    return table_messages.InlineReply(rows=sink.getvalue().to_pybytes())
