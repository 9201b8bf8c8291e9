"""Searches for the rows of a Spark DataFrame: by the driver if they are few, else where the queries are."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lancepart.errors import InvalidInputError, TableColumnNotFoundError
from lancepart.model.predicate import Predicate
from lancepart.read.row_ids import FIELD
from lancepart.read.scan import Scan
from lancepart.read.search import Search
from lancepart.read.search_request import BatchRequest
from lancepart.read.search_run import QUERY_INDEX
from lancepart.spark.types import arrow_schema, as_spark, spark_schema
from lancepart.storage.search import DISTANCE, SCORE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FEW = 2_000
"""So many queries are answered faster by the driver than by tasks that each open the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSearch:
    """Searches of one snapshot; plain values, so that they can be made elsewhere."""

    root: str
    version: int
    storage_options: dict[str, str]
    where: Predicate | None
    columns: tuple[str, ...] | None
    request: BatchRequest
    text: bool
    kept: tuple[str, ...]

    def found(self, scan: Scan, queries: pa.Table) -> pa.Table:
        """The best rows of each query, after the query's other columns."""
        valid = [at for at, value in enumerate(queries.column(self.request.query)) if value.is_valid]
        given = queries.take(pa.array(valid, pa.int64()))
        held = given.column(self.request.query).to_pylist()
        if not valid:
            rows, numbers = self.schema(scan).empty_table(), np.array([], dtype=np.int64)
        elif self.text:
            parts = [self._search(scan, text) for text in held]
            numbers = np.repeat(np.arange(len(parts)), [part.num_rows for part in parts])
            rows = pa.concat_tables(parts)
        else:
            rows = self._search(scan, held)
            numbers = rows.column(QUERY_INDEX).to_numpy()
            rows = rows.drop_columns([QUERY_INDEX])
        kept = given.select(list(self.kept)).take(pa.array(numbers, pa.int64()))
        return pa.table([*kept.columns, *rows.columns], schema=pa.schema([*kept.schema, *rows.schema]))

    def _search(self, scan: Scan, query: Any) -> pa.Table:
        return Search.of(scan, query, self.request.column, options=self.request.options).to_arrow()

    def schema(self, scan: Scan) -> pa.Schema:
        """The schema of what is found, without the queries' columns."""
        ranked = pa.field(SCORE if self.text else DISTANCE, pa.float32())
        ids = [FIELD] if self.request.options.get("with_row_id") else []
        return pa.schema([*scan.schema, ranked, *ids])


def search_batch(scan: Scan, queries: DataFrame, request: BatchRequest) -> DataFrame:
    """The best rows of a scan for each row of a DataFrame."""
    if not hasattr(queries, "mapInArrow"):
        raise InvalidInputError(
            f"queries is a {type(queries).__name__}: give a Spark DataFrame; without Spark, table.search takes vectors"
        )
    given = arrow_schema(queries.schema)
    if request.query not in given.names:
        raise TableColumnNotFoundError(
            f"the queries have no column {request.query!r}: name the one that holds them with query="
        )
    search = BatchSearch(
        root=scan.root.uri,
        version=scan.snapshot.version,
        storage_options=dict(scan.root.storage_options),
        where=scan.predicate,
        columns=scan.columns,
        request=request,
        text=pa.types.is_string(given.field(request.query).type),
        kept=tuple(name for name in given.names if name != request.query),
    )
    _check(scan, search, given)
    shown = spark_schema(pa.schema([*(given.field(name) for name in search.kept), *search.schema(scan)]))
    schema = arrow_schema(shown)
    few = queries.limit(FEW + 1).toArrow()
    if few.num_rows <= FEW:
        rows = search.found(scan, few).combine_chunks()
        ready = pa.Table.from_batches([as_spark(each, schema) for each in rows.to_batches()], schema)
        return queries.sparkSession.createDataFrame(ready, shown)
    packed = pickle.dumps((search, schema))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from lancepart.spark.searching import searched

        yield from searched(packed, batches)

    return queries.mapInArrow(run, shown)


def _check(scan: Scan, search: BatchSearch, given: pa.Schema) -> None:
    """Refuse what a search of one query refuses, and duplicate names."""
    shown = search.schema(scan).names
    if twice := [name for name in search.kept if name in shown]:
        raise InvalidInputError(f"queries and rows both have a column {twice[0]!r}: rename that of the queries")
    kind = given.field(search.request.query).type
    if search.text:
        Search.of(scan, "", search.request.column, options=search.request.options)
    elif not pa.types.is_list(kind):
        raise InvalidInputError(f"column {search.request.query!r} of the queries is {kind}: use vectors or texts")


def searched(packed: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows for some queries, on the executor that has them."""
    from lancepart.table import open_pinned

    search, schema = pickle.loads(packed)
    table = open_pinned(search.root, search.version, storage_options=search.storage_options)
    scan = replace(table.scan(columns=search.columns), where=search.where)
    for batch in batches:
        rows = search.found(scan, pa.Table.from_batches([batch])).combine_chunks()
        yield from (as_spark(each, schema) for each in rows.to_batches())
