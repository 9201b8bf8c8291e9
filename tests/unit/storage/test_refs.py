"""Branches, tags and the latest version of one Lance table."""

from __future__ import annotations

import lance

from lancepart.storage import refs
from lancepart.storage.root import Root
from tests.support.catalogs import Place, rows


def test_a_tag_stands_for_a_version_of_main_or_of_a_branch(local: Place) -> None:
    root, uri = Root.parse(local.root), f"{local.root}/leaf"
    handle = lance.write_dataset(rows(1), uri)
    lance.write_dataset(rows(2), uri, mode="append")
    handle.tags.create("first", 1)

    assert refs.latest(root, "leaf") == 2
    assert refs.tagged(root, "leaf", "first") == (None, 1)
    assert refs.tagged(root, "leaf", "nothing") is None


def test_a_branch_is_a_table_of_its_own(local: Place) -> None:
    root, uri = Root.parse(local.root), f"{local.root}/leaf"
    lance.write_dataset(rows(1), uri).create_branch("dev", 1)
    where = refs.branch_location("leaf", "dev")
    lance.write_dataset(rows(2), f"{local.root}/{where}", mode="append")

    assert refs.branch_location("leaf", None) == "leaf"
    assert refs.latest(root, where) > refs.latest(root, "leaf") == 1


def test_a_table_is_declared_by_a_marker(local: Place) -> None:
    root = Root.parse(local.root)
    assert not refs.is_declared(root, "leaf")
    client = local.catalog()
    client._catalog.files.put_new(f"leaf/{refs.RESERVED}", b"")
    assert refs.is_declared(root, "leaf")
