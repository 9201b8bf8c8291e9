"""Unions on disk, replaced in place."""

from __future__ import annotations

import lance
import pytest

from lancepart.storage import published, union
from lancepart.storage.root import Root
from lancepart.storage.translate import LanceNamespaceError
from tests.support.catalogs import Place, rows

MARKS = {"made-of": "a table"}


def filled(root: Root, leaf: lance.LanceDataset, uri: str) -> lance.LanceDataset:
    """A union at a place that names the one fragment of a leaf."""
    made = published.create(root, uri, leaf.schema, {})
    bases = published.bases_of(made)
    numbers = bases.of_leaf(root, "leaf", leaf.base_paths())
    made = published.with_bases(root, made, bases)
    (found,) = leaf.get_fragments()
    part = union.fragment(found.metadata, 1, fields={0: 0, 1: 1}, bases=numbers)
    return published.replaced(root, made, leaf.schema.with_metadata(MARKS), [part], same=True)


def test_a_union_is_published_with_its_marks_and_emptied_again(local: Place) -> None:
    root, uri = Root.parse(local.root), f"{local.root}/union"
    leaf = lance.write_dataset(rows(1, 2, 3), f"{local.root}/leaf")
    assert published.find(root, uri) is None

    filled(root, leaf, uri)

    found = published.find(root, uri)
    assert found.to_table().column("id").to_pylist() == [1, 2, 3]
    assert published.marks_of(found).items() >= MARKS.items()
    assert [path for path, _ in published.bases_of(found).known] == [f"{local.root}/leaf"]
    published.replaced(root, found, leaf.schema.with_metadata(MARKS), [], same=True)
    assert published.find(root, uri).count_rows() == 0
    assert leaf.count_rows() == 3


def test_one_that_was_changed_meanwhile_is_not_replaced(local: Place) -> None:
    root, uri = Root.parse(local.root), f"{local.root}/union"
    leaf = lance.write_dataset(rows(1, 2, 3), f"{local.root}/leaf")
    stale = filled(root, leaf, uri)
    published.replaced(root, published.find(root, uri), leaf.schema.with_metadata(MARKS), [], same=True)

    with pytest.raises(LanceNamespaceError):
        published.replaced(root, stale, leaf.schema.with_metadata({"made-of": "something else"}), [], same=True)
    assert published.marks_of(published.find(root, uri)).items() >= MARKS.items()
