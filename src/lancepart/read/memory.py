"""The memory limit of a query."""

from __future__ import annotations

import os


def default_memory() -> int:
    """A quarter of the machine's memory: what a join or a sort may hold before it goes through the disk."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (ValueError, OSError, AttributeError):
        return 1 << 30
