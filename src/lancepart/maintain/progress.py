"""Progress of long work: for people at a terminal, and for callers that watch and may cancel it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO, TypeAlias, TypeVar

from lancepart.model.config import config

Item = TypeVar("Item")
Watcher: TypeAlias = Callable[[str, int, int], None]
"""Called before each step with what is done, how many steps were and how many there are; raises to stop."""

_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Call a function at every step of the long work that is done in this context."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def track(items: Sequence[Item], what: str, *, show: bool = True) -> Iterator[Item]:
    """The items one by one, with a bar on stderr if that is a terminal; ``config.progress`` switches it off."""
    watcher = _WATCHER.get()
    if watcher is not None:
        yield from _watched(items, what, watcher)
        return
    if not show or not config.progress or len(items) < 2 or _is_file(sys.stderr):
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as rich_track

    console = Console(stderr=True)
    yield from rich_track(items, description=what, console=console, transient=True) if console.is_terminal else items


def _is_file(stream: TextIO) -> bool:
    """Whether a stream is certainly no terminal: rich, which knows what else is one, takes long to import."""
    forced = any(name in os.environ for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"))
    return type(stream) is io.TextIOWrapper and not stream.isatty() and not forced


def _watched(items: Sequence[Item], what: str, watcher: Watcher) -> Iterator[Item]:
    for done, item in enumerate(items):
        watcher(what, done, len(items))
        yield item
