from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import lancepart as lp
from lancepart.format.records import Stats
from lancepart.layout.leaves import Leaf
from lancepart.read.pieces import Piece, cut, leaf_bytes, packed


def leaf(name: str, size: int) -> Leaf:
    stats = Stats(rows=1, bytes=size, fragments=4)
    return Leaf(object_id=name, spec_id=1, location=name, key=(), values=(), read_version=1, stats=stats)


def test_fragments_of_one_leaf_that_meet_in_a_task_are_one_piece() -> None:
    large, small = leaf("large", 40), leaf("small", 5)
    pieces = [Piece(leaf=large, bytes=10, fragments=(number,)) for number in (7, 3, 5, 1)]

    found = packed([*pieces, Piece(leaf=small, bytes=5)], 2)

    assert [[(piece.leaf.object_id, piece.fragments, piece.bytes) for piece in task] for task in found] == [
        [("large", (5, 7), 20), ("small", None, 5)],
        [("large", (1, 3), 20)],
    ]


def test_only_leaves_above_the_share_are_cut(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("n", pa.int64()), ("k", pa.string())]), ["k"])
    for start in range(3):
        table.append([{"n": start, "k": "many"}])
    table.append([{"n": 9, "k": "one"}])
    leaves = sorted(table.scan().plan().leaves, key=leaf_bytes)

    whole = cut(table.scan().root, leaves, leaf_bytes(leaves[1]))
    pieces = cut(table.scan().root, leaves, 1)

    assert [piece.fragments for piece in whole] == [None, None]
    assert [(piece.leaf.values, piece.fragments) for piece in pieces] == [
        (("one",), None),
        (("many",), (0,)),
        (("many",), (1,)),
        (("many",), (2,)),
    ]
    assert sum(piece.bytes for piece in pieces[1:]) == leaf_bytes(leaves[1])
