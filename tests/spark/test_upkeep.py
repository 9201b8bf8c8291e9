"""Upkeep on Spark: the executors do the work, one commit publishes it, and it yields to writers."""

from __future__ import annotations

import shutil
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidTableStateError
from lancepart.maintain import collect
from lancepart.maintain.local import executor_for
from lancepart.storage.manifest import Manifest
from tests.support.catalogs import Place
from tests.support.dying import forking
from tests.support.processes import rounds
from tests.transactions import owners
from tests.transactions.tables import assert_whole, content, data, make

WRITERS, SECONDS, LEAST = 4, rounds(4, 120), rounds(4, 50)
LONGEST_WRITE = timedelta(seconds=60)
SPECS = (["bucket(id, 2)"], ["bank"])


@pytest.fixture
def table(spark: Any, root: str) -> lp.PartitionedTable:
    made = make(Place(root), [(number, "ABC"[number % 3], number) for number in range(30)])
    for number in range(30, 36):
        made.append(data([(number, "ABC"[number % 3], number)]))
    return made


def fragments(table: lp.PartitionedTable) -> list[int]:
    return [each["fragments"] for each in table.inspect.partitions().to_pylist() if each["rows"]]


@pytest.mark.slow
def test_compaction_is_one_commit(spark: Any, table: lp.PartitionedTable) -> None:
    before, commits = content(table), table.inspect.snapshots().num_rows
    report = table.maintenance.compact(spark=spark)
    assert (report.changed, report.skipped) == (3, ())
    assert fragments(table) == [1, 1, 1]
    assert content(table) == before
    assert table.inspect.snapshots().num_rows == commits + 1
    assert table.maintenance.compact(spark=spark).changed == 0
    assert_whole(table)


@pytest.mark.slow
def test_a_partition_that_another_writer_changes_is_left_out(
    spark: Any, table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish, root = Manifest.publish, table.root

    def late(self: Manifest, *arguments: Any) -> int:
        monkeypatch.setattr(Manifest, "publish", publish)
        lp.open_table(root).delete("id = 1")
        return publish(self, *arguments)

    monkeypatch.setattr(Manifest, "publish", late)
    report = table.maintenance.compact(spark=spark)
    assert report.changed == 2
    assert len(report.skipped) == 1
    assert sum(content(table).values()) == 35
    assert_whole(table)


@pytest.mark.slow
def test_indices_are_built_by_the_executors(spark: Any, table: lp.PartitionedTable) -> None:
    report = table.maintenance.create_index("x", "BTREE", spark=spark)
    assert report.changed == 3
    assert table.inspect.indices().num_rows == 3
    assert content(table, "x = 31") == Counter([(31, "B", 31)])


@pytest.mark.slow
def test_an_index_over_the_table_is_built_by_an_executor(spark: Any, table: lp.PartitionedTable) -> None:
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("building", "an index over the table")
    try:
        assert table.maintenance.create_index("x", "BTREE", scope="table", spark=spark).changed == 1
        assert len(tracker.getJobIdsForGroup("building")) == 1
        table.append(data([(40, "A", 40)]))
        assert table.maintenance.optimize_indices(spark=spark).changed == 1
        assert len(tracker.getJobIdsForGroup("building")) == 2
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    covered = sorted((each["scope"], each["indexed_rows"]) for each in table.inspect.indices().to_pylist())
    assert covered == [("table", rows) for rows in (12, 12, 13)]
    assert content(table, "x = 40") == Counter([(40, "A", 40)])
    assert content(table, "x = 31") == Counter([(31, "B", 31)])


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["leaf", "table"])
def test_indices_of_vectors_and_texts_come_grow_and_go_by_the_executors(spark: Any, root: str, scope: Any) -> None:
    schema = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("t", pa.string()), ("v", pa.list_(pa.float32(), 2))])
    table = lp.create_table(root, schema, ["k"])

    def append(first: int) -> None:
        table.append([{"id": n, "k": n % 3, "t": f"word{n} all", "v": [n, 0.0]} for n in range(first, first + 30)])

    tracker, upkeep = spark.sparkContext.statusTracker(), table.maintenance
    spark.sparkContext.setJobGroup("searched", "indices of vectors and texts")
    try:
        append(0)
        upkeep.create_index("v", scope=scope, num_partitions=2, spark=spark)
        upkeep.create_index("t", "FTS", scope=scope, spark=spark)
        jobs = len(tracker.getJobIdsForGroup("searched"))
        assert jobs >= 2
        append(30)
        upkeep.optimize_indices(spark=spark)
        grown = len(tracker.getJobIdsForGroup("searched"))
        assert grown > jobs
        shown = table.inspect.indices().to_pylist()
        assert {(each["scope"], each["rows"], each["indexed_rows"]) for each in shown} == {(scope, 20, 20)}
        for _ in range(2):
            assert [row["id"] for row in table.search([41.2, 0.0], k=3).to_list()] == [41, 42, 40]
            assert [row["id"] for row in table.search("word41", "t").to_list()] == [41]
            for name in sorted({each["name"] for each in shown}):
                upkeep.drop_index(name, spark=spark)
            shown = []
        assert table.inspect.indices().num_rows == 0
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_old_specs_are_rewritten_in_one_commit(spark: Any, table: lp.PartitionedTable) -> None:
    before, commits = content(table), table.inspect.snapshots().num_rows
    table.update_spec(["bucket(id, 2)"])
    report = table.maintenance.rewrite(spark=spark)
    assert report.changed == 3
    assert content(table) == before
    held = [each for each in table.inspect.partitions().to_pylist() if each["rows"]]
    assert [each["spec_id"] for each in held] == [2, 2]
    assert table.inspect.snapshots().num_rows == commits + 2, "the change of the spec, and the rewrite"
    assert_whole(table)


@pytest.mark.slow
def test_a_rollback_is_looked_into_by_the_executors(spark: Any, table: lp.PartitionedTable) -> None:
    before, version = content(table), table.version
    table.append(data([(40, "A", 40)]))
    table.delete("id < 6")
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("rollback", "three leaves go back")
    try:
        table.maintenance.rollback(version, spark=spark)
        assert len(tracker.getJobIdsForGroup("rollback")) == 1
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert content(table) == before
    done = table.inspect.snapshots().to_pylist()[-1]
    assert (done["operation"], done["rows_added"], done["rows_deleted"]) == ("rollback", 6, 1)
    assert_whole(table)
    (leaf,) = table.scan("bank = 'A'").plan().leaves
    shutil.rmtree(Path(table.root, leaf.location, "data"))
    with pytest.raises(InvalidTableStateError, match=r"can't be restored: .* is missing"):
        table.maintenance.rollback(table.version - 1, spark=spark)


def test_garbage_is_collected_by_the_executors(spark: Any, table: lp.PartitionedTable) -> None:
    before = content(table)
    table.maintenance.compact(spark=spark)
    report = collect.expire(table._manifest, timedelta(0), safe_age=timedelta(0), executor=executor_for(spark))
    assert report.removed_files > 0
    assert collect.remove_orphans(table._manifest, timedelta(0), executor=executor_for(spark)).removed_files == 0
    assert content(table) == before
    assert_whole(table)


@pytest.mark.slow
@pytest.mark.torture
def test_upkeep_beside_four_writers_neither_loses_nor_doubles_a_row(spark: Any, root: str) -> None:
    place = Place(root)
    table = make(place, [(number, "ABC"[number % 3], number) for number in range(30)])
    before = content(table)
    with ProcessPoolExecutor(WRITERS, mp_context=forking()) as pool:
        running = [pool.submit(owners.write, place, who, SECONDS, LEAST) for who in range(WRITERS)]
        done = keep(spark, table, running)
        found = [future.result() for future in running]

    expected = sum((owner.content for owner in found), before + done["written"])
    assert content(table) == expected
    assert_whole(table)
    print(f"\n{[dict(owner.done) for owner in found]}, upkeep {dict(done['upkeep'])}, {expected.total()} rows")


def keep(spark: Any, table: lp.PartitionedTable, running: list[Future[Any]]) -> dict[str, Counter[Any]]:
    """Upkeep on Spark again and again, and a write of Spark's own, for as long as others write."""
    written: Counter[Any] = Counter()
    did: Counter[str] = Counter()
    while not all(future.done() for future in running):
        turn = did["turns"]
        table.update_spec(SPECS[turn % len(SPECS)])
        for report in (table.maintenance.rewrite(spark=spark), table.maintenance.compact(spark=spark)):
            did[report.action] += report.changed
            did[f"{report.action} left out"] += len(report.skipped)
        rows = spark.range(1000 + turn * 10, 1010 + turn * 10).selectExpr("id", "'B' AS bank", "id AS x")
        table.append(rows)
        written += Counter((number, "B", number) for number in range(1000 + turn * 10, 1010 + turn * 10))
        executor = executor_for(spark)
        expired = collect.expire(
            table._manifest, timedelta(0), safe_age=LONGEST_WRITE, executor=executor, progress=False
        )
        did["files removed"] += expired.removed_files
        did["turns"] += 1
    return {"written": written, "upkeep": did}
