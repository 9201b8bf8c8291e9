"""A plain Lance table as a table of one leaf."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lancepart.errors import TableNotFoundError, UnsupportedOperationError
from lancepart.layout.plain import PlainManifest
from lancepart.storage.root import Root
from lancepart.table import PartitionedTable


def test_it_is_planned_and_read_at_the_version_that_was_opened(tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"id": range(10), "s": [str(n) for n in range(10)]}), place)
    table = PartitionedTable(PlainManifest.at(Root.parse(str(tmp_path)), "t.lance"))
    lance.write_dataset(pa.table({"id": [99], "s": ["99"]}), place, mode="append")
    assert (table.version, table.scan().count(), table.scan("id > 7").to_arrow()["s"].to_pylist()) == (
        1,
        10,
        ["8", "9"],
    )
    assert "1 of 1 leaves" in table.scan("id > 7").explain()
    assert table.schema.names == ["id", "s"]
    with pytest.raises(UnsupportedOperationError, match="plain Lance table"):
        table.maintenance.compact()
    with pytest.raises(TableNotFoundError, match="no version 9"):
        PlainManifest.at(Root.parse(str(tmp_path)), "t.lance", 9)


def test_another_table_of_the_same_place_and_version_is_another_leaf(tmp_path: Path) -> None:
    root, place = Root.parse(str(tmp_path)), tmp_path / "t.lance"
    found = []
    for number in (1, 2):
        lance.write_dataset(pa.table({"id": [number]}), place)
        table = PartitionedTable(PlainManifest.at(root, "t.lance"))
        found.append((table.scan().to_arrow()["id"].to_pylist(), table.scan().plan().leaves[0].identity))
        shutil.rmtree(place)
    assert [rows for rows, _ in found] == [[1], [2]]
    assert found[0][1] != found[1][1]
