"""Partitions whose values Python has no object for: times beyond its calendar, nanoseconds, years before Christ."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp

TYPES = [pa.timestamp("ms", "Europe/Paris"), pa.timestamp("ms"), pa.timestamp("s"), pa.timestamp("ns"), pa.date32()]
FAR = {"ms": 253_402_300_799_000, "s": -99_999_999_999, "ns": 1_000_000_000_000_000_001}


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_verb_works_on_a_partition_that_python_has_no_value_for(kind: pa.DataType, tmp_path: Path) -> None:
    far = FAR.get(getattr(kind, "unit", ""), 2_932_897)
    values = pa.array([far, 0, None], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "at": values})
    table = lp.create_table(tmp_path / "t", rows.schema, ["at"])

    first = table.append(rows)
    table.append(rows)
    table.update({"id": "id + 10"}, "id = 1")
    table.upsert(rows.slice(0, 1), on=["id", "at"])
    table.maintenance.compact()
    table.tags.create("then", first)
    table.maintenance.rollback(first)
    table.maintenance.expire(timedelta(0))
    table.maintenance.remove_orphans(timedelta(days=1))

    found = table.scan().to_arrow().sort_by("id")
    assert found.column("id").to_pylist() == [1, 2, 3]
    assert found.column("at").combine_chunks().equals(rows.column("at").combine_chunks())
    assert table.inspect.partitions().num_rows == 3
    kinds = table.changes(first).column("_change").to_pylist()
    assert kinds.count("insert") == kinds.count("delete") > 0
