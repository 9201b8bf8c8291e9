"""Options that are misspelt, another format's, or in the wrong place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
from pyspark.sql.types import LongType, StructField, StructType

import lancepart as lp
from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.spark import options as known
from lancepart.spark.answers import answer
from lancepart.spark.jobs import configured
from lancepart.spark.protocol import Request
from lancepart.spark.sink import sink
from lancepart.spark.source import REQUEST, show
from lancepart.spark.stream import Stream
from lancepart.spark.writing import plan, without_jar

ROWS = pa.table({"id": [1, 2]})
COLUMNS = StructType([StructField("id", LongType())])


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", ROWS.schema, ["bucket(1, id)"])
    made.append(ROWS)
    return made


MISSPELT = {
    "verison": "version",
    "Timestmap": "timestamp",
    "startingVersoin": "startingVersion",
    "partitionBy": "partition_by",
    "replace_where": "replaceWhere",
    "partitionOverwritMode": "partitionOverwriteMode",
    "idempotencyKey": "idempotency_key",
    "readChangesFeed": "readChangeFeed",
    "storge.aws_region": "storage.…",
    "snapshot-id": "version",
    "maxFilesPerTrigger": "maxVersionsPerTrigger",
}


@pytest.mark.parametrize(("key", "meant"), MISSPELT.items())
def test_a_near_miss_is_refused_wherever_it_is_given(table: lp.PartitionedTable, key: str, meant: str) -> None:
    given = {"path": table.root, key: "1"}
    asked: list[Any] = [
        lambda: show(given),
        lambda: answer(Request(id=1, op="table", options=given)),
        lambda: plan(given, COLUMNS, without_jar(COLUMNS, False)),
        lambda: Stream(given, COLUMNS),
        lambda: sink({**given, "idempotency_key": "q"}, COLUMNS, False),
    ]
    for ask in asked:
        with pytest.raises(InvalidInputError, match=f"(?i)no option '{key}'.*'{meant}'"):
            ask()


def test_what_is_ours_or_sparks_passes_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    known.check(
        ["path", "paths", "versionAsOf", "STARTINGVERSION", "storage.aws_region", "checkpointLocation", REQUEST]
    )

    assert not recwarn.list


def test_options_of_files_and_of_nobody_are_warned_of() -> None:
    for key in ("inferSchema", "timestampFormat", "header", "frobnicate"):
        known._warn.cache_clear()
        with pytest.warns(UserWarning, match=f"'{key}'.*no effect"):
            known.check([key])


def test_an_option_of_streams_of_files_is_told_from_one_of_nobody() -> None:
    known._warn.cache_clear()
    with pytest.warns(UserWarning, match="'latestFirst' has no effect on a table"):
        known.check(["latestFirst"])


def test_a_version_is_asked_for_as_users_of_delta_do(table: lp.PartitionedTable) -> None:
    first = table.version
    moment = datetime.now(UTC)
    table.add_column(pa.field("late", pa.string()))

    def columns(**options: str) -> list[str]:
        return list(show({"path": table.root, **options})[0].names)

    assert columns() == ["id", "late"]
    assert columns(versionAsOf=str(first)) == columns(versionasof=str(first)) == columns(version=str(first)) == ["id"]
    assert columns(timestampAsOf=(moment + timedelta(days=1)).isoformat()) == ["id", "late"]
    with pytest.raises(InvalidInputError, match="say different things"):
        columns(version="1", versionAsOf="2")
    with pytest.raises(InvalidInputError, match="either the option version"):
        columns(versionAsOf="1", timestamp="2026-01-01")


def test_options_of_streams_are_refused_where_a_batch_is_read(table: lp.PartitionedTable) -> None:
    asked = {"version": table.version, "columns": ["id"], "parallelism": 1, "partitioning": []}
    for key in ("startingVersion", "readChangeFeed", "maxRowsPerTrigger"):
        with pytest.raises(UnsupportedOperationError, match=f"{key} is for streams"):
            answer(Request(id=1, op="scan", body=asked, options={"path": table.root, key: "1"}))


@pytest.mark.parametrize("key", ["transaction", "transactoins", "cyclic_partition", "Transactions"])
def test_a_table_property_that_is_nearly_ours_is_refused(key: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"'{key}'; did you mean '(transactions|cyclic_partitions)'"):
        known.check_properties({key: "weak"})


def test_other_table_properties_are_kept(recwarn: pytest.WarningsRecorder) -> None:
    known.check_properties({"transactions": "weak", "owner": "me", "team": "sales"})
    assert not recwarn.list
    known._warn.cache_clear()
    with pytest.warns(UserWarning, match="no effect"):
        known.check_properties({"write.format.default": "parquet"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('rot = "x"', "no key 'rot'; did you mean 'root'"),
        ("[compact]\ntarget_row = 5", r"\[compact\] of .* no key 'target_row'; did you mean 'target_rows'"),
        ('[expire]\nkind = "BTREE"', r"\[expire\].* no key 'kind'"),
        ("[compcat]\ntarget_rows = 5", "no key 'compcat'; did you mean 'compact'"),
    ],
)
def test_a_key_of_a_jobs_file_that_no_job_has_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "jobs.toml").write_text(text)

    with pytest.raises(typer.BadParameter, match=reason):
        configured(["compact", "--config", str(tmp_path / "jobs.toml")])


def test_keys_of_a_jobs_file_may_have_hyphens(tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text('partition-by = "id"\n[compact]\ntarget-rows = 5\n[storage]\nregion = "x"')

    _, defaults = configured(["compact", "--config", str(tmp_path / "jobs.toml")])

    assert defaults["ingest"]["partition_by"] == "id"
    assert defaults["compact"]["target_rows"] == 5
    assert defaults["compact"]["storage"] == ["region=x"]
