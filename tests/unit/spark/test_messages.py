"""What users see of Spark's Python workers."""

from __future__ import annotations

import io
import os
import socket
import sys
from types import ModuleType

import pytest
from pyspark import daemon
from pyspark.util import handle_worker_exception

from lancepart.errors import TableNotFoundError
from pyspark_lancepart.messages import hush, plainly


def shown(error: Exception, monkeypatch: pytest.MonkeyPatch) -> str:
    """What Spark is told of an error that a worker meets."""
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")
    out = io.BytesIO()
    try:
        with plainly():
            raise error
    except Exception as caught:
        handle_worker_exception(caught, out)
    return out.getvalue()[8:].decode()


def test_an_error_that_says_what_to_do_has_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    told = shown(TableNotFoundError("there is no table at 'x': make one"), monkeypatch)
    assert told == "lance_namespace.errors.TableNotFoundError: there is no table at 'x': make one\n"


def test_any_other_error_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Traceback (most recent call last)" in shown(ZeroDivisionError("a bug"), monkeypatch)
    assert not os.environ["SPARK_HIDE_TRACEBACK"]


@pytest.mark.parametrize("kill", ["", "1"])
def test_a_worker_whose_connection_was_closed_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kill: str
) -> None:
    """As when Spark stops a worker that was idle: it reads nothing, fails to say so, and fails to flush that."""
    monkeypatch.setenv("PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE", kill)
    monkeypatch.setattr(sys, "argv", ["daemon"])
    monkeypatch.setattr("signal.signal", lambda *given: None)
    copy = ModuleType("copy")
    source = daemon.__spec__.loader.get_source("pyspark.daemon")  # type: ignore[union-attr,attr-defined]
    exec(compile(source, "daemon.py", "exec"), copy.__dict__)
    hush(copy)

    here, there = socket.socketpair()
    there.close()
    code = copy.__dict__["worker"](here, True)

    assert code != 0
    assert capsys.readouterr().err == ""
