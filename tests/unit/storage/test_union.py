"""A dataset that names the files of another one."""

from __future__ import annotations

import lance
import numpy as np
import pytest

from lancepart.storage import union
from lancepart.storage.root import Root
from tests.support.catalogs import Place, rows


def test_a_union_reads_the_files_of_a_leaf_and_hides_rows(local: Place) -> None:
    root = Root.parse(local.root)
    leaf = lance.write_dataset(rows(1, 2, 3), f"{local.root}/leaf")
    bases = union.Bases()
    numbers = bases.of_leaf(root, "leaf", leaf.base_paths())
    empty = union.create(root, union.MEMORY, leaf.schema, bases.registered(numbers.values()))
    (found,) = leaf.get_fragments()
    named = union.fragment(found.metadata, 0, fields={0: 0, 1: 1}, bases=numbers)

    whole = empty.filled([named], {0: union.hidden_offsets(3, np.array([0, 2]))})

    assert whole.to_table().column("id").to_pylist() == [1, 3]
    assert leaf.count_rows() == 3


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        (("a", 5, ()), {5: 0}),
        (("s", 5, (("x", 6, ()),)), None),
    ],
)
def test_columns_that_are_built_otherwise_have_no_mapping(leaf: tuple, expected: dict | None) -> None:
    assert union.field_mapping(leaf, ("a", 0, ())) == expected


def test_a_directory_has_one_number() -> None:
    bases = union.Bases()
    assert [bases.number(path, is_dataset=True) for path in ("/a", "/b", "/a")] == [1, 2, 1]
    assert bases.number("/a", is_dataset=False) == 3
