"""Queries of one table by filter, vector or full text, and their plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from lance_namespace import (
    AnalyzeTableQueryPlanRequest,
    ExplainTableQueryPlanRequest,
    QueryTableRequest,
    QueryTableResponse,
)
from lance_namespace_urllib3_client.models import QueryTableRequestFullTextQuery, QueryTableRequestVector

from lancepart.catalog.context import Catalog
from lancepart.catalog.data import opened, require_columns
from lancepart.catalog.tables import Located
from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.model.aliases import JsonObject
from lancepart.storage.dataset import Dataset, write_ipc

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace


Query: TypeAlias = QueryTableRequest | AnalyzeTableQueryPlanRequest


def query(catalog: Catalog, namespace: LanceNamespace, request: QueryTableRequest) -> QueryTableResponse:
    """The rows that a query finds, as an Arrow IPC file."""
    with opened(catalog, namespace, request, "query", request.version) as (dataset, located):
        table = dataset.scanner(**_arguments(dataset, located, request)).to_table()
        return QueryTableResponse(data=write_ipc(table))


def explain(catalog: Catalog, namespace: LanceNamespace, request: ExplainTableQueryPlanRequest) -> str:
    """The plan of a query, without running it."""
    inner = request.query
    target = request.model_copy(update={"id": request.id or inner.id})
    with opened(catalog, namespace, target, "plan a query of", inner.version) as (dataset, located):
        return str(dataset.scanner(**_arguments(dataset, located, inner)).explain_plan(bool(request.verbose)))


def analyze(catalog: Catalog, namespace: LanceNamespace, request: AnalyzeTableQueryPlanRequest) -> str:
    """The plan of a query with what each step took, by running it."""
    with opened(catalog, namespace, request, "analyze a query of", request.version) as (dataset, located):
        return str(dataset.scanner(**_arguments(dataset, located, request)).analyze_plan())


def _arguments(dataset: Dataset, located: Located, request: Query) -> JsonObject:
    vector = _vector(request.vector)
    text = request.full_text_query
    if vector is not None and text is not None:
        raise UnsupportedOperationError("a query by vector and full text at once is not supported: send two queries")
    arguments: JsonObject = {
        "filter": request.filter or None,
        "columns": _columns(dataset, located, request),
        "with_row_id": bool(request.with_row_id),
        "offset": request.offset or None,
    }
    if request.prefilter is not None:
        arguments["prefilter"] = request.prefilter
    if request.fast_search is not None:
        arguments["fast_search"] = request.fast_search
    if vector is not None:
        arguments["nearest"] = _nearest(dataset, located, request, vector)
        arguments.setdefault("prefilter", request.filter is not None and request.prefilter is not False)
        return arguments
    if text is not None:
        arguments["full_text_query"] = _full_text(text)
    if request.k:
        arguments["limit"] = request.k
    return arguments


def _columns(dataset: Dataset, located: Located, request: Query) -> list[str] | dict[str, str] | None:
    chosen = request.columns
    if chosen is None:
        return None
    if chosen.column_names:
        require_columns(dataset, located, list(chosen.column_names))
        return list(chosen.column_names)
    return dict(chosen.column_aliases) if chosen.column_aliases else None


def _vector(given: QueryTableRequestVector | None) -> list[float] | None:
    if given is None:
        return None
    if given.multi_vector:
        raise UnsupportedOperationError("several query vectors at once are not supported: send one query a vector")
    return list(given.single_vector or ()) or None


def _nearest(dataset: Dataset, located: Located, request: Query, vector: list[float]) -> JsonObject:
    column = request.vector_column or _only_vector_column(dataset)
    require_columns(dataset, located, [column])
    nearest: JsonObject = {"column": column, "q": pa.array(vector, pa.float32()), "k": request.k}
    optional = {
        "metric": request.distance_type,
        "nprobes": request.nprobes,
        "minimum_nprobes": request.minimum_nprobes,
        "maximum_nprobes": request.maximum_nprobes,
        "refine_factor": request.refine_factor,
        "ef": request.ef,
        "use_index": False if request.bypass_vector_index else None,
    }
    nearest |= {key: value for key, value in optional.items() if value is not None}
    if request.lower_bound is not None or request.upper_bound is not None:
        nearest["distance_range"] = (request.lower_bound, request.upper_bound)
    return nearest


def _only_vector_column(dataset: Dataset) -> str:
    found = [field.name for field in dataset.schema if pa.types.is_fixed_size_list(field.type)]
    if len(found) != 1:
        raise InvalidInputError(f"name the vector_column: the table has {len(found)} vector columns")
    return str(found[0])


def _full_text(text: QueryTableRequestFullTextQuery) -> JsonObject:
    if text.string_query is None:
        raise UnsupportedOperationError("structured full-text queries are not supported: send a string_query")
    string_query = text.string_query
    return (
        {"query": string_query.query, "columns": list(string_query.columns)}
        if string_query.columns
        else {"query": string_query.query}
    )
