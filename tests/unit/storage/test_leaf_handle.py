"""Leaves that are open: their columns, rows and addresses."""

from __future__ import annotations

import numpy as np
import pytest

from lancepart.errors import LanceNamespaceError
from lancepart.storage import leaf_handle
from lancepart.storage.root import Root


def test_an_open_leaf_shows_its_columns_and_fragments(root: Root, first: int) -> None:
    handle = leaf_handle.open_leaf(root, "leaf", first)

    assert leaf_handle.shape_of(handle).schema.names == ["id", "name"]
    assert leaf_handle.measure(handle)[::2] == (3, 1)
    assert leaf_handle.missing_files(root, "leaf", handle) == []


def test_rows_are_read_by_their_offsets(root: Root, first: int) -> None:
    handle = leaf_handle.open_leaf(root, "leaf", first)

    assert leaf_handle.live_offsets(handle, 0).tolist() == [0, 1, 2]
    (batch,) = leaf_handle.rows_at(handle, {0: np.array([0, 2])})
    assert batch.column("id").to_pylist() == [1, 3]


def test_addresses_are_split_by_fragment() -> None:
    split = leaf_handle.split_addresses(np.array([(2 << 32) + 5, 7, (2 << 32) + 1], dtype=np.uint64))

    assert {number: sorted(offsets) for number, offsets in split.items()} == {0: [7], 2: [1, 5]}


def test_a_version_that_is_gone_is_an_error_that_says_what_to_do(root: Root, first: int) -> None:
    with pytest.raises(LanceNamespaceError, match=r"inspect\.broken"):
        leaf_handle.open_leaf(root, "leaf", first + 41)


def test_the_path_of_a_data_file_is_the_one_that_lance_gives(root: Root, first: int) -> None:
    handle = leaf_handle.open_leaf(root, "leaf", first)
    files = [file for item in handle.get_fragments() for file in item.metadata.files]

    assert [leaf_handle.data_path(file) for file in files] == [str(file.path) for file in files]
    assert {type(leaf_handle.data_path(file)) for file in files} == {str}
    assert leaf_handle.fragment_count(handle) == len(handle.get_fragments())
