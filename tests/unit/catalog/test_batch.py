"""Several operations on several tables, published as one change."""

from __future__ import annotations

import pytest
from lance_namespace import BatchCommitTablesRequest, DeclareTableRequest, DeregisterTableRequest
from lance_namespace_urllib3_client.models import CommitTableOperation

from lancepart.catalog import batch
from lancepart.errors import TableNotFoundError
from tests.conformance.catalog.client import Client


def declared(*path: str) -> CommitTableOperation:
    return CommitTableOperation(declare_table=DeclareTableRequest(id=list(path)))


def deregistered(*path: str) -> CommitTableOperation:
    return CommitTableOperation(deregister_table=DeregisterTableRequest(id=list(path)))


def test_all_operations_are_one_commit(client: Client) -> None:
    before = client.inside.snapshot().version
    request = BatchCommitTablesRequest(operations=[declared("ns", "new"), deregistered("t")])

    batch.commit_tables(client.inside, request)

    assert client.inside.snapshot().version == before + 1
    assert (client.tables(), client.tables("ns")) == ([], ["new"])


def test_one_that_fails_leaves_the_others_undone(client: Client) -> None:
    request = BatchCommitTablesRequest(operations=[declared("ns", "new"), deregistered("missing")])

    with pytest.raises(TableNotFoundError, match="missing"):
        batch.commit_tables(client.inside, request)

    assert client.tables("ns") == []
