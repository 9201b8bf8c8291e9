"""QueryTable, ExplainTableQueryPlan and AnalyzeTableQueryPlan."""

from typing import Any

import pyarrow as pa
import pytest
from lance_namespace import QueryTableRequest
from lance_namespace_urllib3_client.models import (
    QueryTableRequestColumns,
    QueryTableRequestFullTextQuery,
    QueryTableRequestVector,
    StringFtsQuery,
)

from lancepart.errors import (
    InvalidInputError,
    TableColumnNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)
from tests.conformance.catalog.client import Client, refused

DOCUMENTS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "text": ["a lance of steel", "a partition of lances", "the directory", "steel and stone"],
        "vector": pa.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [5.0, 5.0]], pa.list_(pa.float32(), 2)),
    }
)


@pytest.fixture
def documents(client: Client) -> Client:
    client.create("docs", data=DOCUMENTS)
    return client


def vector(*values: float) -> QueryTableRequestVector:
    return QueryTableRequestVector(single_vector=list(values))


def words(query: str, columns: list[str] | None = None) -> QueryTableRequestFullTextQuery:
    return QueryTableRequestFullTextQuery(string_query=StringFtsQuery(query=query, columns=columns))


def found(client: Client, **fields: Any) -> pa.Table:
    answer = client.query_table("docs", **{"k": 10, "vector": vector(), **fields})
    return pa.ipc.open_file(answer.data).read_all()


def test_query_table_by_filter_columns_limit_and_offset(anywhere: Client) -> None:
    anywhere.create("docs", data=DOCUMENTS)
    columns = QueryTableRequestColumns(column_names=["id"])

    assert found(anywhere, filter="id > 1", columns=columns)["id"].to_pylist() == [2, 3, 4]
    assert found(anywhere, k=1, offset=2, columns=columns).to_pydict() == {"id": [3]}


def test_query_table_aliases_and_row_ids(documents: Client) -> None:
    columns = QueryTableRequestColumns(column_aliases={"twice": "id * 2"})

    assert found(documents, columns=columns, filter="id = 3", with_row_id=True).to_pydict() == {
        "twice": [6],
        "_rowid": [2],
    }


def test_query_table_at_a_version(documents: Client) -> None:
    documents.delete_from_table("docs", predicate="id > 1")

    assert found(documents, version=1).num_rows == 4
    assert found(documents).num_rows == 1
    with refused(TableVersionNotFoundError, 11):
        found(documents, version=9)


def test_query_table_by_vector_is_nearest_first(documents: Client) -> None:
    answer = found(documents, vector=vector(0.9, 0.0), k=2)

    assert answer["id"].to_pylist() == [2, 1]
    assert "_distance" in answer.column_names


def test_query_table_by_vector_with_filter_metric_and_bounds(documents: Client) -> None:
    near = {"vector": vector(0.9, 0.0), "vector_column": "vector", "k": 4}

    assert found(documents, **near, filter="id <> 2", prefilter=True)["id"].to_pylist()[0] == 1
    assert found(documents, **near, upper_bound=1.0)["id"].to_pylist() == [2, 1]
    assert found(documents, **near, distance_type="dot")["id"].to_pylist()[0] == 4


def test_query_table_by_vector_through_an_index(documents: Client) -> None:
    documents.create_table_index("docs", column="vector", index_type="IVF_FLAT", num_partitions=1, distance_type="l2")

    assert found(documents, vector=vector(5.0, 5.0), k=1, nprobes=1)["id"].to_pylist() == [4]
    assert found(documents, vector=vector(5.0, 5.0), k=1, bypass_vector_index=True)["id"].to_pylist() == [4]


def test_query_table_by_full_text(documents: Client) -> None:
    documents.create_table_index("docs", column="text", index_type="FTS", with_position=True)

    assert sorted(found(documents, full_text_query=words("steel"))["id"].to_pylist()) == [1, 4]
    assert found(documents, full_text_query=words("steel", ["text"]), filter="id > 1")["id"].to_pylist() == [4]


@pytest.mark.parametrize(
    ("fields", "error", "code"),
    [
        ({"filter": "no such column"}, InvalidInputError, 13),
        ({"columns": QueryTableRequestColumns(column_names=["other"])}, TableColumnNotFoundError, 12),
        ({"vector": vector(1.0, 2.0), "vector_column": "other"}, TableColumnNotFoundError, 12),
        ({"vector": vector(1.0, 2.0, 3.0)}, InvalidInputError, 13),
        ({"vector": QueryTableRequestVector(multi_vector=[[1.0, 2.0]])}, UnsupportedOperationError, 0),
        ({"vector": vector(1.0, 2.0), "full_text_query": words("steel")}, UnsupportedOperationError, 0),
        ({"full_text_query": QueryTableRequestFullTextQuery()}, UnsupportedOperationError, 0),
        ({"branch": "dev"}, UnsupportedOperationError, 0),
    ],
)
def test_query_table_what_can_not_be_answered_is_refused(
    documents: Client, fields: dict[str, Any], error: type, code: int
) -> None:
    with refused(error, code):
        found(documents, **fields)


def test_explain_table_query_plan_shows_the_plan(documents: Client) -> None:
    query = QueryTableRequest(k=2, filter="id > 1", vector=vector())

    plain = documents.explain_table_query_plan("docs", query=query)
    verbose = documents.explain_table_query_plan("docs", query=query, verbose=True)

    assert "id > " in plain
    assert len(verbose) >= len(plain)


def test_analyze_table_query_plan_runs_it_and_shows_what_it_took(documents: Client) -> None:
    assert "output_rows=3" in documents.analyze_table_query_plan("docs", k=10, filter="id > 1", vector=vector())
