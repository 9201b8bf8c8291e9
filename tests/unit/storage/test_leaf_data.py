"""Versions of a leaf: fragments that nobody sees, detached commits, deletions by address."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lancepart.storage import leaf_data
from lancepart.storage.root import Root
from lancepart.storage.translate import LanceNamespaceError
from tests.support.catalogs import Place, rows


@pytest.fixture
def root(local: Place) -> Root:
    return Root.parse(local.root)


@pytest.fixture
def first(root: Root) -> int:
    """Version 1 of a leaf with three rows."""
    staged = leaf_data.stage(root, "leaf", rows(1, 2, 3), base=None)
    return leaf_data.create_leaf(root, "leaf", rows().schema, staged.items)


def ids(root: Root, version: int | None) -> list[int]:
    return leaf_data.open_leaf(root, "leaf", version).to_table().column("id").to_pylist()


def test_a_detached_version_is_read_by_its_number_only(root: Root, first: int) -> None:
    staged = leaf_data.stage(root, "leaf", rows(4), base=first)
    assert (staged.rows, staged.bytes > 0) == (1, True)

    detached = leaf_data.append(root, "leaf", staged.items, base=first)

    assert ids(root, detached) == [1, 2, 3, 4]
    assert ids(root, None) == ids(root, first) == [1, 2, 3]
    assert leaf_data.measure(leaf_data.open_leaf(root, "leaf", detached))[::2] == (4, 2)


def test_rows_are_deleted_by_their_addresses(root: Root, first: int) -> None:
    found = leaf_data.addresses(leaf_data.open_leaf(root, "leaf", first), "id = 2")
    detached, gone = leaf_data.delete_rows(root, "leaf", leaf_data.split_addresses(found), base=first)

    assert (ids(root, detached), gone) == ([1, 3], 0)
    assert ids(root, leaf_data.clear(root, "leaf", base=first)) == []
    difference = leaf_data.difference(root, "leaf", first, detached)
    assert {number: list(offsets) for number, offsets in difference.deleted.items()} == {0: [1]}


def test_addresses_are_split_by_fragment() -> None:
    split = leaf_data.split_addresses(np.array([(2 << 32) + 5, 7, (2 << 32) + 1], dtype=np.uint64))

    assert {number: sorted(offsets) for number, offsets in split.items()} == {0: [7], 2: [1, 5]}


def test_columns_are_added_by_metadata_only(root: Root, first: int) -> None:
    wider = leaf_data.add_columns(root, "leaf", [pa.field("extra", pa.string())], base=first)

    found = leaf_data.open_leaf(root, "leaf", wider).to_table()
    assert found.column("extra").null_count == 3
    assert leaf_data.open_leaf(root, "leaf", first).schema.names == ["id", "name"]


def test_a_version_that_is_gone_is_an_error_that_says_what_to_do(root: Root, first: int) -> None:
    with pytest.raises(LanceNamespaceError, match=r"inspect\.broken"):
        leaf_data.open_leaf(root, "leaf", first + 41)
