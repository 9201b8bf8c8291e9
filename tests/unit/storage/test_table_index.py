"""Parts of table-wide indices: what they are is written beside their files."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from lancepart.storage import table_index
from lancepart.storage.files import Files
from lancepart.storage.root import Root
from lancepart.storage.translate import DamagedError
from tests.support.catalogs import Place


def test_a_look_up_of_keys_tells_the_leaves_that_hold_one(local: Place) -> None:
    root = Root.parse(local.root)
    keys = pa.table({table_index.KEY: [3, 1, 2, 1], table_index.LEAF: pa.array([0, 0, 1, 2], pa.int32())})
    held = [["0 3"], ["0 1"], ["0 5"]]
    table_index.write_lookup(root, "part", keys, [("a", 7), ("b", 8), ("c", 9)], held)

    handle = table_index.open_lookup(root, "part")
    found = table_index.read(root, "part")

    assert table_index.leaves_with(handle, "key = 1").tolist() == [0, 2]
    assert table_index.leaves_with(handle, "key = 9").tolist() == []
    assert found is not None
    assert found.leaves == (("a", 7), ("b", 8), ("c", 9))
    assert found.held == (frozenset(held[0]), frozenset(held[1]), frozenset(held[2]))


def test_a_part_that_is_gone_is_none(local: Place) -> None:
    assert table_index.read(Root.parse(local.root), "nothing") is None


FACTS = {
    "uuid": "a66f36ab-63d6-4d8a-9d0c-6f2ab2f6c7d1",
    "index_version": 1,
    "details": ["/lance.table.VectorIndexDetails", "AAAA"],
    "files": [["index.idx", 12]],
}


@pytest.mark.parametrize(
    "recorded",
    [
        "{",
        "[]",
        "7",
        "[" * 100_000,
        json.dumps({"facts": {**FACTS, "uuid": "../../elsewhere"}, "fragments": {}}),
        json.dumps({"facts": {**FACTS, "files": [["../index.idx", 12]]}, "fragments": {}}),
        json.dumps({"facts": {**FACTS, "files": [["index.idx"]]}, "fragments": {}}),
        json.dumps({"facts": {**FACTS, "details": ["x", 3]}, "fragments": {}}),
        json.dumps({"facts": {"uuid": FACTS["uuid"]}, "fragments": {}}),
        json.dumps({"facts": FACTS, "fragments": {"leaf file": 1 << 32}}),
        json.dumps({"facts": FACTS, "fragments": {"leaf file": "1"}}),
        json.dumps({"facts": FACTS, "fragments": [1]}),
        json.dumps({"leaves": [["a"]]}),
        json.dumps({"leaves": [["a", "b"]]}),
    ],
)
def test_what_does_not_describe_a_part_is_an_error_that_says_what_to_do(local: Place, recorded: str) -> None:
    root = Root.parse(local.root)
    Files(root).put(f"{table_index.place_of('part')}/{table_index.FACTS}", recorded.encode())

    with pytest.raises(DamagedError, match=r"segment\.json is damaged.*optimize_indices"):
        table_index.read(root, "part")
    assert table_index.usable(root, "part") is None


def test_what_a_newer_release_adds_to_a_part_is_ignored(local: Place) -> None:
    root = Root.parse(local.root)
    recorded = {"facts": FACTS, "fragments": {"leaf file": 3}, "more": [1]}
    Files(root).put(f"{table_index.place_of('part')}/{table_index.FACTS}", json.dumps(recorded).encode())

    found = table_index.read(root, "part")

    assert found is not None
    assert found.fragments == {"leaf file": 3}
