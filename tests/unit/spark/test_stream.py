"""A stream's offsets and tasks, asked as Spark asks for them, without Spark."""

from __future__ import annotations

import importlib.util
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark.sql.datasource  # noqa: F401
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, TableVersionNotFoundError, UnsupportedOperationError
from lancepart.maintain import collect
from lancepart.spark.sink import sink
from lancepart.spark.source import feed_schema
from lancepart.spark.stream import NOTHING, Stream, run
from lancepart.spark.types import spark_schema
from pyspark_lancepart.streams import StreamReader

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int32())])


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "table", SCHEMA, ["k"])
    made.append(rows(0))
    return made


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": number, "k": number % 3} for number in ids]


def stream(table: lp.PartitionedTable, **options: str) -> Stream:
    return Stream({"path": table.root, **options}, spark_schema(table.schema))


def read(source: Stream, table: lp.PartitionedTable, start: int, end: int) -> list[int]:
    schema = spark_schema(table.schema)
    found = [batch for task in source.tasks(start, end) for batch in run(task, schema)]
    return sorted(number for batch in found for number in batch.column("id").to_pylist())


def test_deletions_and_changes_are_refused_or_passed_over(table: lp.PartitionedTable) -> None:
    start = table.version
    table.delete("id = 0")
    table.append(rows(7))
    middle = table.version
    table.append(rows(8, 9))
    table.update({"id": "20"}, "id = 8")
    end = table.version
    with pytest.raises(UnsupportedOperationError, match="ignoreDeletes"):
        stream(table).tasks(start, middle)
    assert read(stream(table, ignoreDeletes="true"), table, start, middle) == [7]
    with pytest.raises(UnsupportedOperationError, match="update"):
        stream(table, ignoreDeletes="true").tasks(start, end)
    assert read(stream(table, ignoreChanges="true"), table, start, end) == [7, 8, 9, 20]
    assert read(stream(table), table, NOTHING, end) == [7, 9, 20]


def test_where_a_stream_begins(table: lp.PartitionedTable) -> None:
    first = table.version
    moment = table.inspect.snapshots().to_pylist()[-1]["timestamp"].isoformat()
    table.tags.create("mark", first)
    table.append(rows(2))
    assert stream(table).initial() == NOTHING
    assert stream(table, startingVersion="latest").initial() == table.version
    for options in ({"startingVersion": str(first)}, {"startingVersion": "mark"}, {"startingTimestamp": moment}):
        assert stream(table, **options).initial() == first
    with pytest.raises(InvalidInputError, match="not both"):
        stream(table, startingVersion="1", startingTimestamp=moment).initial()
    with pytest.raises(TableVersionNotFoundError):
        stream(table, startingVersion="999").initial()


def test_how_far_a_batch_goes(table: lp.PartitionedTable) -> None:
    start = table.version
    ends = [table.append(rows(number, number + 10)) for number in range(1, 5)]
    source = stream(table)
    assert source.until(start, source.latest()) == ends[3]
    assert source.until(start, ends[3], versions=1) == ends[0]
    assert source.until(start, ends[3], versions=9) == ends[3]
    assert source.until(start, ends[3], most=5) == ends[1]
    assert source.until(start, ends[3], most=1) == ends[0]
    assert source.until(NOTHING, ends[3], most=1) == ends[3]
    assert source.until(ends[3], ends[3], most=1) == ends[3]
    assert stream(table, maxRowsPerTrigger="5").limits() == (None, 5)
    for wrong in ({"maxRowsPerTrigger": "5", "maxVersionsPerTrigger": "1"}, {"maxRowsPerTrigger": "few"}):
        with pytest.raises(InvalidInputError):
            stream(table, **wrong).limits()


def test_a_snapshot_that_expired_is_named(table: lp.PartitionedTable) -> None:
    start = table.version
    table.append(rows(2))
    table.append(rows(3))
    collect.expire(table._manifest, timedelta(0), safe_age=timedelta(0))
    with pytest.raises(TableVersionNotFoundError, match=f"after snapshot {start}.*expired"):
        stream(table).tasks(start, table.version)


def test_a_table_that_takes_the_place_of_the_one_that_is_followed_is_refused(table: lp.PartitionedTable) -> None:
    """By a query that runs on too: its checkpoint is of the first one, and rows of the other would be left out."""
    source, start = stream(table), table.version
    lp.drop_table(table.root)
    other = lp.create_table(table.root, SCHEMA, ["k"])
    while other.version <= start:
        other.append(rows(other.version))
    for ask in (
        source.latest,
        lambda: source.tasks(start, other.version),
        lambda: source.tasks(NOTHING, other.version),
    ):
        with pytest.raises(InvalidInputError, match="of another table"):
            ask()


def test_columns_stay_those_that_the_query_began_with(table: lp.PartitionedTable) -> None:
    source, schema = stream(table), spark_schema(table.schema)
    start = table.version
    table.rename_column("id", "number")
    table.add_column(pa.field("id", pa.string()))
    table.append([{"number": 5, "k": 1, "id": "another"}])
    found = [batch.to_pylist() for task in source.tasks(start, table.version) for batch in run(task, schema)]
    assert found == [[{"id": 5, "k": 1}]]
    with pytest.raises(UnsupportedOperationError, match="start it again"):
        Stream({"path": table.root}, schema)


def test_the_columns_of_changes_are_not_the_tables_own(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperationError, match="_version"):
        feed_schema(pa.schema([("_version", pa.int64())]))


def test_a_sink_must_know_its_query_and_needs_commits(table: lp.PartitionedTable, tmp_path: Path) -> None:
    schema = spark_schema(SCHEMA)
    with pytest.raises(InvalidInputError, match="idempotency_key"):
        sink({"path": table.root}, schema, False)
    for kind in ({"transactions": "weak"}, {"layout": "hive"}):
        other = lp.create_table(tmp_path / str(kind), SCHEMA, ["k"], **kind)
        with pytest.raises(UnsupportedOperationError, match=r"strong|snapshots"):
            sink({"path": other.root, "idempotency_key": "q"}, schema, False)


def test_a_batch_is_committed_once_by_its_number(table: lp.PartitionedTable) -> None:
    schema = spark_schema(SCHEMA)
    data = pa.RecordBatch.from_pylist(rows(5), SCHEMA)
    for number in (0, 0, 1, 1, 0, 3, 2):
        batch = sink({"path": table.root, "idempotency_key": "q"}, schema, False)
        batch.commit([batch.write([data])], number)
    assert table.scan("id = 5").count() == 3, "0, 1 and 3: numbers rise"
    sink({"path": table.root, "idempotency_key": "q"}, schema, False).commit([], 4)
    late = sink({"path": table.root, "idempotency_key": "q"}, schema, False)
    late.commit([late.write([data])], 4)
    assert table.scan("id = 5").count() == 3


def test_spark_4_1_asks_without_a_start_and_has_no_limits(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ``latestOffset`` takes no argument, and the module of limits is not there."""
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    monkeypatch.delattr("pyspark.sql.streaming.datasource", raising=False)
    spec = importlib.util.find_spec("pyspark_lancepart.streams")
    assert spec is not None
    assert spec.loader is not None
    streams = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(streams)
    schema = spark_schema(table.schema)

    reader = streams.StreamReader({"path": table.root}, schema)
    first = reader.initialOffset()
    table.append(rows(1, 2))
    end = reader.latestOffset()
    found = [batch for task in reader.partitions(first, end) for batch in reader.read(task)]

    assert sorted(number for batch in found for number in batch.column("id").to_pylist()) == [0, 1, 2]
    limited = streams.StreamReader({"path": table.root, "maxRowsPerTrigger": "5"}, schema)
    with pytest.raises(UnsupportedOperationError, match=r"need Spark 4\.2"):
        limited.latestOffset()


@pytest.mark.parametrize("offset", [{}, {"version": "1"}, {"version": True}, {"version": -1}, {"version": None}, "1"])
def test_an_offset_of_a_checkpoint_is_a_number(table: lp.PartitionedTable, offset: Any) -> None:
    reader = StreamReader({"path": table.root}, spark_schema(SCHEMA))

    with pytest.raises(InvalidInputError, match="checkpoint"):
        reader.partitions(offset, {"version": table.version})
    with pytest.raises(InvalidInputError, match="checkpoint"):
        reader.latestOffset(offset, reader.getDefaultReadLimit())
    assert len(reader.partitions({"version": 0}, {"version": table.version})) == 1
