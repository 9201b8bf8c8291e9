"""Document 002, schema: leaves of other writers are read by what their columns are, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidTableStateError
from tests.conformance.partitioned.handmade import Leaf, column, make, partition_field

ROWS = [{"id": 1, "k": "a", "v": "x"}, {"id": 2, "k": "a", "v": "y"}]
TYPES = {"id": pa.int64(), "k": pa.string(), "v": pa.string()}


def made(
    root: Path, ids: tuple[int, int, int] = (0, 1, 2), order: str = "id k v", rows: pa.Table | None = None
) -> lp.PartitionedTable:
    """A table by hand, partitioned by k, with some field ids and some order of columns in its leaf."""
    columns = [column(name, kind, number) for (name, kind), number in zip(TYPES.items(), ids, strict=True)]
    fields = [partition_field("k", [ids[1]], {"type": "identity"}, pa.string())]
    given = pa.Table.from_pylist(ROWS, schema=pa.schema(TYPES)) if rows is None else rows
    ordered = given.select([name for name in order.split() if name in given.column_names])
    make(str(root), columns, fields, [Leaf(values={"k": "a"}, rows=ordered, name="leaf")], results=[pa.string()])
    return lp.open_table(root)


def content(table: lp.PartitionedTable, *columns: str) -> list[dict[str, Any]]:
    return sorted(table.scan(columns=columns or None).to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("ids", [(0, 1, 2), (10, 20, 30), (2, 0, 1), (7, 1, 4)])
@pytest.mark.parametrize("order", ["id k v", "v k id", "k v id"])
def test_field_ids_need_only_be_unique(tmp_path: Path, ids: tuple[int, int, int], order: str) -> None:
    table = made(tmp_path, ids, order)

    assert content(table) == ROWS
    assert table.scan("v = 'y'").count() == 1
    table.append([{"id": 3, "k": "a", "v": "z"}])
    assert content(table) == [*ROWS, {"id": 3, "k": "a", "v": "z"}]


def test_a_new_column_never_shows_a_dropped_ones_values(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.drop_column("v")
    lp.open_table(tmp_path).add_column(pa.field("w", pa.string()))
    table = lp.open_table(tmp_path)
    table.add_column(pa.field("v", pa.string()))

    nothing = {"w": None, "v": None}
    assert content(table) == [{"id": row["id"], "k": "a"} | nothing for row in ROWS]
    table.append([{"id": 3, "k": "a", "w": "1", "v": "2"}])
    assert content(table)[-1] == {"id": 3, "k": "a", "w": "1", "v": "2"}


def test_a_column_that_another_client_dropped_gives_its_id_to_none(tmp_path: Path) -> None:
    made(tmp_path)
    columns = [column("id", pa.int64(), 0), column("k", pa.string(), 1)]
    lance.dataset(str(tmp_path / "__manifest")).update_metadata({"schema": json.dumps({"fields": columns})})

    table = lp.open_table(tmp_path)
    table.add_column(pa.field("w", pa.string()))

    assert content(table) == [{"id": row["id"], "k": "a", "w": None} for row in ROWS]


def test_a_leaf_written_after_a_column_was_dropped_is_read_by_names(tmp_path: Path) -> None:
    table = lp.create_table(
        tmp_path, pa.schema([("id", pa.int64()), ("gone", pa.string()), *list(TYPES.items())[1:]]), ["k"]
    )
    table.append([{"id": 1, "gone": "?", "k": "a", "v": "x"}])
    table.drop_column("gone")
    (leaf,) = table.scan().plan().leaves
    given = pa.Table.from_pylist(ROWS, schema=pa.schema(TYPES))
    lance.write_dataset(given, f"{tmp_path}/{leaf.location}", mode="overwrite")
    version = lance.dataset(f"{tmp_path}/{leaf.location}").version
    lance.dataset(str(tmp_path / "__manifest")).update(
        {"read_version": str(version)}, where=f"object_id = '{leaf.object_id}'"
    )

    assert content(lp.open_table(tmp_path)) == ROWS


def test_a_renamed_column_is_known_by_its_id(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.rename_column("v", "w")
    table.add_column(pa.field("v", pa.string()))

    assert content(table) == [{"id": row["id"], "k": "a", "w": row["v"], "v": None} for row in ROWS]


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"id": [1], "k": ["a"], "v": [1]}),
        pa.table({"id": [1.5], "k": ["a"], "v": ["x"]}),
    ],
    ids=["number for text", "fraction for integer"],
)
def test_a_leaf_in_other_types_is_refused(tmp_path: Path, rows: pa.Table) -> None:
    table = made(tmp_path, rows=rows)

    with pytest.raises(InvalidTableStateError, match=r"leaf 'v1\$leaf.*the table has"):
        table.scan().to_arrow()
    with pytest.raises(InvalidTableStateError, match="leaf"):
        table.append([{"id": 3, "k": "a", "v": "z"}])


def test_a_leaf_with_another_column_instead_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path, (10, 20, 30), "id k zzz", pa.table({"id": [1], "k": ["a"], "zzz": ["x"]}))

    with pytest.raises(InvalidTableStateError, match="'zzz'"):
        table.scan().to_arrow()


def test_a_leaf_in_another_encoding_is_consistent(tmp_path: Path) -> None:
    given = pa.Table.from_pylist(
        ROWS, schema=pa.schema([("id", pa.int32()), ("k", pa.large_string()), ("v", pa.string())])
    )

    table = made(tmp_path, rows=given)

    assert content(table) == ROWS
    assert table.scan("k = 'a' AND id = 2").count() == 1
