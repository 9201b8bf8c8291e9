"""Two writers stepped through a chosen order: each runs in a thread of its own, and only one of them at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root

BEGUN, ACTED, PLANNED, DONE = "begun", "acted", "planned", "done"
PATIENCE = 60.0


class Gated(Manifest):
    """The real manifest, with a gate at each step of a commit.

    ``begun``: the snapshot to work on was read. ``acted``: all private versions are made, nothing is planned.
    ``planned``: the change was planned on the snapshot to publish from, and is about to be merged.
    """

    def __init__(self, root: Root, gate: Callable[[str], None]) -> None:
        super().__init__(root)
        self._gate = gate

    def snapshot(self, version: int | None = None) -> Any:
        found = super().snapshot(version)
        self._gate(BEGUN)
        return found

    def commit(self, plan: Any, *, start: Any = None) -> Any:
        self._gate(ACTED)
        return super().commit(plan, start=start)

    def publish(self, snapshot: Any, change: Any) -> int:
        self._gate(PLANNED)
        return super().publish(snapshot, change)

    def swap_properties(self, snapshot: Any, values: Any) -> int:
        self._gate(PLANNED)
        return super().swap_properties(snapshot, values)


class Stepper:
    """One writer: it runs up to a gate when it is told to, and waits there."""

    def __init__(self, root: Root, act: Callable[[Manifest], Any]) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self._wanted: str | None = None
        self._arrived, self._go = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(root, act), daemon=True)
        self._started = self._over = False

    def until(self, gate: str) -> Stepper:
        """Go on to a gate, or to the end if it is not met."""
        if self._over:
            return self
        self._wanted = gate
        if self._started:
            self._go.release()
        else:
            self._started = True
            self._thread.start()
        assert self._arrived.acquire(timeout=PATIENCE), f"a writer did not come to {gate!r}"
        return self

    def _stop(self, gate: str) -> None:
        if threading.current_thread() is self._thread and gate == self._wanted:
            self._wanted = None
            self._arrived.release()
            assert self._go.acquire(timeout=PATIENCE)

    def _run(self, root: Root, act: Callable[[Manifest], Any]) -> None:
        try:
            self.result = act(Gated(root, self._stop))
        except BaseException as error:
            self.error = error
        self._over = True
        self._arrived.release()


ORDERS = (BEGUN, ACTED, PLANNED)


def interleave(first: Stepper, second: Stepper, waits_at: str) -> None:
    """Let the first writer commit while the second waits at a gate, and then the second."""
    second.until(waits_at)
    first.until(DONE)
    second.until(DONE)
