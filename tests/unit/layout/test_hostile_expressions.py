"""Tables whose partition expressions would take forever: they open, are read in full, and are not written to."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])
HOSTILE = [
    *("repeat('x', 1000000000)", "rpad(col0, 1000000000, col0)", "col0 ~ '((a{100}){100}){100}'"),
    *("array_to_string(generate_series(1, 1000000000), col0)", "col0" + " || col0" * 20_000),
    *(
        "CAST (" * 40 + "col0" + ")" * 40,
        "CAST(CASE WHEN NOT (" * 12 + "col0" + "))" * 12,
        "NOT (" * 60 + "col0" + ")" * 60,
    ),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["expr(lower(k)) AS p"])
    table.append([{"id": 1, "k": "A"}, {"id": 2, "k": "B"}, {"id": 3, "k": None}])
    return tmp_path / "t"


def turned_hostile(root: Path, expression: str) -> None:
    manifest = Manifest(Root.parse(root))
    spec = json.loads(manifest.snapshot().properties["partition_spec_v1"])
    spec["fields"][0]["expression"] = expression
    manifest.set_properties({"partition_spec_v1": json.dumps(spec)})


@pytest.mark.parametrize("expression", HOSTILE, ids=lambda text: text[:16])
def test_a_hostile_table_is_read_in_full(root: Path, expression: str) -> None:
    turned_hostile(root, expression)

    table = lp.open_table(root)

    assert table.scan().count() == 3
    assert table.scan("k = 'A'").to_arrow().column("id").to_pylist() == [1]
    assert table.scan("k IS NULL OR k = 'B'").count() == 2
    assert "3 of 3 leaves" in table.scan("k = 'A'").explain()
    assert table.inspect.partitions().num_rows == 3
    assert table.join(table, on=["k"]).to_arrow().num_rows == 2


def test_a_write_is_refused_and_says_why(root: Path) -> None:
    turned_hostile(root, HOSTILE[0])
    table = lp.open_table(root)
    before = table.version

    for write in (
        lambda: table.append([{"id": 4, "k": "C"}]),
        lambda: table.upsert([{"id": 1, "k": "C"}], on=["id"]),
        lambda: table.update({"k": "'C'"}, "id = 1"),
        lambda: table.overwrite([{"id": 1, "k": "C"}], "id = 1"),
    ):
        with pytest.raises(UnsupportedOperationError, match="the function repeat"):
            write()

    assert (lp.open_table(root).version, table.scan().count()) == (before, 3)


def test_rows_can_be_deleted_and_a_new_spec_makes_it_writable(root: Path) -> None:
    turned_hostile(root, HOSTILE[0])
    table = lp.open_table(root)
    table.delete("id = 2")

    table.update_spec(["k"])
    table.append([{"id": 4, "k": "C"}])

    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [1, 3, 4]


@pytest.mark.parametrize("expression", ["repeat(k, 2)", "lpad(k, 101)", "regexp_replace(k, 'a', 'b')", "k ~ 'a'"])
def test_a_new_table_has_listed_functions_only(tmp_path: Path, expression: str) -> None:
    with pytest.raises(InvalidInputError, match=r"docs/partitioned-table\.md"):
        lp.create_table(tmp_path / "t", SCHEMA, [f"expr({expression}) AS p"])
    table = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    with pytest.raises(InvalidInputError, match=r"docs/partitioned-table\.md"):
        table.update_spec([f"expr({expression}) AS p"])
    assert [spec.id for spec in table.specs] == [1]
