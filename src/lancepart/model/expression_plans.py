"""Expressions parsed and compiled by DataFusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from threading import Lock

import pyarrow as pa
from datafusion import Expr, SessionConfig, SessionContext

from lancepart.model.functions import FUNCTIONS, bind_functions, expression_type, register_functions
from lancepart.model.values import canonical, decoded, logical_type

_LOCK = Lock()
_STATEFUL = {"version"}


@cache
def context() -> SessionContext:
    """The session that parses and evaluates expressions."""
    config = SessionConfig().with_target_partitions(1).with_information_schema(True)
    ctx = SessionContext(config)
    register_functions(ctx)
    return ctx


@cache
def _routines() -> tuple[frozenset[str], frozenset[str]]:
    """The names of the scalar functions that always give the same, and of those that do not."""
    query = "SELECT DISTINCT routine_name, function_type, is_deterministic FROM information_schema.routines"
    rows = context().sql(query).to_arrow_table().to_pylist()
    unstable = {row["routine_name"] for row in rows if not row["is_deterministic"]} | _STATEFUL
    scalar = {row["routine_name"] for row in rows if row["function_type"] == "SCALAR"}
    return frozenset(scalar - unstable | set(FUNCTIONS)), frozenset(unstable)


def stable_functions() -> frozenset[str]:
    """The scalar functions that always give the same value for the same arguments."""
    return _routines()[0]


def unstable_functions() -> frozenset[str]:
    """The functions that may give another value each time."""
    return _routines()[1]


def column_schema(types: Sequence[pa.DataType]) -> pa.Schema:
    """The columns ``col0``, ``col1``, … with some types."""
    return pa.schema([(f"col{position}", kind) for position, kind in enumerate(types)])


@lru_cache(maxsize=512)
def parsed(sql: str, arity: int) -> Expr:
    """The tree of an expression, before its columns have types."""
    batch = pa.RecordBatch.from_pylist([], schema=column_schema([pa.null()] * arity))
    return context().read_batch(batch).parse_sql_expr(sql)


@lru_cache(maxsize=512)
def compiled(sql: str, schema: pa.Schema) -> tuple[Expr, pa.DataType]:
    """The expression over typed columns, and its type; functions are registered by one thread at a time."""
    with _LOCK:
        ctx = context()
        bound = bind_functions(ctx, sql, schema)
        frame = ctx.read_batch(pa.RecordBatch.from_pylist([], schema=schema))
        return frame.parse_sql_expr(bound).alias("value"), expression_type(ctx, bound, schema)


def walk(node: Expr) -> Iterator[Expr]:
    """A node of an expression and all nodes below it."""
    yield node
    if node.variant_name() not in {"Column", "Literal"}:
        for child in node.rex_call_operands():
            yield from walk(child)


def widest_type(source_type: pa.DataType) -> pa.DataType:
    """The widest form of a type: what makes an expression blind to how wide its columns are today."""
    kind = logical_type(source_type)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_integer(kind):
        return kind if pa.types.is_uint64(kind) else pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_decimal(kind) and kind.bit_width < 256:
        return pa.decimal128(38, kind.scale)
    return kind


def widened(array: pa.Array) -> pa.Array:
    """An array decoded, and cast to the widest form of its type."""
    plain = decoded(array)
    return canonical(plain.cast(widest_type(plain.type)))
