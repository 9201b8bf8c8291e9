"""Rows of one table through the catalog."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lance_namespace import CountTableRowsRequest, DeleteFromTableRequest, InsertIntoTableRequest, RestoreTableRequest

from lancepart.catalog import data
from lancepart.errors import InvalidInputError
from tests.conformance.catalog.client import Client
from tests.support.catalogs import ipc, rows


def count(client: Client, **fields: object) -> int:
    return data.count(client.inside, client.namespace, CountTableRowsRequest(id=["t"], **fields)).count


def test_rows_are_inserted_deleted_and_brought_back(client: Client) -> None:
    data.insert(client.inside, client.namespace, InsertIntoTableRequest(id=["t"]), ipc(rows(3)))
    assert (count(client), count(client, predicate="id > 2"), count(client, version=1)) == (3, 1, 2)

    data.delete(client.inside, client.namespace, DeleteFromTableRequest(id=["t"], predicate="id = 1"))
    assert count(client) == 2

    data.restore(client.inside, client.namespace, RestoreTableRequest(id=["t"], version=1))
    assert count(client) == 2
    assert count(client, predicate="id = 1") == 1


def test_a_delete_needs_a_predicate(client: Client) -> None:
    with pytest.raises(InvalidInputError, match="predicate"):
        data.delete(client.inside, client.namespace, DeleteFromTableRequest(id=["t"], predicate=" "))
    assert count(client) == 2


def test_a_field_is_found_inside_a_struct() -> None:
    schema = pa.schema([("s", pa.struct([("a", pa.int32())])), ("x.y", pa.int8())])
    assert data.field_at(schema, "s.a").type == pa.int32()
    assert data.field_at(schema, "x.y").type == pa.int8()
    assert data.field_at(schema, "s.b") is None
