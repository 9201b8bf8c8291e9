"""Indices and statistics of one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_namespace import (
    CreateTableIndexRequest,
    CreateTableIndexResponse,
    CreateTableScalarIndexResponse,
    DescribeTableIndexStatsRequest,
    DescribeTableIndexStatsResponse,
    DropTableIndexRequest,
    DropTableIndexResponse,
    GetTableStatsRequest,
    GetTableStatsResponse,
    ListTableIndicesRequest,
    ListTableIndicesResponse,
)
from lance_namespace_urllib3_client.models import FragmentStats, FragmentSummary, IndexContent

from lancepart.catalog import requests
from lancepart.catalog.context import Catalog, shown
from lancepart.catalog.data import changing, opened, require_columns
from lancepart.catalog.tables import Located
from lancepart.errors import InvalidInputError, TableIndexAlreadyExistsError, TableIndexNotFoundError
from lancepart.model.aliases import JsonObject
from lancepart.storage.dataset import Dataset

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

    from lancepart.storage.dataset import IndexDescription


_SCALAR = {"BTREE", "BITMAP", "LABEL_LIST", "NGRAM", "ZONEMAP", "BLOOMFILTER", "INVERTED", "FTS"}
_VECTOR = {"IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"}
_TEXT_OPTIONS = (
    *("with_position", "base_tokenizer", "language", "max_token_length"),
    *("lower_case", "stem", "remove_stop_words", "ascii_folding"),
)
_VECTOR_OPTIONS = (
    *("num_partitions", "num_sub_vectors", "num_bits", "sample_rate"),
    *("max_iterations", "target_partition_size", "m", "ef_construction"),
)
_SMALL_FRAGMENT_ROWS = 100_000


def create(catalog: Catalog, namespace: LanceNamespace, request: CreateTableIndexRequest) -> CreateTableIndexResponse:
    """Build a scalar, full-text or vector index."""
    kind = request.index_type.upper()
    if kind not in _SCALAR | _VECTOR:
        raise InvalidInputError(
            f"index type {request.index_type!r} is unknown: use {', '.join(sorted(_SCALAR | _VECTOR))}"
        )
    with changing(catalog, namespace, request, "index") as (dataset, located):
        require_columns(dataset, located, [request.column])
        name = request.name or f"{request.column}_idx"
        if any(index.name == name for index in dataset.describe_indices()):
            raise TableIndexAlreadyExistsError(f"table {shown(located.path)} already has an index {name!r}")
        if kind in _SCALAR:
            scalar = "INVERTED" if kind == "FTS" else kind
            options = _text_options(kind, request)
            dataset.create_scalar_index(request.column, scalar, name=name, replace=False, **options)  # type: ignore[arg-type]
        else:
            dataset.create_index(request.column, kind, name=name, replace=False, **_vector_options(request))
        return CreateTableIndexResponse()


def create_scalar(
    catalog: Catalog, namespace: LanceNamespace, request: CreateTableIndexRequest
) -> CreateTableScalarIndexResponse:
    """Build a scalar index; a vector index is refused."""
    if request.index_type.upper() not in _SCALAR:
        raise InvalidInputError(f"index type {request.index_type!r} is not scalar: use {', '.join(sorted(_SCALAR))}")
    create(catalog, namespace, request)
    return CreateTableScalarIndexResponse()


def _text_options(kind: str, request: CreateTableIndexRequest) -> JsonObject:
    if kind not in ("INVERTED", "FTS"):
        return {}
    return {name: value for name in _TEXT_OPTIONS if (value := getattr(request, name, None)) is not None}


def _vector_options(request: CreateTableIndexRequest) -> JsonObject:
    options = {name: value for name in _VECTOR_OPTIONS if (value := getattr(request, name, None)) is not None}
    if request.distance_type:
        options["metric"] = request.distance_type
    return options


def list_indices(
    catalog: Catalog, namespace: LanceNamespace, request: ListTableIndicesRequest
) -> ListTableIndicesResponse:
    """The indices of a table."""
    with opened(catalog, namespace, request, "list indices of", request.version) as (dataset, _):
        found = {index.name: index for index in dataset.describe_indices()}
        names, token = requests.page(sorted(found), request.page_token, request.limit)
        return ListTableIndicesResponse(indexes=[_content(dataset, found[name]) for name in names], page_token=token)


def _content(dataset: Dataset, index: IndexDescription) -> IndexContent:
    stats = dataset.stats.index_stats(index.name)
    uuids = [str(segment.uuid) for segment in index.segments]
    return IndexContent(
        index_name=index.name,
        index_uuid=uuids[0] if uuids else "",
        columns=list(index.field_names),
        status="SUCCEEDED",
        index_type=index.index_type,
        num_indexed_rows=stats.get("num_indexed_rows"),
        num_unindexed_rows=stats.get("num_unindexed_rows"),
        num_segments=len(uuids),
    )


def describe_stats(
    catalog: Catalog, namespace: LanceNamespace, request: DescribeTableIndexStatsRequest
) -> DescribeTableIndexStatsResponse:
    """How much of a table an index covers."""
    with opened(catalog, namespace, request, "describe an index of", request.version) as (dataset, located):
        index = _require(dataset, located, request.index_name)
        stats = dataset.stats.index_stats(index.name)
        parts = stats.get("indices") or [{}]
        return DescribeTableIndexStatsResponse(
            index_type=index.index_type,
            distance_type=parts[0].get("metric_type"),
            num_indexed_rows=stats.get("num_indexed_rows"),
            num_unindexed_rows=stats.get("num_unindexed_rows"),
            num_indices=stats.get("num_indices"),
        )


def drop(catalog: Catalog, namespace: LanceNamespace, request: DropTableIndexRequest) -> DropTableIndexResponse:
    """Remove an index."""
    with changing(catalog, namespace, request, "drop an index of") as (dataset, located):
        dataset.drop_index(_require(dataset, located, request.index_name).name)
        return DropTableIndexResponse()


def _require(dataset: Dataset, located: Located, name: str | None) -> IndexDescription:
    found = next((index for index in dataset.describe_indices() if index.name == name), None)
    if found is None:
        raise TableIndexNotFoundError(f"table {shown(located.path)} has no index {name!r}")
    return found


def table_stats(catalog: Catalog, namespace: LanceNamespace, request: GetTableStatsRequest) -> GetTableStatsResponse:
    """Rows, bytes, fragments and indices of a table."""
    with opened(catalog, namespace, request, "read statistics of") as (dataset, _):
        lengths = sorted(fragment.count_rows() for fragment in dataset.get_fragments())
        size = sum(field.bytes_on_disk for field in dataset.stats.data_stats().fields)  # type: ignore[attr-defined]
        return GetTableStatsResponse(
            total_bytes=size,
            num_rows=sum(lengths),
            num_indices=len(dataset.describe_indices()),
            fragment_stats=FragmentStats(
                num_fragments=len(lengths),
                num_small_fragments=sum(length < _SMALL_FRAGMENT_ROWS for length in lengths),
                lengths=_summary(lengths),
            ),
        )


def _summary(lengths: list[int]) -> FragmentSummary:
    def at(share: float) -> int:
        return lengths[min(len(lengths) - 1, int(share * len(lengths)))] if lengths else 0

    mean = sum(lengths) // len(lengths) if lengths else 0
    return FragmentSummary(min=at(0), max=at(1), mean=mean, p25=at(0.25), p50=at(0.5), p75=at(0.75), p99=at(0.99))
