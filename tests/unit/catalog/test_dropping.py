"""Tables that are dropped."""

from __future__ import annotations

from lance_namespace import DropTableRequest

from lancepart.catalog import dropping
from tests.conformance.catalog.client import Client


def test_a_dropped_table_is_gone_with_its_files(client: Client) -> None:
    dropping.drop(client.inside, DropTableRequest(id=["t"]))
    assert client.tables() == []
    assert not [path for path in client.storage.files() if path.startswith("t.lance/data")]
