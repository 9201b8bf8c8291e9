"""What searches keep of leaves: read once, and after an append only what was added."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.plan import planner
from lancepart.read.leaf_memory import leaf_key
from lancepart.read.union import matching_partly
from lancepart.storage import search as storage
from tests.support.search import assert_same_ranking, distances, ranking

SCHEMA = pa.schema([("id", pa.int64()), ("tenant", pa.string()), ("v", pa.list_(pa.float32(), 3))])
QUERY = [0.5, -0.5, 1.0]


def rows(start: int, count: int) -> pa.Table:
    draw = np.random.default_rng(start)
    values = draw.normal(size=(count, 3)).astype(np.float32)
    return pa.table(
        [list(range(start, start + count)), ["a"] * count, pa.array(values.tolist(), SCHEMA.field("v").type)],
        schema=SCHEMA,
    )


def check(table: lp.PartitionedTable) -> None:
    """The best rows are those of all rows, ranked by numpy."""
    held = table.scan().to_arrow()
    away = distances(np.stack(held.column("v").to_numpy(zero_copy_only=False)), QUERY)
    known = dict(zip(held.column("id").to_pylist(), away.tolist(), strict=True))
    found = table.search(QUERY, k=7, where="tenant = 'a'").to_arrow()
    assert_same_ranking(found, ranking(list(known), list(known.values()), 7), "_distance", known)


def test_after_an_append_only_the_added_fragment_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["tenant"])
    asked: list[list[int] | None] = []
    read = storage.all_rows

    def watched(handle: object, columns: list[str], fragments: list[int] | None = None) -> pa.Table:
        asked.append(None if fragments is None else list(fragments))
        return read(handle, columns, fragments)  # type: ignore[arg-type]

    monkeypatch.setattr(storage, "all_rows", watched)
    table.append(rows(0, 50))
    check(table)
    assert asked == [None, None]
    for start in (100, 200):
        asked.clear()
        table.append(rows(start, 5))
        check(table)
        assert [len(each or ()) for each in asked] == [1, 1]
    for change in (
        lambda: table.delete("id % 7 = 3"),
        lambda: table.update({"tenant": "'a'"}, "id = 1"),
        lambda: table.maintenance.compact(progress=False),
    ):
        asked.clear()
        change()
        check(table)
        assert asked == [None, None]


def test_branches_of_a_leaf_are_kept_apart(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["tenant"])
    table.append(rows(0, 5))
    scan = table.scan()
    leaf = scan.plan().leaves[0]
    assert leaf_key(scan.root, leaf) != leaf_key(scan.root, replace(leaf, branch="other"))
    assert leaf_key(scan.root, replace(leaf, read_version=None)) is None


@pytest.mark.parametrize("where", ["id < 10", "id >= 3 AND id < 7", "id IS NULL OR id = 5", "id % 2 = 0", "true"])
def test_leaves_that_match_as_a_whole_are_found_by_one_plan(tmp_path: Path, where: str) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["truncate(id, 5)"])
    table.append(rows(0, 23))
    table.update_spec(["bucket(id, 3)"])
    table.append(rows(40, 9))
    scan = table.scan(where)

    plan, partly = planner.plan_partly(scan.snapshot, scan.metadata, scan.predicate)

    assert plan == scan.plan()
    assert partly == matching_partly(scan) & {leaf.object_id for leaf in plan.leaves}
