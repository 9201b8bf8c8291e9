"""What a table is made of, as Arrow tables and for a notebook."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("<b>", pa.string())])


@pytest.fixture(params=["strong", "weak"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["<b>"], transactions=request.param)
    made.append([{"id": 1, "<b>": "US"}, {"id": 2, "<b>": None}, {"id": 3, "<b>": "US"}])
    made.append([{"id": 4, "<b>": "US"}])
    made.update_spec(["year(day)", "bucket(id, 4)", "expr(id % 2) AS even"])
    return made


def test_partitions_shows_each_leaf_with_its_values_place_and_size(table: lp.PartitionedTable) -> None:
    found = table.inspect.partitions().to_pylist()

    shown = {tuple(row["partition"]): (row["spec_id"], row["rows"], row["fragments"]) for row in found}
    (field,) = table.specs[0].fields
    assert shown == {((field.field_id, "US"),): (1, 3, 2), ((field.field_id, None),): (1, 1, 1)}
    assert all(row["bytes"] > 0 for row in found)
    assert all((Path(table.root) / row["location"]).is_dir() for row in found)
    strong = table.metadata.transactions == "strong"
    assert all((row["read_version"] is not None) == strong for row in found)


def test_specs_shows_each_field_of_each_version(table: lp.PartitionedTable) -> None:
    found = [
        (row["spec_id"], row["source"], row["transform"], row["result_type"])
        for row in table.inspect.specs().to_pylist()
    ]

    assert found == [
        (1, "<b>", "identity", "string"),
        (2, "day", "year", "int32"),
        (2, "id", "bucket", "int32"),
        (2, "id", "col0 % 2", "int64"),
    ]


def test_a_notebook_shows_columns_partitioning_and_size_and_escapes_them(table: lp.PartitionedTable) -> None:
    shown = table._repr_html_()

    assert "2 partitions by" in shown
    assert "&lt;b&gt;" in shown
    assert "<td><b></td>" not in shown
    assert ("4 rows in 2 partitions" in shown) == (table.metadata.transactions == "strong")


def test_the_past_is_inspected_as_it_was(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "p", SCHEMA, ["day"])
    table.append([{"id": 1}])
    then = table.version
    table.append([{"id": 2}])

    assert lp.open_table(table.root, version=then).inspect.partitions().to_pylist()[0]["rows"] == 1
    assert repr(table).startswith(f"PartitionedTable({table.root} at snapshot {table.version}")


def test_indices_of_the_largest_leaves_only(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("k", pa.string())]), ["k"])
    table.append([{"id": n, "k": k} for k, count in (("a", 2), ("b", 9), ("c", 5)) for n in range(count)])
    table.update_spec(["bucket(id, 1)"])
    table.append([{"id": n, "k": "d"} for n in range(7)])
    table.maintenance.create_index("id", "BTREE")

    for most, counts in ((1, [9]), (2, [7, 9]), (50, [2, 5, 7, 9])):
        assert sorted(table.inspect.indices(most=most).column("rows").to_pylist()) == counts

    sizes = {row["object_id"]: row["rows"] for row in table.inspect.partitions().to_pylist()}
    for chosen in (list(sizes)[::-1], list(sizes)[1:3], []):
        assert table.inspect.indices(leaves=chosen).column("rows").to_pylist() == [sizes[each] for each in chosen]
    with pytest.raises(InvalidInputError, match="there is no leaf 'v9'"):
        table.inspect.indices(leaves=[*sizes, "v9"])
