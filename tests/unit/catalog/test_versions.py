"""Versions of one table: listed, described, deleted."""

from __future__ import annotations

import pytest
from lance_namespace import BatchDeleteTableVersionsRequest, DescribeTableVersionRequest, ListTableVersionsRequest
from lance_namespace_urllib3_client.models import VersionRange

from lancepart.catalog import versions
from lancepart.catalog.versions import Timeline
from lancepart.errors import TableVersionNotFoundError, UnsupportedOperationError
from tests.conformance.catalog.client import Client
from tests.support.catalogs import rows


def test_versions_are_listed_described_and_deleted(client: Client) -> None:
    for number in (3, 4):
        client.insert_into_table("t", data=rows(number))
    assert Timeline.of(client.inside, ["t"]).numbers == [1, 2, 3]
    listed = versions.list_versions(client.inside, ListTableVersionsRequest(id=["t"], descending=True, limit=2))
    assert [each.version for each in listed.versions] == [3, 2]

    chosen = [VersionRange(start_version=1, end_version=2)]
    versions.batch_delete(client.inside, BatchDeleteTableVersionsRequest(id=["t"], ranges=chosen))
    assert Timeline.of(client.inside, ["t"]).numbers == [2, 3]
    with pytest.raises(TableVersionNotFoundError):
        versions.describe(client.inside, client.namespace, DescribeTableVersionRequest(id=["t"], version=1))


def test_branches_are_not_served(client: Client) -> None:
    with pytest.raises(UnsupportedOperationError, match="dev"):
        versions.list_versions(client.inside, ListTableVersionsRequest(id=["t"], branch="dev"))
