"""Tables that get another name, and V1 tables that move into the manifest."""

from __future__ import annotations

import lance
import pytest
from lance_namespace import RenameTableRequest

from lancepart.catalog import rename
from lancepart.errors import TableAlreadyExistsError
from tests.conformance.catalog.client import Client
from tests.support.catalogs import rows


def test_a_table_moves_to_another_namespace_with_its_rows(client: Client) -> None:
    request = RenameTableRequest(id=["t"], new_table_name="moved", new_namespace_id=["ns"])
    rename.rename(client.inside, request)

    assert (client.tables(), client.tables("ns")) == ([], ["moved"])
    assert client.count_table_rows("ns", "moved").count == 2


def test_a_name_that_is_taken_is_refused(client: Client) -> None:
    client.create("u")
    with pytest.raises(TableAlreadyExistsError):
        rename.rename(client.inside, RenameTableRequest(id=["t"], new_table_name="u"))
    assert client.tables() == ["t", "u"]


def test_migration_enters_listed_tables_once(client: Client) -> None:
    lance.write_dataset(rows(1), f"{client.place.root}/listed.lance")
    assert rename.migrate(client.inside) == 1
    assert rename.migrate(client.inside) == 0
    assert {"listed", "t"} <= set(client.manifest_rows())
