"""Tables that get another name, and V1 tables that move into the manifest."""

from __future__ import annotations

from typing import Any

import lance
import pytest
from lance_namespace import RenameTableRequest

from lancepart.catalog import rename
from lancepart.errors import TableAlreadyExistsError, TableNotFoundError
from lancepart.storage.files import Files
from lancepart.storage.translate import MissingError
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


@pytest.mark.parametrize("gone", [True, False])
def test_files_that_another_rename_took_mean_that_the_table_is_gone(
    client: Client, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    clone = Files.clone_directory

    def lost(self: Files, *given: Any, **options: Any) -> None:
        monkeypatch.setattr(Files, "clone_directory", clone)
        if gone:
            rename.rename(client.inside, RenameTableRequest(id=["t"], new_table_name="first"))
        raise MissingError("a file is gone")

    monkeypatch.setattr(Files, "clone_directory", lost)
    with pytest.raises(TableNotFoundError if gone else MissingError):
        rename.rename(client.inside, RenameTableRequest(id=["t"], new_table_name="second"))

    assert client.tables() == ["first" if gone else "t"]


def test_migration_enters_listed_tables_once(client: Client) -> None:
    lance.write_dataset(rows(1), f"{client.place.root}/listed.lance")
    assert rename.migrate(client.inside) == 1
    assert rename.migrate(client.inside) == 0
    assert {"listed", "t"} <= set(client.manifest_rows())
