"""Published unions and table-wide indices that lost files are named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    schema = pa.schema([("k", pa.string()), ("id", pa.int64()), ("body", pa.string())])
    made = lp.create_table(tmp_path / "t", schema, ["k"])
    made.append([{"k": "ab"[number % 2], "id": number, "body": f"w{number}"} for number in range(20)])
    made.delete("id = 3")
    return made


def errors(found: pa.Table) -> str:
    return " | ".join(found.column("error").to_pylist())


@pytest.mark.parametrize("below", ["union.lance/_deletions", "leaf"])
def test_a_union_whose_files_are_gone_is_named_until_it_is_published_again(
    table: lp.PartitionedTable, below: str
) -> None:
    union = Path(table.publish_lance().uri)
    assert table.inspect.broken_unions().num_rows == 0

    leaf = table.scan("k = 'b'").plan().leaves[0]
    shutil.rmtree(union / "_deletions" if below != "leaf" else Path(table.root) / leaf.location / "data")

    found = table.inspect.broken_unions()
    assert found.column("uri").to_pylist() == [str(union)]
    assert errors(found).startswith("1 files are gone: ")
    if below != "leaf":
        table.unpublish_lance()
        table.publish_lance()
        assert table.inspect.broken_unions().num_rows == 0


def test_a_union_without_a_dataset_and_one_that_can_not_be_opened_are_named(
    table: lp.PartitionedTable, tmp_path: Path
) -> None:
    table.publish_lance(tmp_path / "elsewhere")
    table.publish_lance()
    shutil.rmtree(tmp_path / "elsewhere")
    for manifest in Path(table.root).glob("union.lance/_versions/*.manifest"):
        manifest.write_bytes(b"damaged")

    found = {row["uri"]: row["error"] for row in table.inspect.broken_unions().to_pylist()}

    assert found[str(tmp_path / "elsewhere")] == "there is no dataset"
    assert "could not open the dataset" in found[f"{table.root}/union.lance"]


@pytest.mark.parametrize(
    ("lost", "index"),
    [
        ("_indices/*/part_0_docs.lance", "body_idx"),
        ("data/*.lance", "id_idx"),
        ("_refs/segment.json", "both"),
    ],
)
def test_segments_of_table_wide_indices_that_lost_files_are_named(
    table: lp.PartitionedTable, lost: str, index: str
) -> None:
    table.maintenance.create_index("body", "FTS", scope="table")
    table.maintenance.create_index("id", "BTREE", scope="table")
    assert table.inspect.broken_indices().num_rows == 0

    for path in Path(table.root).glob(f"table_indices/*/{lost}"):
        path.unlink()

    found = table.inspect.broken_indices()
    assert set(found.column("name").to_pylist()) == ({"body_idx", "id_idx"} if index == "both" else {index})
    assert "files are gone: table_indices/" in errors(found)


def test_a_damaged_description_of_a_segment_is_named(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("id", "BTREE", scope="table")
    for path in Path(table.root).glob("table_indices/*/_refs/segment.json"):
        path.write_text("{")

    assert "segment.json is damaged" in errors(table.inspect.broken_indices())
