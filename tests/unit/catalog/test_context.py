"""A catalog's root and its two switches."""

from __future__ import annotations

import pytest

from lancepart.catalog.context import Catalog, shown
from lancepart.errors import InvalidInputError, NamespaceNotFoundError, UnsupportedOperationError
from tests.support.catalogs import Place


@pytest.mark.parametrize("off", ["false", "False", False])
def test_switches_are_read_from_text_and_from_booleans(local: Place, off: object) -> None:
    catalog = Catalog.of({"root": local.root, "manifest_enabled": off})

    with pytest.raises(UnsupportedOperationError, match="manifest"):
        catalog.require_manifest("create a namespace")


def test_a_switch_that_is_neither_on_nor_off_is_refused(local: Place) -> None:
    with pytest.raises(InvalidInputError, match="manifest_enabled"):
        Catalog.of({"root": local.root, "manifest_enabled": "perhaps"})


def test_a_catalog_without_a_root_and_one_with_both_ways_off_are_refused(local: Place) -> None:
    with pytest.raises(InvalidInputError, match="root"):
        Catalog.of({})
    with pytest.raises(InvalidInputError):
        Catalog.of({"root": local.root, "manifest_enabled": "false", "dir_listing_enabled": "false"})


def test_the_root_is_a_namespace_and_what_no_row_names_is_none(local: Place) -> None:
    catalog = Catalog.of({"root": local.root})

    assert catalog.require_namespace(catalog.snapshot(), []) is None
    with pytest.raises(NamespaceNotFoundError, match="sales"):
        catalog.require_namespace(catalog.snapshot(), ["sales"])


def test_tables_of_the_root_have_names_that_a_listing_finds(local: Place) -> None:
    catalog = Catalog.of({"root": local.root})

    assert catalog.uses_v1_name(["t"])
    assert not catalog.uses_v1_name(["sales", "t"])
    assert "sales" in shown(["sales", "t"])
