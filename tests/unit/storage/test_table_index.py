"""Parts of table-wide indices: what they are is written beside their files."""

from __future__ import annotations

import pyarrow as pa

from lancepart.storage import table_index
from lancepart.storage.root import Root
from tests.support.catalogs import Place


def test_a_look_up_of_keys_tells_the_leaves_that_hold_one(local: Place) -> None:
    root = Root.parse(local.root)
    keys = pa.table({table_index.KEY: [3, 1, 2, 1], table_index.LEAF: pa.array([0, 0, 1, 2], pa.int32())})
    table_index.write_lookup(root, "part", keys, [("a", 7), ("b", 8), ("c", 9)])

    handle = table_index.open_lookup(root, "part")
    found = table_index.read(root, "part")

    assert table_index.leaves_with(handle, "key = 1").tolist() == [0, 2]
    assert table_index.leaves_with(handle, "key = 9").tolist() == []
    assert found is not None
    assert found.leaves == (("a", 7), ("b", 8), ("c", 9))


def test_a_part_that_is_gone_is_none(local: Place) -> None:
    assert table_index.read(Root.parse(local.root), "nothing") is None
