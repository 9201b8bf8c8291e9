"""Evaluating filters on rows in memory, by DataFusion."""

from __future__ import annotations

import pyarrow as pa
from datafusion import DataFrame, SessionConfig, SessionContext

from lancepart.model.predicate import Predicate
from lancepart.model.terms import bind_terms

DEEP_FILTERS = {"datafusion.sql_parser.recursion_limit": "256"}
"""What lets DataFusion's parser read filters that are nested as deep as they may be."""


def session_config() -> SessionConfig:
    """The settings of a context that reads filters."""
    return SessionConfig(DEEP_FILTERS)


def matching_rows(rows: pa.RecordBatch, predicate: Predicate) -> pa.RecordBatch:
    """The rows of a batch that a filter matches."""
    found = _query(rows, f"SELECT * FROM rows WHERE {predicate.to_sql()}").collect()
    table = pa.Table.from_batches(found, schema=rows.schema) if found else rows.schema.empty_table()
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)


def outcome(rows: pa.RecordBatch, predicate: Predicate) -> bool | None:
    """The result of a filter for the one row of a batch."""
    answer: bool | None = _query(rows, f"SELECT {predicate.to_sql()} AS answer FROM rows").to_pydict()["answer"][0]
    return answer


def _query(rows: pa.RecordBatch, sql: str) -> DataFrame:
    context = SessionContext(session_config())
    context.register_record_batches("rows", [[rows]])
    return context.sql(bind_terms(context, sql, rows.schema))
