"""Progress of long work: for people at a terminal, and for whoever watches a piece of work and may stop it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias, TypeVar

Item = TypeVar("Item")
Watcher: TypeAlias = Callable[[str, int, int], None]
"""Called before each step with what is done, how many steps were and how many there are; raises to stop."""

SWITCH = "LANCEPART_PROGRESS"
_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Let a function see every step of the long work that is done in this context."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def track(items: Sequence[Item], what: str, *, show: bool = True) -> Iterator[Item]:
    """The items one by one, with a bar on stderr if that is a terminal; the environment can switch it off."""
    watcher = _WATCHER.get()
    if watcher is not None:
        yield from _watched(items, what, watcher)
        return
    if not show or os.environ.get(SWITCH, "").lower() in ("0", "off", "false") or len(items) < 2:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as rich_track

    console = Console(stderr=True)
    yield from rich_track(items, description=what, console=console, transient=True) if console.is_terminal else items


def _watched(items: Sequence[Item], what: str, watcher: Watcher) -> Iterator[Item]:
    for done, item in enumerate(items):
        watcher(what, done, len(items))
        yield item
