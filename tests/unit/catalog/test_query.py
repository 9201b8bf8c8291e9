"""Queries of one table through the catalog."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lance_namespace import ExplainTableQueryPlanRequest, QueryTableRequest
from lance_namespace_urllib3_client.models import QueryTableRequestColumns, QueryTableRequestVector

from lancepart.catalog import query
from lancepart.errors import TableColumnNotFoundError
from tests.conformance.catalog.client import Client


def request(**fields: object) -> QueryTableRequest:
    return QueryTableRequest(id=["t"], k=10, vector=QueryTableRequestVector(), **fields)


def test_a_query_filters_and_projects(client: Client) -> None:
    wanted = request(filter="id = 2", columns=QueryTableRequestColumns(column_names=["name"]))
    found = query.query(client.inside, client.namespace, wanted)
    assert pa.ipc.open_file(pa.py_buffer(found.data)).read_all().to_pylist() == [{"name": "n2"}]


def test_a_column_that_is_missing_is_named(client: Client) -> None:
    wanted = request(columns=QueryTableRequestColumns(column_names=["nam"]))
    with pytest.raises(TableColumnNotFoundError, match="nam"):
        query.query(client.inside, client.namespace, wanted)


def test_a_plan_is_told_without_rows(client: Client) -> None:
    asked = ExplainTableQueryPlanRequest(id=["t"], query=request(filter="id = 2"))
    assert "id" in query.explain(client.inside, client.namespace, asked)
