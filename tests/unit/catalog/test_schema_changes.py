"""Columns of one table through the catalog."""

from __future__ import annotations

import pytest
from lance_namespace import AlterTableAddColumnsRequest, AlterTableAlterColumnsRequest, AlterTableDropColumnsRequest
from lance_namespace_urllib3_client.models import AddColumnsEntry, AlterColumnsEntry

from lancepart.catalog import schema_changes
from lancepart.errors import TableColumnNotFoundError
from tests.conformance.catalog.client import Client


def test_columns_are_added_renamed_and_dropped(client: Client) -> None:
    both = client.inside, client.namespace
    added = AddColumnsEntry(name="double", expression="id * 2")
    schema_changes.add(*both, AlterTableAddColumnsRequest(id=["t"], new_columns=[added]))
    assert client.dataset("t").to_table().column("double").to_pylist() == [2, 4]

    altered = AlterColumnsEntry(path="double", rename="twice")
    schema_changes.alter(*both, AlterTableAlterColumnsRequest(id=["t"], alterations=[altered]))
    schema_changes.drop(*both, AlterTableDropColumnsRequest(id=["t"], columns=["name"]))
    assert client.dataset("t").schema.names == ["id", "twice"]


def test_a_column_that_is_missing_is_named_and_nothing_changes(client: Client) -> None:
    request = AlterTableDropColumnsRequest(id=["t"], columns=["nam"])
    with pytest.raises(TableColumnNotFoundError, match="nam"):
        schema_changes.drop(client.inside, client.namespace, request)
    assert client.dataset("t").version == 1
