"""A write that made its table and then failed takes it back, and never what others put there."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

import lancepart as lp
from lancepart.commit import distributed_write, writers
from lancepart.errors import InvalidInputError, LanceNamespaceError, TableNotFoundError
from lancepart.maintain import discard
from lancepart.spark import writing
from lancepart.storage.manifest import Manifest
from tests.support.catalogs import Place

SCHEMA = StructType([StructField("id", LongType()), StructField("k", LongType())])
APPEND, OVERWRITE = writing.without_jar(SCHEMA, False), writing.without_jar(SCHEMA, True)
ROWS = pa.record_batch({"id": [1, 2, 3], "k": [1, 2, 2]})


def options(place: Place, **more: str) -> dict[str, str]:
    return {"path": place.root, "partition_by": "k", **{f"storage.{k}": v for k, v in place.options.items()}, **more}


def opened(place: Place) -> lp.PartitionedTable:
    return lp.open_table(place.root, storage_options=place.options)


def test_a_failed_write_leaves_nothing_of_a_table_that_it_made(place: Place) -> None:
    planned = writing.plan(options(place), SCHEMA, APPEND)
    planned.write([ROWS])

    planned.abort()

    with pytest.raises(TableNotFoundError):
        opened(place)
    assert writing.plan(options(place), SCHEMA, APPEND).write([ROWS])


@pytest.mark.parametrize("partition_by", ["k", ""])
def test_no_file_is_left(local: Place, partition_by: str) -> None:
    planned = writing.plan(options(local, partition_by=partition_by), SCHEMA, APPEND)
    planned.write([ROWS])
    planned.abort()
    assert not Path(local.root).exists()


@pytest.mark.parametrize("partition_by", ["k", ""])
@pytest.mark.parametrize("fails", [False, True])
def test_no_file_is_left_of_a_task_that_writes_after_its_table_was_taken_back(
    local: Place, monkeypatch: pytest.MonkeyPatch, partition_by: str, fails: bool
) -> None:
    planned = writing.plan(options(local, partition_by=partition_by), SCHEMA, APPEND)
    stage, one_at_a_time = distributed_write._staged, threading.Lock()

    def late(*given: Any) -> Any:
        with one_at_a_time:  # each partition is written by a thread, and an abort removes what the others wrote
            planned.abort()
            staged = stage(*given)
            assert list(Path(local.root).rglob("*.lance"))
        if fails:
            raise OSError("the task was cancelled")
        return staged

    monkeypatch.setattr(distributed_write, "_staged", late)
    with pytest.raises(OSError, match="cancelled") if fails else contextlib.nullcontext():
        planned.write([ROWS])
    assert not Path(local.root).exists()


def test_a_task_that_fails_while_its_table_is_removed_reports_its_own_error(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = writing.plan(options(local), SCHEMA, APPEND)
    is_sealed = discard.Manifest.is_sealed

    def before_the_removal(manifest: Any) -> bool:
        sealed = is_sealed(manifest)
        planned.abort()
        return sealed

    def rows() -> Iterator[pa.RecordBatch]:
        yield ROWS
        raise OSError("the task was cancelled")

    monkeypatch.setattr(discard.Manifest, "is_sealed", before_the_removal)
    with pytest.raises(OSError, match="cancelled"):
        planned.write(rows())
    assert not Path(local.root).exists()


def test_a_task_that_fails_while_its_table_is_sealed_reports_its_own_error(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = writing.plan(options(local), SCHEMA, APPEND)
    remove = discard._remove
    late: list[BaseException] = []

    def rows() -> Iterator[pa.RecordBatch]:
        yield ROWS
        raise OSError("the task was cancelled")

    def after_the_task(*given: Any) -> None:
        with pytest.raises(OSError, match="cancelled") as error:
            planned.write(rows())
        late.append(error.value)
        remove(*given)

    monkeypatch.setattr(discard, "_remove", after_the_task)
    planned.abort()
    assert late
    assert not Path(local.root).exists()


def test_a_write_that_takes_long_and_fails_leaves_nothing_of_a_table_that_it_made(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks have entered it in the manifest, so that collectors keep their files."""
    monkeypatch.setattr(writers, "LONG_SECONDS", -1.0)
    planned = writing.plan(options(local), SCHEMA, APPEND)
    planned.write([ROWS])
    assert writers.entered(Manifest(planned.job.root).snapshot())

    planned.abort()

    assert not Path(local.root).exists()


def test_a_write_that_takes_long_and_fails_keeps_no_collector_waiting(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "LONG_SECONDS", -1.0)
    lp.create_table(local.root, pa.schema([("id", pa.int64()), ("k", pa.int64())]), ["k"])
    planned = writing.plan(options(local), SCHEMA, APPEND)
    planned.write([ROWS])

    planned.abort()

    assert writers.entered(Manifest(planned.job.root).snapshot()) == []


def test_what_an_interrupted_removal_left_is_named_and_can_be_dropped(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = writing.plan(options(local), SCHEMA, APPEND)
    planned.write([ROWS])
    with monkeypatch.context() as interrupted:
        interrupted.setattr(discard, "_remove", lambda *given: None)
        planned.abort()

    with pytest.raises(TableNotFoundError, match="drop_table"):
        writing.plan(options(local), SCHEMA, APPEND)
    lp.drop_table(local.root)

    assert not Path(local.root).exists()


def test_a_task_that_ends_late_leaves_a_newer_table_in_the_same_place(local: Place) -> None:
    first = writing.plan(options(local), SCHEMA, APPEND)
    newer: list[Any] = []

    def rows() -> Iterator[pa.RecordBatch]:
        first.abort()
        newer.append(writing.plan(options(local), SCHEMA, APPEND))
        newer.append(newer[0].write([ROWS]))
        yield ROWS

    with contextlib.suppress(LanceNamespaceError):
        first.write(rows())
    assert newer[0].commit([newer[1]])
    assert opened(local).scan().count() == 3
    assert len([each for each in Path(local.root).iterdir() if each.name.endswith("$dataset")]) == 2


def test_files_of_others_in_the_directory_stay(local: Place) -> None:
    planned = writing.plan(options(local), SCHEMA, APPEND)
    (Path(local.root) / "notes.txt").write_text("mine")
    planned.abort()
    assert [each.name for each in Path(local.root).iterdir()] == ["notes.txt"]


def test_what_is_refused_when_it_is_planned_leaves_nothing(local: Place) -> None:
    with pytest.raises(InvalidInputError):
        writing.plan(options(local, replaceWhere="no_such = 1"), SCHEMA, OVERWRITE)
    assert not Path(local.root).exists()


def test_a_table_that_was_there_stays(local: Place) -> None:
    lp.create_table(local.root, pa.schema([("id", pa.int64()), ("k", pa.int64())]), ["k"])
    writing.plan(options(local), SCHEMA, APPEND).abort()
    assert opened(local).scan().count() == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda table: table.append([{"id": 9, "k": 9}]),
        lambda table: table.add_column(pa.field("more", pa.int64())),
        lambda table: table.append([], idempotency_key="once"),
    ],
)
def test_a_table_that_others_used_since_stays(local: Place, use: Any) -> None:
    planned = writing.plan(options(local), SCHEMA, APPEND)
    use(opened(local))
    planned.abort()
    opened(local).append([{"id": 10, "k": 1}])
    assert opened(local).scan("id = 10").count() == 1


def test_another_table_in_its_place_stays(local: Place) -> None:
    first, second = (writing.plan(options(local), SCHEMA, APPEND) for _ in range(2))
    first.abort()
    third = writing.plan(options(local), SCHEMA, APPEND)
    first.abort()
    second.abort()
    assert third.commit([third.write([ROWS])])
    assert opened(local).scan().count() == 3


def test_a_commit_between_looking_and_sealing_keeps_the_table(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = writing.plan(options(local), SCHEMA, APPEND)
    seal = discard.Manifest.seal

    def late(manifest: Any, snapshot: Any) -> None:
        opened(local).append([{"id": 9, "k": 9}])
        seal(manifest, snapshot)

    monkeypatch.setattr(discard.Manifest, "seal", late)
    planned.abort()
    assert opened(local).scan().count() == 1


def test_a_writer_that_comes_after_the_seal_is_refused(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = writing.plan(options(local), SCHEMA, APPEND)
    other = opened(local)
    remove = discard._remove
    refused: list[str] = []

    def late(*given: Any) -> None:
        for write in (other.append, opened_append):
            with pytest.raises(LanceNamespaceError) as error:
                write([{"id": 9, "k": 9}])
            refused.append(str(error.value))
        remove(*given)

    def opened_append(rows: Any) -> None:
        opened(local).append(rows)

    monkeypatch.setattr(discard, "_remove", late)
    planned.abort()
    assert len(refused) == 2
    assert not Path(local.root).exists()
