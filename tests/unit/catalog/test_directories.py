"""Table directories: what a listing sees of them, and how they are marked."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from lancepart.catalog import directories
from lancepart.catalog.context import Catalog
from lancepart.format.names import NAMESPACE, TABLE
from lancepart.format.rows import Row
from lancepart.storage.manifest_rows import Change
from tests.support.catalogs import Place


@pytest.fixture
def catalog(local: Place) -> Catalog:
    """A catalog with one table that only the listing knows."""
    lance.write_dataset(pa.table({"id": [1]}), f"{local.root}/t.lance")
    return Catalog.of({"root": local.root})


def test_a_table_is_listed_until_it_is_hidden(catalog: Catalog) -> None:
    assert directories.list_names(catalog) == ["t"]
    assert directories.exists(catalog, "t.lance")

    directories.hide(catalog, "t.lance", dropped=False)

    assert directories.list_names(catalog) == []
    assert directories.have_data(catalog, ["t.lance", "nothing.lance"]) == [True, False]
    assert directories.unhide(catalog, "t.lance")
    assert directories.list_names(catalog) == ["t"]


def test_of_two_who_declare_one_directory_one_wins(catalog: Catalog) -> None:
    assert directories.reserve(catalog, "new.lance")
    assert not directories.reserve(catalog, "new.lance")

    directories.unreserve(catalog, "new.lance")

    assert directories.state(catalog, "new.lance") is directories.state(catalog, "never.lance")


def test_a_directory_goes_whole(catalog: Catalog) -> None:
    directories.delete(catalog, "t.lance")

    assert catalog.files.is_empty("t.lance")
    assert directories.list_names(catalog) == []


@pytest.mark.parametrize(
    ("location", "named"),
    [("a/t", True), ("a", True), ("a/t/data", True), ("a/tt", False), ("p", True), ("p/leaf", True), ("b", False)],
)
def test_a_directory_is_named_by_rows_that_it_holds_or_is_inside_of(
    catalog: Catalog, location: str, named: bool
) -> None:
    rows = (
        Row(object_id="t", object_type=TABLE, location="a/t"),
        Row(object_id="n", object_type=NAMESPACE, metadata={"lancepart.root": "p"}),
    )
    catalog.manifest.transact(lambda snapshot, retry: (Change(inserts=rows), None))

    assert directories.is_named(catalog.snapshot(), location) is named
