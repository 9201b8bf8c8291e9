"""Real processes for races: a crew that starts together, and catalogs that die at a chosen step."""

from __future__ import annotations

import os
import random
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from lancepart import DirectoryNamespace
from lancepart.catalog import creating
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from tests.support import dying
from tests.support.catalogs import Place
from tests.support.dying import PATIENCE, Kill

CREW = 8
TORTURE = bool(os.environ.get("LANCEPART_TORTURE"))

_FILES = ("put", "put_new", "delete", "delete_directory", "clone_directory", "_clone")
_MANIFEST = ("publish",)
_WRITES = ("create_dataset", "overwrite_dataset", "overwrite_managed")


def kills(steps: int, seed: str, sample: int) -> list[Kill]:
    """When to kill: at every step in torture, at a few of them otherwise, the same in each run."""
    found = [Kill(step, after) for step in range(steps) for after in (False, True)]
    return found if TORTURE else random.Random(seed).sample(found, min(sample, len(found)))


def rounds(sample: int, torture: int) -> int:
    """How often a race is run: a few times in `make test`, many times in `make torture`."""
    return torture if TORTURE else sample


@dataclass(frozen=True)
class Outcome:
    """What one member of the crew met: a value, or an error with its code."""

    value: Any = None
    error: str | None = None
    code: int | None = None
    message: str = ""

    @property
    def won(self) -> bool:
        return self.error is None


class Crew:
    """Eight processes that run actions at the same moment."""

    def __init__(self, lines: Sequence[Connection]) -> None:
        self._lines = lines

    def race(self, action: Callable[..., Any], *calls: Sequence[Any]) -> list[Outcome]:
        """Give each process one call of an action, all let go by one barrier; idle ones wait with them."""
        return self.meet(*((action, call) for call in calls))

    def everyone(self, action: Callable[..., Any], *arguments: Any) -> list[Outcome]:
        """The same action in all eight, each told its number as the last argument."""
        return self.race(action, *((*arguments, number) for number in range(CREW)))

    def meet(self, *calls: tuple[Callable[..., Any], Sequence[Any]]) -> list[Outcome]:
        """Different actions at the same moment; what each came to, in the order given."""
        assert len(calls) <= CREW
        for line, call in zip(self._lines, [*calls, *[(_idle, ())] * (CREW - len(calls))], strict=True):
            line.send(call)
        outcomes = [self._answer(line) for line in self._lines]
        return outcomes[: len(calls)]

    def _answer(self, line: Connection) -> Outcome:
        if not line.poll(PATIENCE):
            raise TimeoutError(f"a process of the crew did not answer within {PATIENCE:.0f} s")
        return line.recv()


def _idle() -> None:
    """What a process does that has no part in a race."""


def _serve(line: Connection, barrier: Any) -> None:
    while (call := line.recv()) is not None:
        action, arguments = call
        barrier.wait(PATIENCE)
        try:
            outcome = Outcome(value=action(*arguments))
        except BaseException as error:
            code = getattr(error, "code", None)
            outcome = Outcome(
                error=type(error).__name__,
                code=None if code is None else int(code),
                message=str(error) if code is not None else traceback.format_exc(),
            )
        line.send(outcome)


@contextmanager
def hire() -> Iterator[Crew]:
    """Start the crew, and let it go at the end."""
    context = dying.forking()
    barrier = context.Barrier(CREW)
    members, lines = [], []
    for _ in range(CREW):
        ours, theirs = context.Pipe()
        member = context.Process(target=_serve, args=(theirs, barrier), daemon=True)
        member.start()
        theirs.close()
        members.append(member)
        lines.append(ours)
    try:
        yield Crew(lines)
    finally:
        for line in lines:
            line.send(None)
        for member in members:
            member.join(10)
            if member.is_alive():
                member.kill()
                member.join()


Action = Callable[[DirectoryNamespace], Any]


def count_steps(action: Action, place: Place) -> int:
    """Run an action in a child to its end; how many effects it had."""
    return dying.run(_act, (action, place), _effects, None)


def run_and_die(action: Action, place: Place, kill: Kill) -> None:
    """Run an action in a child that kills itself at a step."""
    dying.run(_act, (action, place), _effects, kill)


def _act(action: Action, place: Place) -> None:
    action(place.catalog())


def _effects() -> list[dying.Step]:
    """The real files, the real manifest and the real writes of data."""
    owners = ((Files, _FILES), (Manifest, _MANIFEST), (creating, _WRITES))
    return [(owner, name) for owner, names in owners for name in names]
