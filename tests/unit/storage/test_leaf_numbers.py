"""Other numbers for the fragments of a leaf: the same rows, in no version but a new one."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa

from lancepart.format.numbers import FIRST
from lancepart.storage import leaf_numbers
from lancepart.storage.leaf_handle import open_leaf
from lancepart.storage.root import Root


def leaf(path: Path) -> int:
    for start in range(0, 40, 10):
        lance.write_dataset(pa.table({"a": range(start, start + 10)}), path / "leaf", mode="append")
    dataset = lance.dataset(path / "leaf")
    dataset.delete("a IN (3, 15, 16)")
    return int(dataset.version)


def test_renumbered_fragments_have_the_same_rows(tmp_path: Path) -> None:
    root, base = Root(str(tmp_path)), leaf(tmp_path)
    wanted = {number: FIRST + number for number in range(4)}

    newer = leaf_numbers.renumbered(root, "leaf", wanted, base=base)

    found = open_leaf(root, "leaf", newer)
    assert [item.fragment_id for item in found.get_fragments()] == list(wanted.values())
    assert found.to_table() == open_leaf(root, "leaf", base).to_table()
    assert found.to_table(filter="a IN (3, 4, 16)")["a"].to_pylist() == [4]
    assert int(lance.dataset(tmp_path / "leaf").version) == base
    assert leaf_numbers.next_number(root, "leaf", base=newer) == FIRST + 4


def test_the_next_number_is_above_all_that_there_ever_were(tmp_path: Path) -> None:
    root = Root(str(tmp_path))
    leaf(tmp_path)
    dataset = lance.dataset(tmp_path / "leaf")
    dataset.delete("a >= 20")

    assert max(item.fragment_id for item in dataset.get_fragments()) == 1
    assert leaf_numbers.next_number(root, "leaf", base=int(dataset.version)) == 4
    dataset.delete("a >= 0")
    assert leaf_numbers.next_number(root, "leaf", base=int(dataset.version)) is None
