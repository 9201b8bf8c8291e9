"""A session that runs the same deep queries again and again keeps nothing of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from benchmarks.tpc_session import Held, held, is_falling, settled

pytest.importorskip("pyspark")

WARM, MORE = 2, 3
ROWS, KEYS, SIDES = 1_000, 100, 3
MORE_HEAP = 16 << 20
SETTINGS = {
    "spark.sql.autoBroadcastJoinThreshold": "10MB",
    "spark.lancepart.runtimeFilterBytes": "0",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture
def star(spark: Any, tmp_path: Path) -> Iterator[str]:
    """A table bucketed by its key beside several smaller ones, and a query that joins all of them twice over."""
    numbers = [f"k{n}" for n in range(SIDES)]
    schema = pa.schema([("id", pa.int64()), *((name, pa.int64()) for name in numbers)])
    facts = lp.create_table(str(tmp_path / "facts"), schema, ["bucket(k0, 4)"])
    facts.append([{"id": n, **{name: n * (at + 1) % KEYS for at, name in enumerate(numbers)}} for n in range(ROWS)])
    side = pa.schema([("key", pa.int64()), ("name", pa.string()), ("level", pa.int64())])
    rows = [{"key": n, "name": f"name {n}", "level": n % 10} for n in range(KEYS)]
    for name in ("facts", *numbers):
        if name != "facts":
            lp.create_table(str(tmp_path / name), side, ["bucket(key, 2)"]).append(rows)
        spark.read.format("lancepart").load(str(tmp_path / name)).createOrReplaceTempView(f"long_{name}")
    joins = " ".join(f"JOIN long_{name} ON facts.{name} = long_{name}.key" for name in numbers)
    where = " AND ".join(f"long_{name}.level < {5 + at}" for at, name in enumerate(numbers))
    half = f"SELECT facts.k0 AS k, count(*) AS n FROM long_facts facts {joins} WHERE {where} GROUP BY facts.k0"
    before = {key: spark.conf.get(key, None) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    yield f"SELECT a.k, a.n, b.n FROM ({half}) a JOIN ({half}) b ON a.k = b.k ORDER BY a.k"
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


@pytest.mark.slow
def test_deep_queries_leave_nothing_behind(spark: Any, star: str) -> None:
    answers = {str(spark.sql(star).collect()) for _ in range(WARM)}
    held(spark)
    before = held(spark)

    answers |= {str(spark.sql(star).collect()) for _ in range(MORE)}
    after = settled(spark, lambda found: found.plans <= before.plans and found.heap <= before.heap + MORE_HEAP)

    assert len(answers) == 1
    assert after.plans <= before.plans
    assert after.heap <= before.heap + MORE_HEAP
    assert after.own_threads <= before.own_threads
    assert after.processes <= before.processes + 2
    assert after.files <= before.files + 16
    assert after.temporary == before.temporary


def test_what_is_held_is_at_rest_when_neither_memory_nor_plans_nor_files_get_fewer() -> None:
    before = Held(
        heap=1_000, plans=5, own_threads=1, threads=9, processes=2, files=7, python_files=3, resident=50, temporary=4
    )
    assert not is_falling(before, replace(before, heap=990))
    assert not is_falling(before, replace(before, heap=1_100, plans=6, temporary=5))
    assert is_falling(before, replace(before, heap=900))
    assert is_falling(before, replace(before, plans=4))
    assert is_falling(before, replace(before, temporary=3))
