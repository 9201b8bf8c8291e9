"""Turns: a large commit that keeps losing against small ones makes them wait.

A writer that lost some attempts sets a property of ``__manifest``, which every writer reads with its first snapshot.
Others then wait, by their own clocks and no longer than the property says, until it is removed. The property of a
writer that died is removed by the first one that waited to the end.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lancepart.errors import LanceNamespaceError
from lancepart.format.names import SPEC_PREFIX, WAITING
from lancepart.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from lancepart.storage.manifest import Manifest

LOST_TRIES = 3
LONGEST_WAIT = 30.0
_ALLOWANCE = 3.0
_LOOK_EVERY = 0.03
_mine = threading.local()


@dataclass
class Turn:
    """One writer's place among the others, from its first try to its end; inside another's it is the same."""

    manifest: Manifest
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    lost: int = 0
    outer: Turn | None = None
    is_waiting: bool = False

    def __enter__(self) -> Turn:
        outer: Turn | None = getattr(_mine, "turn", None)
        self.outer = outer
        if outer is None or outer.manifest.uri != self.manifest.uri:
            _mine.turn = self
            return self
        return outer

    def __exit__(self, *_: object) -> None:
        if getattr(_mine, "turn", None) is not self:
            return
        _mine.turn = self.outer
        if self.is_waiting:
            self._withdraw(self.token)

    def lose(self, seconds: float) -> None:
        """Count a try that took some time and was lost; after a few of them the writer requests that others wait."""
        self.lost += 1
        if self.lost < LOST_TRIES:
            return
        snapshot = self.manifest.snapshot()
        partitioned = any(key.startswith(SPEC_PREFIX) for key in snapshot.properties)
        if partitioned and snapshot.properties.get(WAITING) is None:
            wait = min(LONGEST_WAIT, _ALLOWANCE * (1 + seconds))
            with contextlib.suppress(LanceNamespaceError):
                waiting = json.dumps({"id": self.token, "seconds": round(wait, 1)})
                self.is_waiting = self.manifest.claim_properties({WAITING: waiting}) or self.is_waiting

    def awaited(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot to begin from: this one, or a newer one after another writer's turn."""
        waiting = _waiting(snapshot)
        if waiting is None or waiting[0] == self.token:
            return snapshot
        token, deadline = waiting[0], time.monotonic() + waiting[1]
        while time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY)
            snapshot = self.manifest.snapshot()
            waiting = _waiting(snapshot)
            if waiting is None or waiting[0] != token:
                return snapshot
        self._withdraw(token)
        return self.manifest.snapshot()

    def _withdraw(self, token: str) -> None:
        with contextlib.suppress(LanceNamespaceError):
            waiting = _waiting(self.manifest.snapshot())
            if waiting is not None and waiting[0] == token:
                self.manifest.set_properties({WAITING: None})


def _waiting(snapshot: Snapshot) -> tuple[str, float] | None:
    """The writer that others wait for, and how long."""
    text = snapshot.properties.get(WAITING)
    if text is None:
        return None
    try:
        payload = json.loads(text)
        return str(payload["id"]), min(float(payload["seconds"]), LONGEST_WAIT)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
