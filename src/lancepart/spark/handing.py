"""Where the work of a statement goes while it runs: to the process that takes it in this context, if one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Hand: TypeAlias = Callable[[str, bytes, Sequence[bytes]], Sequence[bytes]]
"""Hands over what the work is, a function of Spark's workers and its argument for each task; waits for the results."""

_HAND: ContextVar[Hand | None] = ContextVar("hand", default=None)


@contextmanager
def handing(hand: Hand) -> Iterator[None]:
    """Hand the work of the statements that run in this context over."""
    token = _HAND.set(hand)
    try:
        yield
    finally:
        _HAND.reset(token)


def taker() -> Hand | None:
    """What takes the work of this context, if anything does."""
    return _HAND.get()
