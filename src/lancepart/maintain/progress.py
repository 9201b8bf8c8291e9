"""Progress of long work, for people at a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TypeVar

from rich.progress import track as rich_track

Item = TypeVar("Item")

SWITCH = "LANCEPART_PROGRESS"


def track(items: Sequence[Item], what: str, *, show: bool = True) -> Iterator[Item]:
    """The items one by one, with a bar while they take long; the environment can switch it off."""
    if not show or os.environ.get(SWITCH, "").lower() in ("0", "off", "false") or len(items) < 2:
        yield from items
        return
    yield from rich_track(items, description=what, transient=True)
