"""Streams on Spark: written exactly once whatever is started again, and read as what was committed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.format.records import KeyRecord
from lancepart.maintain import collect

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("t", pa.string())])
DDL = "id long, k int, t string"
COLUMNS = tuple(SCHEMA.names)


def rows(*ids: int, t: str = "t") -> list[dict[str, Any]]:
    return [{"id": number, "k": number % 3, "t": t} for number in ids]


def ids(root: str) -> Counter[int]:
    return Counter(lp.open_table(root).scan(columns=["id"]).to_arrow().column("id").to_pylist())


class Lines:
    """A directory that files come into, followed one file a batch."""

    def __init__(self, spark: Any, place: Path) -> None:
        self.spark, self.place = spark, place
        (place / "in").mkdir(parents=True)
        self.sent = 0

    def send(self, *files: list[dict[str, Any]]) -> None:
        for each in files:
            text = "".join(json.dumps(row) + "\n" for row in each)
            path = self.place / "in" / f"{self.sent:03}.json"
            path.write_text(text)
            os.utime(path, (self.sent + 1, self.sent + 1))
            self.sent += 1

    def frame(self) -> Any:
        source = self.spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).option("latestFirst", "false")
        return source.json(str(self.place / "in"))

    def run(self, writer: Any, **options: str) -> Any:
        checkpoint = str(self.place / "checkpoint")
        query = writer.options(checkpointLocation=checkpoint, **options).trigger(availableNow=True).start()
        query.awaitTermination(120)
        return query

    def forget_last(self, count: int = 1) -> None:
        """Let the next run believe that the last batches were never finished."""
        found = sorted((self.place / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        for path in found[len(found) - count :]:
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


@pytest.fixture
def lines(spark: Any, tmp_path: Path) -> Lines:
    return Lines(spark, tmp_path / "lines")


@pytest.fixture
def table(root: str) -> lp.PartitionedTable:
    return lp.create_table(root, SCHEMA, ["k"])


def commits(table: lp.PartitionedTable) -> int:
    return sum(1 for each in table.inspect.snapshots().to_pylist() if each["operation"] != "define")


@pytest.mark.slow
def test_a_sink_that_is_started_again_writes_each_batch_once(lines: Lines, table: lp.PartitionedTable) -> None:
    writer = lines.frame().writeStream.format("lancepart").option("path", table.root)
    lines.send(rows(1, 2), rows(3))
    lines.run(writer)
    assert ids(table.root) == Counter([1, 2, 3])
    assert commits(table) == 2

    lines.forget_last()
    lines.send(rows(4, 5))
    lines.run(lines.frame().writeStream.format("lancepart").option("path", table.root))
    assert ids(table.root) == Counter([1, 2, 3, 4, 5])
    assert commits(table) == 3

    table.maintenance.compact(progress=False)
    collect.expire(table._manifest, timedelta(0), safe_age=timedelta(0))
    lines.forget_last()
    lines.run(lines.frame().writeStream.format("lancepart").option("path", table.root))
    assert ids(table.root) == Counter([1, 2, 3, 4, 5])


@pytest.mark.slow
def test_a_batch_without_rows_is_recorded_too(lines: Lines, table: lp.PartitionedTable) -> None:
    lines.send(rows(1), rows(2))
    nothing = lines.frame().where("id = 2")
    lines.run(nothing.writeStream.format("lancepart").option("path", table.root))
    assert ids(table.root) == Counter([2])
    keys = [row for row in table._manifest.snapshot().below("lancepart.once") if row.metadata]
    assert [KeyRecord.from_row(row).sequence for row in keys] == [1]


@pytest.mark.slow
def test_a_batch_whose_commit_failed_comes_again(
    lines: Lines, table: lp.PartitionedTable, spark: Any, tmp_path: Path
) -> None:
    """The first attempt dies in a task, after other tasks wrote."""
    flag = tmp_path / "healthy"
    lines.send(rows(1, 2, 3))

    def fussy(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if not flag.exists():
                raise RuntimeError("broken on purpose")
            yield batch

    def writer() -> Any:
        return lines.frame().mapInArrow(fussy, DDL).writeStream.format("lancepart").option("path", table.root)

    with pytest.raises(Exception, match="broken on purpose"):
        lines.run(writer())
    assert ids(table.root) == Counter()
    flag.touch()
    lines.run(writer())
    assert ids(table.root) == Counter([1, 2, 3])


@pytest.mark.slow
def test_a_stream_makes_its_table(lines: Lines, root: str) -> None:
    lines.send(rows(1, 2), rows(3))
    lines.run(lines.frame().writeStream.format("lancepart").option("path", root), partition_by="k")
    assert ids(root) == Counter([1, 2, 3])


@pytest.mark.slow
def test_complete_mode_replaces_the_table(lines: Lines, root: str) -> None:
    made = lp.create_table(root, pa.schema([("k", pa.int32()), ("n", pa.int64())]), ["k"])
    counted = lines.frame().groupBy("k").count().selectExpr("k", "count AS n")
    for batch in (rows(1, 2), rows(4)):
        lines.send(batch)
        lines.run(counted.writeStream.format("lancepart").option("path", root).outputMode("complete"))
    assert sorted(made.scan().to_arrow().to_pylist(), key=lambda row: row["k"]) == [{"k": 1, "n": 2}, {"k": 2, "n": 1}]


@pytest.mark.slow
def test_complete_mode_replaces_all_partitions_whatever_the_setting_for_batch_jobs(lines: Lines, root: str) -> None:
    made = lp.create_table(root, pa.schema([("k", pa.int32()), ("n", pa.int64())]), ["k"])
    made.append([{"k": 77, "n": 1}])
    counted = lines.frame().groupBy("k").count().selectExpr("k", "count AS n")
    lines.send(rows(1, 2))
    lines.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        lines.run(counted.writeStream.format("lancepart").option("path", root).outputMode("complete"))
    finally:
        lines.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert sorted(row["k"] for row in made.scan().to_arrow().to_pylist()) == [1, 2]


@pytest.mark.slow
def test_batches_are_upserted_once(lines: Lines, table: lp.PartitionedTable) -> None:
    upsert = lp.spark.upsert_batches(table, on=["id"])
    lines.send(rows(1, 2, t="old"), rows(2, 3, t="new"))
    lines.run(lines.frame().writeStream.foreachBatch(upsert))
    expected = {1: "old", 2: "new", 3: "new"}
    assert {row["id"]: row["t"] for row in table.scan().to_arrow().to_pylist()} == expected
    assert ids(table.root) == Counter([1, 2, 3])

    table.update({"t": "'touched'"}, "id = 2")
    lines.forget_last()
    lines.run(lines.frame().writeStream.foreachBatch(upsert))
    expected[2] = "touched"
    assert {row["id"]: row["t"] for row in table.scan().to_arrow().to_pylist()} == expected


class Follower:
    """A query over a table that is stopped and started again; what it has seen stays."""

    def __init__(self, spark: Any, root: str, place: Path, **options: Any) -> None:
        self.spark, self.root, self.place, self.options = spark, root, place, options
        self.seen: list[dict[str, Any]] = []
        self.batches: list[int] = []

    def go(self) -> list[dict[str, Any]]:
        """What is new since the last time."""
        before = len(self.seen)
        frame = self.spark.readStream.format("lancepart").options(**self.options).load(self.root)
        query = (
            frame.writeStream.foreachBatch(self._take)
            .option("checkpointLocation", str(self.place))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        return self.seen[before:]

    def _take(self, frame: Any, batch: int) -> None:
        found = [row.asDict() for row in frame.collect()]
        self.batches.append(len(found))
        self.seen += found


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in found)


def test_a_source_gives_what_is_there_and_then_what_comes(
    spark: Any, table: lp.PartitionedTable, tmp_path: Path
) -> None:
    table.append(rows(*range(10)))
    follower = Follower(spark, table.root, tmp_path / "at")
    assert numbers(follower.go()) == list(range(10))
    table.append(rows(10, 11))
    table.append(rows(12))
    table.maintenance.compact(progress=False)
    assert numbers(follower.go()) == [10, 11, 12]
    assert follower.go() == []
    table.add_column(pa.field("extra", pa.int32()))
    table.rename_column("t", "text")
    table.append([{"id": 13, "k": 5, "text": "x", "extra": 7}])
    table.update_spec(["bucket(id, 2)"])
    table.append([{"id": 14, "k": 6, "text": "y", "extra": 8}])
    table.maintenance.rewrite(progress=False)
    assert sorted(follower.go(), key=lambda row: row["id"]) == [
        {"id": 13, "k": 5, "text": "x", "extra": 7},
        {"id": 14, "k": 6, "text": "y", "extra": 8},
    ]


@pytest.mark.slow
@pytest.mark.parametrize("told", [True, False])
def test_a_table_that_took_the_place_of_another_is_not_followed_on(
    told: bool, spark: Any, table: lp.PartitionedTable, tmp_path: Path
) -> None:
    for number in range(3):
        table.append(rows(number))
    follower = Follower(spark, table.root, tmp_path / "at")
    assert numbers(follower.go()) == [0, 1, 2]
    if not told:
        last = max((tmp_path / "at" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
        text = last.read_text()
        last.write_text(text.replace(f'"table": "{table.metadata.salt}"', '"older": 1'))
        assert last.read_text() != text
        last.with_name(f".{last.name}.crc").unlink()
        assert follower.go() == []
    before = table.version
    lp.drop_table(table.root)
    other = lp.create_table(table.root, SCHEMA, ["k"])
    other.append(rows(100))
    while told and other.version <= before:
        other.append(rows(101))
    with pytest.raises(Exception, match="checkpoint is of another table"):
        follower.go()


@pytest.mark.slow
def test_all_changes_with_their_snapshots(spark: Any, table: lp.PartitionedTable, tmp_path: Path) -> None:
    first = table.append(rows(1, 2, 3))
    follower = Follower(spark, table.root, tmp_path / "at", readChangeFeed="true")
    assert {(row["id"], row["_change"], row["_version"]) for row in follower.go()} == {
        (number, "insert", first) for number in (1, 2, 3)
    }
    gone = table.delete("id = 1")
    new = table.append(rows(4))
    table.maintenance.compact(progress=False)
    moved = table.update({"k": "9"}, "id = 2")
    table.widen_column("k", pa.int64())
    found = follower.go()
    assert Counter((row["id"], row["k"], row["_change"], row["_version"]) for row in found) == Counter(
        [
            (1, 1, "delete", gone),
            (4, 1, "insert", new),
            (2, 2, "delete", moved),
            (2, 9, "insert", moved),
        ]
    )
    with pytest.raises(Exception, match="readStream"):
        spark.read.format("lancepart").option("readChangeFeed", "true").load(table.root).collect()


@pytest.mark.slow
def test_a_limit_a_trigger_and_a_deletion_that_stops_the_query(
    spark: Any, table: lp.PartitionedTable, tmp_path: Path
) -> None:
    table.append(rows(0))
    start = str(table.version)
    for number in range(1, 4):
        table.append(rows(number, number + 10))
    one = Follower(spark, table.root, tmp_path / "one", startingVersion=start, maxVersionsPerTrigger=1)
    assert numbers(one.go()) == [1, 2, 3, 11, 12, 13]
    assert [size for size in one.batches if size] == [2, 2, 2]
    table.delete("id = 1")
    with pytest.raises(Exception, match="ignoreDeletes"):
        one.go()
