"""Tables that exist and get, or lose, a name."""

from __future__ import annotations

import lance
import pytest
from lance_namespace import DeregisterTableRequest, RegisterTableRequest

from lancepart.catalog import registering
from lancepart.errors import InvalidInputError, TableAlreadyExistsError
from tests.conformance.catalog.client import Client
from tests.support.catalogs import rows


def test_a_directory_gets_a_name_and_loses_it_with_its_rows_kept(client: Client) -> None:
    lance.write_dataset(rows(1, 2, 3), f"{client.place.root}/made.by.hand")
    registering.register(client.inside, RegisterTableRequest(id=["ns", "x"], location="made.by.hand"))
    assert client.count_table_rows("ns", "x").count == 3

    registering.deregister(client.inside, DeregisterTableRequest(id=["ns", "x"]))
    assert client.tables("ns") == []
    assert lance.dataset(f"{client.place.root}/made.by.hand").count_rows() == 3


@pytest.mark.parametrize("location", ["../outside", "/etc", "s3://elsewhere/t"])
def test_a_location_outside_the_root_is_refused(client: Client, location: str) -> None:
    with pytest.raises(InvalidInputError):
        registering.register(client.inside, RegisterTableRequest(id=["x"], location=location))


def test_a_name_that_is_taken_stays(client: Client) -> None:
    lance.write_dataset(rows(1), f"{client.place.root}/other")
    with pytest.raises(TableAlreadyExistsError):
        registering.register(client.inside, RegisterTableRequest(id=["t"], location="other"))
