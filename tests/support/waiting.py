"""Waiting for a condition instead of a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(true: Callable[[], Found]) -> Found:
    """Wait for a condition, and give what it found."""
    limit = time.monotonic() + 60
    while not (found := true()):
        assert time.monotonic() < limit
        time.sleep(0.02)
    return found
