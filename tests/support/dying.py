"""Children that count the steps of what they do, and kill themselves at a chosen one."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

PATIENCE = 300.0

Step = tuple[Any, str]


@dataclass(frozen=True)
class Kill:
    """When a child dies: at its ``step``-th effect, before it or after it."""

    step: int
    after: bool


def forking() -> Any:
    """Processes of their own that need not import everything anew: they are forked from one that never did a thing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lancepart", "tests.support.catalogs"])
    return context


def run(
    action: Callable[..., Any], arguments: tuple[Any, ...], steps: Callable[[], Iterable[Step]], kill: Kill | None
) -> int:
    """Do something in a child, to its end or to where it kills itself; how many of the steps it took.

    How many there are depends a little on the clock, so that a child may come to its end before the chosen one.
    ``steps`` tells the child which functions are steps, each by what it is an attribute of and its name.
    """
    context = forking()
    ours, theirs = context.Pipe()
    child = context.Process(target=_live, args=(action, arguments, steps, kill, theirs), daemon=True)
    child.start()
    theirs.close()
    child.join(PATIENCE)
    if child.exitcode is None:
        child.kill()
        child.join()
        raise TimeoutError("the child neither died nor came to its end")
    if kill is not None and child.exitcode == -signal.SIGKILL:
        return 0
    assert child.exitcode == 0, f"the child ended with {child.exitcode}"
    taken = int(ours.recv())
    assert kill is None or taken <= kill.step, f"the child took {taken} steps, and did not die at {kill}"
    return taken


def _live(
    action: Callable[..., Any],
    arguments: tuple[Any, ...],
    steps: Callable[[], Iterable[Step]],
    kill: Kill | None,
    line: Connection,
) -> None:
    done = arm(steps(), kill)
    action(*arguments)
    line.send(done[0])


def arm(steps: Iterable[Step], kill: Kill | None) -> list[int]:
    """Count each step of the real functions in this process, and die at the chosen one."""
    done = [0]

    def wrapped(effect: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **options: Any) -> Any:
            due = kill is not None and kill.step == done[0]
            done[0] += 1
            if due and not kill.after:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return effect(*given, **options)
            finally:
                if due:
                    os.kill(os.getpid(), signal.SIGKILL)

        return call

    for owner, name in steps:
        setattr(owner, name, wrapped(getattr(owner, name)))
    return done
