"""Indices beside changes of the schema, in some partitions only, and over vectors that nothing can be learned from."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.string()),
        ("n", pa.int16()),
        ("body", pa.string()),
        ("v", pa.list_(pa.float32(), 2)),
    ]
)


def rows(start: int, *, keys: str = "ab", schema: pa.Schema = SCHEMA, vector: list[float] | None = None) -> pa.Table:
    made = [
        {"id": at, "k": keys[at % len(keys)], "n": at % 5, "body": f"w{at % 3}", "v": vector or [at % 7, at % 4]}
        for at in range(start, start + 20)
    ]
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in made], schema=schema)


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    made.append(rows(0))
    made.append(rows(20))
    return made


def covered(table: lp.PartitionedTable, name: str) -> dict[str, int]:
    """The indexed rows of each partition."""
    values = {row["object_id"]: row["partition"][0][1] for row in table.inspect.partitions().to_pylist()}
    found = table.inspect.indices().to_pylist()
    return {values[row["object_id"]]: row["indexed_rows"] for row in found if row["name"] == name}


@pytest.mark.parametrize("scope", ["leaf", "table"])
@pytest.mark.parametrize(
    ("column", "kind", "params"), [("v", None, {"num_partitions": 1}), ("body", "FTS", {}), ("n", None, {})]
)
def test_upkeep_goes_on_after_the_column_of_an_index_was_dropped(
    table: lp.PartitionedTable, column: str, kind: Any, params: dict[str, Any], scope: Any
) -> None:
    table.maintenance.create_index(column, kind, scope=scope, progress=False, **params)
    table.maintenance.create_index("id", scope="leaf", progress=False)

    table.drop_column(column)
    table.append(rows(40, schema=table.schema))
    table.maintenance.optimize_indices(progress=False)
    assert covered(table, "id_idx") == {"a": 30, "b": 30}
    assert table.maintenance.compact(progress=False).changed == 2
    table.maintenance.optimize_indices(progress=False)

    assert covered(table, "id_idx") == {"a": 30, "b": 30}
    table.maintenance.drop_index(f"{column}_idx", progress=False)


def test_compaction_builds_no_index_where_it_is_not_declared(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("id", scope="leaf", where="k = 'a'", progress=False)

    assert table.maintenance.compact(progress=False).changed == 2

    assert covered(table, "id_idx") == {"a": 20, "b": 0}


def test_where_an_index_is_follows_the_names_of_columns(table: lp.PartitionedTable) -> None:
    table.maintenance.create_index("id", scope="leaf", where="k = 'a'", progress=False)

    table.rename_column("k", "key")
    table.append(rows(40).rename_columns(table.schema.names))
    table.maintenance.optimize_indices(progress=False)
    assert covered(table, "id_idx") == {"a": 30, "b": 0}
    table.maintenance.compact(progress=False)
    assert covered(table, "id_idx") == {"a": 30, "b": 0}

    table.drop_column("key")
    table.append(rows(60, schema=table.schema))
    table.maintenance.optimize_indices(progress=False)
    assert covered(table, "id_idx")["b"] == 0


@pytest.mark.parametrize("empty", [None, [math.nan, 1.0]])
def test_partitions_without_a_vector_to_learn_from_stay_flat(tmp_path: Path, empty: Any) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    table.append(rows(0))
    hollow = rows(20, keys="c").set_column(4, SCHEMA.field(4), pa.array([empty] * 20, SCHEMA.field(4).type))
    table.append(hollow)

    for scope in ("leaf", "table"):
        table.maintenance.create_index("v", scope=scope, num_partitions=1, progress=False)
        table.append(hollow)
        table.maintenance.optimize_indices(progress=False)
        table.maintenance.compact(progress=False)
        assert covered(table, "v_idx")["a"] == 10
        found = table.search([0.0, 0.0], "v", k=50).to_arrow()
        assert sorted(found["id"].to_pylist()) == list(range(20))


@pytest.mark.parametrize("scope", ["leaf", "table"])
def test_a_table_without_a_vector_can_declare_an_index_for_those_to_come(tmp_path: Path, scope: Any) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    table.append(rows(0).set_column(4, SCHEMA.field(4), pa.nulls(20, SCHEMA.field(4).type)))

    table.maintenance.create_index("v", scope=scope, num_partitions=1, progress=False)
    table.append(rows(20))
    table.maintenance.optimize_indices(progress=False)

    assert min(covered(table, "v_idx").values()) >= 10
