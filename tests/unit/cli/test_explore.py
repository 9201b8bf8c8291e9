"""``ui`` as a real process: it says where it is, answers, and ends when it is asked to."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import lancepart as lp


def test_the_explorer_answers_until_it_is_interrupted(table: lp.PartitionedTable) -> None:
    command = [sys.executable, "-m", "lancepart.cli", "ui", table.root, "--port", "0", "--no-open", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        url = json.loads(process.stderr.readline())["url"]
        with urllib.request.urlopen(f"{url}api/table", timeout=20) as answer:
            assert json.loads(answer.read())["rows"] == 22
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
        assert (process.returncode, json.loads(out)["ended"]) == (0, True)
    finally:
        process.kill()
        process.communicate()


def test_what_can_not_be_shown_is_said_in_one_line(
    run: Any, table: lp.PartitionedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "nowhere" in run("ui", "nowhere", "--port", "0", code=3).stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "--port 0" in run("ui", "t", "--port", str(port), code=1).stderr
    assert "leave --host out" in run("ui", "t", "--host", "256.0.0.1", code=1).stderr
    monkeypatch.setenv("LANCEPART_UI_TOKEN", "short")
    assert "at least 16" in run("ui", "t", "--port", "0", code=1).stderr
