"""Versions of a leaf: fragments that nobody sees, detached commits, deletions by address."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lancepart.storage import leaf_data, leaf_handle, leaf_record
from lancepart.storage.root import Root
from lancepart.storage.translate import ConflictError
from tests.support.catalogs import rows


def ids(root: Root, version: int | None) -> list[int]:
    return leaf_handle.open_leaf(root, "leaf", version).scanner().to_table().column("id").to_pylist()


def test_a_detached_version_is_read_by_its_number_only(root: Root, first: int) -> None:
    staged = leaf_data.stage(root, "leaf", rows(4), base=first)
    assert (staged.rows, staged.bytes > 0) == (1, True)

    detached = leaf_data.append(root, "leaf", staged.items, base=first)

    assert ids(root, detached) == [1, 2, 3, 4]
    assert ids(root, None) == ids(root, first) == [1, 2, 3]
    assert leaf_handle.measure(leaf_handle.open_leaf(root, "leaf", detached))[::2] == (4, 2)


def test_rows_are_deleted_by_their_addresses(root: Root, first: int) -> None:
    found = leaf_handle.addresses(leaf_handle.open_leaf(root, "leaf", first), "id = 2")
    detached, gone = leaf_data.delete_rows(root, "leaf", leaf_handle.split_addresses(found), base=first)

    assert (ids(root, detached), gone) == ([1, 3], ())
    assert ids(root, leaf_data.clear(root, "leaf", base=first)) == []
    difference = leaf_data.difference(root, "leaf", first, detached)
    assert {number: list(offsets) for number, offsets in difference.deleted.items()} == {0: [1]}


def test_a_fragment_goes_with_its_last_row_and_with_no_other(root: Root, first: int) -> None:
    everything = {0: np.array([0, 1, 2])}
    empty, gone = leaf_data.delete_rows(root, "leaf", everything, base=first)
    assert (ids(root, empty), gone) == ([], (leaf_handle.measure(leaf_handle.open_leaf(root, "leaf", first))[1],))

    leaf_data.delete_rows(root, "leaf", {0: np.array([1])}, base=None)
    for found in (everything, {0: np.array([0, 1])}):
        with pytest.raises(ConflictError, match="deleted by another writer"):
            leaf_data.delete_rows(root, "leaf", found, base=None)
    assert ids(root, None) == [1, 3]
    assert ids(root, leaf_data.delete_rows(root, "leaf", {0: np.array([0, 2])}, base=None)[0]) == []


def test_columns_are_added_by_metadata_only(root: Root, first: int) -> None:
    wider = leaf_data.add_columns(root, "leaf", [pa.field("extra", pa.string())], base=first)

    found = leaf_handle.open_leaf(root, "leaf", wider).scanner().to_table()
    assert found.column("extra").null_count == 3
    assert leaf_handle.open_leaf(root, "leaf", first).schema.names == ["id", "name"]


def test_rows_and_the_first_version_of_a_leaf_are_written_at_once(root: Root) -> None:
    made = leaf_data.create_with_rows(root, "leaf", rows(1, 2, 3))
    staged = leaf_data.stage(root, "other", rows(1, 2, 3), base=None)
    two = leaf_data.create_leaf(root, "other", rows().schema, staged.items)

    assert made is not None
    version, fragments = made
    one, other = (leaf_handle.open_leaf(root, *each) for each in (("leaf", version), ("other", two)))
    assert ids(root, version) == [1, 2, 3]
    assert (version, one.schema, leaf_handle.shape_of(one)) == (two, other.schema, leaf_handle.shape_of(other))
    assert leaf_handle.measure(one) == leaf_handle.measure(other) == (3, fragments.bytes, 1)
    assert [item.to_json() for item in fragments.items] == [item.metadata.to_json() for item in one.get_fragments()]
    assert leaf_record.noted_size(root, "leaf", version) == leaf_handle.measure(one)


def test_a_leaf_that_is_there_is_not_created_again(root: Root, first: int) -> None:
    assert leaf_data.create_with_rows(root, "leaf", rows(7)) is None
    assert ids(root, None) == ids(root, first) == [1, 2, 3]
