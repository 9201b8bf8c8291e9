"""Indices of one table through the catalog."""

from __future__ import annotations

import pytest
from lance_namespace import (
    CreateTableIndexRequest,
    DropTableIndexRequest,
    GetTableStatsRequest,
    ListTableIndicesRequest,
)

from lancepart.catalog import indices
from lancepart.errors import InvalidInputError, TableIndexNotFoundError
from tests.conformance.catalog.client import Client


def listed(client: Client) -> list[str]:
    found = indices.list_indices(client.inside, client.namespace, ListTableIndicesRequest(id=["t"]))
    return [each.index_name for each in found.indexes]


def test_an_index_is_built_listed_and_dropped(client: Client) -> None:
    request = CreateTableIndexRequest(id=["t"], column="id", index_type="btree", name="by_id")
    indices.create_scalar(client.inside, client.namespace, request)
    assert listed(client) == ["by_id"]

    indices.drop(client.inside, client.namespace, DropTableIndexRequest(id=["t"], index_name="by_id"))
    assert listed(client) == []
    with pytest.raises(TableIndexNotFoundError, match="by_id"):
        indices.drop(client.inside, client.namespace, DropTableIndexRequest(id=["t"], index_name="by_id"))


def test_an_index_of_an_unknown_kind_is_refused(client: Client) -> None:
    request = CreateTableIndexRequest(id=["t"], column="id", index_type="magic")
    with pytest.raises(InvalidInputError, match="magic"):
        indices.create(client.inside, client.namespace, request)


def test_statistics_count_rows_and_fragments(client: Client) -> None:
    found = indices.table_stats(client.inside, client.namespace, GetTableStatsRequest(id=["t"]))
    assert (found.num_rows, found.num_indices) == (2, 0)
