"""Work of statements that Spark's tasks do: handed over by the service, and gone on with when its results are there."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.maintain.local import LOCAL, executor_for, using
from lancepart.spark import handed_work
from lancepart.spark.catalog_messages import CallReply, CallRequest, CreateRequest
from lancepart.spark.handing import handing
from lancepart.spark.protocol import Failure, Work, Worked
from lancepart.spark.service import WorkFailedError
from lancepart.spark.statements import respond
from lancepart.spark.types import spark_schema
from tests.unit.spark.test_service import Process

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int64())])


def square(number: int) -> int:
    return number * number


def done_here(function: bytes, task: bytes) -> bytes:
    """What a Python worker of Spark's does with a task."""
    run, _ = pickle.loads(function)
    (batch,) = run(iter([pa.record_batch([pa.array([task], pa.binary())], names=["task"])]))
    return batch.column(0)[0].as_py()


class Worker:
    """Does what is handed over, last task first, and remembers it."""

    def __init__(self) -> None:
        self.handed: list[tuple[str, int]] = []

    def __call__(self, what: str, function: bytes, tasks: Sequence[bytes]) -> Sequence[bytes]:
        self.handed.append((what, len(tasks)))
        return [done_here(function, task) for task in reversed(tasks)]


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    """A table of a warehouse, with three leaves of two fragments."""
    options = {"warehouse": str(tmp_path)}
    schema = spark_schema(SCHEMA).jsonValue()
    respond(options, "create", CreateRequest(id=("t",), mode="create", schema=schema, by=("k",), properties={}))
    made = lp.open_table(tmp_path, namespace=["t"])
    for _ in range(2):
        made.append([{"id": n, "k": n % 3} for n in range(6)])
    return made


def request_of(name: str, **arguments: Any) -> CallRequest:
    return CallRequest(procedure=name, catalog="lance", arguments={"table": "t", **arguments}, parallelism=2)


def test_results_come_in_the_order_of_the_items() -> None:
    worker = Worker()
    with handing(worker):
        executor = handed_work.executor(1)
    assert executor.map(square, list(range(10)), "squaring") == [n * n for n in range(10)]
    assert executor.map(square, [3], "squaring") == [9]
    assert worker.handed == [("squaring, 10 pieces", 4)]
    assert handed_work.executor(1) is LOCAL
    with using(executor):
        assert executor_for(None) is executor
    assert executor_for(None) is LOCAL


def test_a_call_is_done_by_tasks_and_published_in_one_commit(table: lp.PartitionedTable, tmp_path: Path) -> None:
    worker, before = Worker(), table.inspect.snapshots().num_rows
    with handing(worker):
        reply = respond({"warehouse": str(tmp_path)}, "call", request_of("compact", target_rows=100))
    assert isinstance(reply, CallReply)
    assert reply.rows[0][:2] == (3, ())
    assert worker.handed == [("compact on Spark, 3 pieces", 3)]
    assert table.inspect.snapshots().num_rows == before + 1
    assert table.scan().count() == 12


def test_a_call_whose_work_fails_changes_nothing(table: lp.PartitionedTable, tmp_path: Path) -> None:
    def fail(what: str, function: bytes, tasks: Sequence[bytes]) -> Sequence[bytes]:
        raise WorkFailedError("the job was cancelled")

    before = table.version
    with handing(fail), pytest.raises(WorkFailedError, match="compact: the job was cancelled"):
        respond({"warehouse": str(tmp_path)}, "call", request_of("compact", target_rows=100))
    assert lp.open_table(table.root).version == before


@pytest.mark.slow
def test_the_service_hands_work_to_the_jar(table: lp.PartitionedTable, tmp_path: Path) -> None:
    service = Process()
    try:
        body = request_of("compact", target_rows=100).to_json()
        first = service.ask("call", body, warehouse=str(tmp_path))
        assert isinstance(first, Work)
        service.send(Worked(id=first.id, error="it was cancelled"))
        failed = service.receive()
        assert isinstance(failed, Failure)
        assert "3 pieces: it was cancelled" in failed.message
        work = service.ask("call", body, warehouse=str(tmp_path))
        assert isinstance(work, Work)
        service.send(Worked(id=work.id, results=tuple(done_here(work.function, task) for task in work.tasks)))
        assert not isinstance(service.receive(), Failure)
    finally:
        service.process.kill()
        service.process.communicate()
    assert table.inspect.fragments().num_rows == 3
