"""The planning service as the jar meets it: a process that is spoken to over its pipes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.maintain.progress import track, watching
from lancepart.spark import protocol, warm
from lancepart.spark.answers import answer
from lancepart.spark.protocol import Cancel, Envelope, Failure, Hello, Progress, Reply, Request
from lancepart.spark.service import CancelledError, Service
from lancepart.storage.manifest import Manifest

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int64())])


def framed(message: Envelope) -> bytes:
    """A message as it goes over a pipe."""
    body = json.dumps(protocol.dump(message)).encode()
    return struct.pack(">I", len(body)) + body


class Process:
    """A service in a process of its own."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", "-m", "lancepart.spark.service"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        hello = self.receive()
        assert isinstance(hello, Hello)
        assert hello.protocol == protocol.VERSION

    def send(self, message: Envelope) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(framed(message))
        self.process.stdin.flush()

    def receive(self) -> Envelope:
        assert self.process.stdout is not None
        (size,) = struct.unpack(">I", self.process.stdout.read(4))
        return protocol.parse(json.loads(self.process.stdout.read(size)))

    def ask(self, op: str, body: dict[str, Any] | None = None, **options: str) -> Envelope:
        self.send(Request(id=1, op=op, body=body or {}, options=options))
        return self.receive()


@pytest.fixture(scope="module")
def service() -> Iterator[Process]:
    found = Process()
    yield found
    found.process.kill()
    found.process.communicate()


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "t", SCHEMA, ["k"])
    made.append([{"id": n, "k": n % 4} for n in range(8)])
    return made


def body_of(reply: Envelope) -> Any:
    assert isinstance(reply, Reply), reply
    return reply.body


def test_a_new_query_sees_the_newest_snapshot(service: Process, table: lp.PartitionedTable) -> None:
    first = body_of(service.ask("table", path=table.root))["table"]["version"]
    table.append([{"id": 9, "k": 1}])
    second = body_of(service.ask("table", path=table.root))["table"]["version"]

    asked = {"columns": ["id"], "parallelism": 2}
    rows = [
        body_of(service.ask("scan", {**asked, "version": each}, path=table.root))["rows"] for each in (first, second)
    ]
    assert (first, second) == (first, table.version)
    assert rows == [8, 9]


def test_a_refusal_names_its_class_and_code(service: Process, tmp_path: Path) -> None:
    reply = service.ask("table", path=str(tmp_path / "none"))

    assert isinstance(reply, Failure)
    assert (reply.error, reply.code) == ("TableNotFoundError", 4)
    assert "no partitioned table" in reply.message


def test_what_is_no_operation_is_refused_and_the_service_goes_on(service: Process, table: lp.PartitionedTable) -> None:
    unknown = service.ask("remove_everything", path=table.root)
    assert isinstance(unknown, Failure)
    assert "no operation" in unknown.message
    wrong = service.ask("scan", {"version": "1"}, path=table.root)
    assert isinstance(wrong, Failure)
    assert body_of(service.ask("exists", path=table.root)) == {"exists": True}


@pytest.mark.slow
def test_the_end_of_its_pipe_ends_it() -> None:
    found = Process()
    assert found.process.stdin is not None
    found.process.stdin.close()

    assert found.process.wait(timeout=60) == 0
    assert found.process.stderr is not None
    assert found.process.stderr.read() == b""


class Pipe:
    """Messages that a service sends, kept."""

    def __init__(self) -> None:
        self.sent: list[Envelope] = []
        self._changed = threading.Condition()

    def write(self, data: bytes) -> int:
        with self._changed:
            self.sent.append(protocol.parse(json.loads(data[4:])))
            self._changed.notify_all()
        return len(data)

    def wait_for(self, kind: type[Envelope], count: int) -> list[Envelope]:
        """The messages of a kind, when there are so many."""

        def found() -> list[Envelope]:
            return [each for each in self.sent if isinstance(each, kind)]

        with self._changed:
            assert self._changed.wait_for(lambda: len(found()) >= count, 60)
            return found()

    def flush(self) -> None:
        pass


def test_a_running_call_is_cancelled_between_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, done, service = Pipe(), [], Service(None, None)  # type: ignore[arg-type]
    service._target = pipe  # type: ignore[assignment]
    service._running[5] = threading.Event()

    def work(request: Request) -> protocol.Message:
        for step in track(range(4), "compacting"):
            done.append(step)
            if step == 1:
                service._running[5].set()
        raise AssertionError("was not cancelled")

    monkeypatch.setattr("lancepart.spark.answers.answer", work)
    service._answer(Request(id=5, op="call"))

    assert done == [0, 1]
    progress = [each for each in pipe.sent if isinstance(each, Progress)]
    assert [(each.what, each.done, each.total) for each in progress] == [("compacting", 0, 4), ("compacting", 1, 4)]
    (failure,) = [each for each in pipe.sent if isinstance(each, Failure)]
    assert failure.error == "CancelledError"
    assert "cancelled after 2 of 4" in failure.message


def test_queries_are_planned_beside_any_number_of_long_statements(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements, end = 40, threading.Event()
    began = threading.Barrier(statements + 1)
    sent, target = os.pipe(), Pipe()

    def work(request: Request) -> protocol.Message:
        if request.op != "call":
            return answer(request)
        began.wait(60)
        end.wait(60)
        raise CancelledError("ended")

    monkeypatch.setattr("lancepart.spark.answers.answer", work)
    with os.fdopen(sent[0], "rb") as source, os.fdopen(sent[1], "wb") as jar:
        thread = threading.Thread(target=Service(source, target).serve)  # type: ignore[arg-type]
        thread.start()
        for number in range(1, statements + 1):
            jar.write(framed(Request(id=number, op="call")))
        jar.flush()
        began.wait(60)
        jar.write(framed(Request(id=99, op="table", options={"path": table.root})))
        jar.flush()
        (planned,) = target.wait_for(Reply, 1)
        end.set()
        target.wait_for(Failure, statements)
        jar.close()
        thread.join(60)

    assert isinstance(planned, Reply)
    assert planned.id == 99


class PanicError(BaseException):
    """What a panic in native code is to Python: no Exception."""


def panic(request: Request) -> protocol.Message:
    raise PanicError("unaligned")


def not_json(request: Request) -> Any:
    return type("Answer", (), {"to_json": lambda self: {"value": float("nan")}})()


@pytest.mark.parametrize("work", [panic, not_json])
def test_every_request_is_answered(monkeypatch: pytest.MonkeyPatch, work: Any) -> None:
    pipe, service = Pipe(), Service(None, None)  # type: ignore[arg-type]
    service._target = pipe  # type: ignore[assignment]
    service._running[5] = threading.Event()
    monkeypatch.setattr("lancepart.spark.answers.answer", work)

    service._answer(Request(id=5, op="commit"))

    (failure,) = pipe.sent
    assert isinstance(failure, Failure)
    assert "it is not known whether 'commit' took effect" in failure.message
    assert service._running == {}


def test_a_request_that_was_cancelled_before_it_began_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, service = Pipe(), Service(None, None)  # type: ignore[arg-type]
    service._target = pipe  # type: ignore[assignment]
    service._running[5] = threading.Event()
    service._running[5].set()
    monkeypatch.setattr("lancepart.spark.answers.answer", panic)

    service._answer(Request(id=5, op="delete"))

    (failure,) = pipe.sent
    assert isinstance(failure, Failure)
    assert "cancelled before it began; nothing was changed" in failure.message


def test_an_interrupt_of_the_terminal_is_left_to_the_driver(service: Process, table: lp.PartitionedTable) -> None:
    service.process.send_signal(signal.SIGINT)

    assert body_of(service.ask("exists", path=table.root)) == {"exists": True}


def test_work_that_is_watched_shows_each_step_and_may_be_stopped() -> None:
    seen = []

    def watch(what: str, done: int, total: int) -> None:
        seen.append((what, done, total))
        if done == 1:
            raise CancelledError("enough")

    with watching(watch), pytest.raises(CancelledError):
        list(track([1, 2, 3], "work"))
    assert seen == [("work", 0, 3), ("work", 1, 3)]
    assert list(track([1, 2, 3], "work", show=False)) == [1, 2, 3]


def test_a_cancel_of_what_is_done_is_passed_over(service: Process, table: lp.PartitionedTable) -> None:
    assert body_of(service.ask("exists", path=table.root)) == {"exists": True}
    service.send(Cancel(id=1))
    assert body_of(service.ask("exists", path=table.root)) == {"exists": True}


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "_KEPT", warm._Kept())
    warm.keep(8)


@pytest.mark.usefixtures("kept")
def test_a_query_opens_its_table_once(table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int | None] = []
    real = Manifest._open

    def counted(self: Manifest, version: int | None = None) -> Any:
        opened.append(version)
        return real(self, version)

    monkeypatch.setattr(Manifest, "_open", counted)
    options = {"path": table.root}
    found = answer(Request(id=1, op="table", options=options)).to_json()["table"]["version"]
    looked_up = len(opened)
    for _ in range(3):
        answer(Request(id=1, op="scan", options=options, body={"version": found, "columns": ["id"]}))

    assert looked_up == 1
    assert len(opened) == looked_up
    answer(Request(id=1, op="table", options=options))
    assert len(opened) == looked_up + 1


@pytest.mark.usefixtures("kept")
def test_a_kept_table_is_kept_for_its_options_alone(table: lp.PartitionedTable) -> None:
    first = warm.fresh(table.root, None, {})

    assert warm.fresh(table.root, None, {}) is first
    assert warm.pinned(table.root, first.version, {}) is first
    assert warm.pinned(table.root, first.version, {"account_key": "other"}) is not first
    table.append([{"id": 9, "k": 1}])
    assert warm.fresh(table.root, None, {}).version == table.version
    assert warm.fresh(table.root, first.version, {}) is first


@pytest.mark.usefixtures("kept")
def test_a_snapshot_whose_number_came_again_is_another(table: lp.PartitionedTable) -> None:
    table.append([{"id": 8, "k": 0}])
    first = warm.fresh(table.root, None, {})
    newest = min((Path(table.root) / "__manifest/_versions").glob("1*.manifest"))
    newest.rename(Path(table.root).parent / "damaged")

    lp.open_table(table.root).append([{"id": 9, "k": 0}])
    found = warm.fresh(table.root, None, {})

    assert found.version == first.version
    assert sorted(found.scan("id > 7").to_arrow()["id"].to_pylist()) == [9]


@pytest.mark.usefixtures("kept")
def test_a_table_that_was_made_again_is_another(table: lp.PartitionedTable) -> None:
    first = warm.fresh(table.root, None, {})
    shutil.rmtree(table.root)
    again = lp.create_table(table.root, SCHEMA, ["k"])
    again.append([{"id": 1, "k": 1}])

    found = warm.fresh(table.root, None, {})
    assert (found.version, found.scan().count()) == (first.version, 1)
    assert warm.pinned(table.root, first.version, {}).scan().count() == 1
