"""Columns, indices, versions and tags of plain Lance tables."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lancepart.storage import plain_upkeep
from lancepart.storage.root import Root

PLACE = "t.lance"


@pytest.fixture
def root(tmp_path: Path) -> Root:
    rows = pa.table({"id": pa.array(range(10), pa.int32()), "t": [str(n) for n in range(10)]})
    lance.write_dataset(rows, tmp_path / PLACE, max_rows_per_file=2, max_rows_per_group=2)
    return Root.parse(str(tmp_path))


def opened(root: Root) -> lance.LanceDataset:
    return lance.dataset(root.uri_of(PLACE))


def test_columns_change_and_keep_what_is_said_of_them(root: Root) -> None:
    plain_upkeep.add_columns(root, PLACE, [pa.field("a", pa.int32()), pa.field("b", pa.string())])
    plain_upkeep.annotate(root, PLACE, "id", {"comment": "the key"})
    plain_upkeep.alter_column(root, PLACE, "id", kind=pa.int64())
    plain_upkeep.alter_column(root, PLACE, "id", to="number")
    plain_upkeep.drop_columns(root, PLACE, ["b"])
    schema = opened(root).schema
    assert (schema.names, schema.field("number").type) == (["number", "t", "a"], pa.int64())
    assert schema.field("number").metadata[b"comment"] == b"the key"
    assert opened(root).to_table()["number"].to_pylist() == list(range(10))
    plain_upkeep.annotate(root, PLACE, "number", {"comment": ""})
    assert b"comment" not in (opened(root).schema.field("number").metadata or {})


def test_fragments_are_put_together_and_indices_follow(root: Root) -> None:
    version = plain_upkeep.create_index(root, PLACE, "id", "BTREE", "by_id")
    assert version == opened(root).version
    removed, _ = plain_upkeep.compact(root, PLACE, 100)
    assert (removed, len(opened(root).get_fragments())) == (5, 1)
    assert plain_upkeep.compact(root, PLACE, 100)[0] == 0
    assert plain_upkeep.optimize_indices(root, PLACE)[0] == 1
    assert plain_upkeep.drop_index(root, PLACE, "other") is None
    assert plain_upkeep.drop_index(root, PLACE, "by_id") == opened(root).version
    assert plain_upkeep.optimize_indices(root, PLACE)[0] == 0


def test_versions_are_named_brought_back_and_forgotten(root: Root) -> None:
    assert plain_upkeep.create_tag(root, PLACE, "first", None) == 1
    opened(root).delete("id < 5")
    assert plain_upkeep.create_tag(root, PLACE, "second", 2) == 2
    assert plain_upkeep.restore(root, PLACE, "first") == 3
    assert opened(root).count_rows() == 10
    opened(root).delete("id < 2")
    assert plain_upkeep.drop_tag(root, PLACE, "second") == 2
    assert plain_upkeep.drop_tag(root, PLACE, "second") is None
    assert plain_upkeep.cleanup(root, PLACE, timedelta(0)).old_versions == 2
    assert [each["version"] for each in opened(root).versions()] == [1, 4]
