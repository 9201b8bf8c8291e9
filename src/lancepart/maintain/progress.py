"""Progress of long work, for people at a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")

SWITCH = "LANCEPART_PROGRESS"


def track(items: Sequence[Item], what: str, *, show: bool = True) -> Iterator[Item]:
    """The items one by one, with a bar on stderr if that is a terminal; the environment can switch it off."""
    if not show or os.environ.get(SWITCH, "").lower() in ("0", "off", "false") or len(items) < 2:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as rich_track

    console = Console(stderr=True)
    yield from rich_track(items, description=what, console=console, transient=True) if console.is_terminal else items
