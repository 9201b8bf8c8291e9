"""Where a table is, by the manifest or by listing."""

from __future__ import annotations

import lance
import pytest

from lancepart.catalog import tables
from lancepart.errors import NamespaceNotFoundError, TableNotFoundError
from tests.conformance.catalog.client import Client
from tests.support.catalogs import rows


def test_a_table_is_found_by_its_row_or_by_its_directory(client: Client) -> None:
    lance.write_dataset(rows(1), f"{client.place.root}/listed.lance")
    snapshot = client.inside.snapshot()

    assert tables.find(client.inside, snapshot, ["t"]).row is not None
    assert tables.find(client.inside, snapshot, ["listed"]).row is None
    assert tables.find(client.inside, snapshot, ["nothing"]) is None


def test_one_that_is_missing_is_named(client: Client) -> None:
    with pytest.raises(TableNotFoundError, match="nothing"):
        tables.locate(client.inside, ["nothing"])
    with pytest.raises(NamespaceNotFoundError, match="none"):
        tables.require_parent(client.inside, client.inside.snapshot(), ["none", "t"])
    assert tables.require_parent(client.inside, client.inside.snapshot(), ["ns", "t"]) == ("ns",)


def test_a_version_is_opened_by_its_number(client: Client) -> None:
    client.insert_into_table("t", data=rows(3))
    located = tables.locate(client.inside, ["t"])
    assert tables.open_table(client.inside, client.namespace, located, 1).count_rows() == 2
    assert tables.open_table(client.inside, client.namespace, located).count_rows() == 3
    assert not tables.is_declared(client.inside, located)
