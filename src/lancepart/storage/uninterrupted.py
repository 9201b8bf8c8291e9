"""Steps that must complete: Ctrl-C is delivered after them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

Result = TypeVar("Result")

_PATIENCE = 3


def uninterrupted(action: Callable[[], Result], what: str, describe: Callable[[Result], str]) -> Result:
    """Run an action to its end; Ctrl-C raises ``KeyboardInterrupt`` afterwards, with the outcome.

    Lance checks for signals in the main thread, and would stop halfway. Repeated Ctrl-C does not wait: the error then
    says that the outcome is unknown.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        return action()
    pressed = 0

    def hold(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        if pressed >= _PATIENCE:
            raise KeyboardInterrupt(f"it is not known whether it was possible to {what}: look before you do it again")

    outcome = f"could not {what}"
    signal.signal(signal.SIGINT, hold)
    try:
        result = action()
        outcome = describe(result)
        return result
    finally:
        signal.signal(signal.SIGINT, before)
        if 0 < pressed < _PATIENCE:
            try:
                before(signal.SIGINT, None)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(outcome) from None
