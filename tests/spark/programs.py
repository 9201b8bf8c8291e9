"""Programs with a Spark of their own, which can be killed with everything that they started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 600


def start(name: str, *arguments: str, given: str | None = None) -> subprocess.Popen[str]:
    """Run a module of these tests in a process group of its own; a text, if given, is its whole stdin."""
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")])
    program = subprocess.Popen(
        [sys.executable, "-m", f"tests.spark.{name}", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd=root,
        stdin=None if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    if given is not None and program.stdin is not None:
        program.stdin.write(given)
        program.stdin.close()
        program.stdin = None
    return program


def wait(program: subprocess.Popen[str], sign: Callable[[], bool], patience: float = PATIENCE) -> bool:
    """Wait for a sign of a program's, or for its end; whether the sign came."""
    deadline = time.monotonic() + patience
    while not (seen := sign()) and program.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return seen


def kill(program: subprocess.Popen[str]) -> str:
    """End a program and its children with SIGKILL; what it printed."""
    os.killpg(program.pid, signal.SIGKILL)
    return program.communicate(timeout=PATIENCE)[0]


def end_group(program: subprocess.Popen[str]) -> None:
    """End what a program that died by itself has left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
