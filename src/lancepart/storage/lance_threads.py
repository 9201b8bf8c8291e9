"""The threads on which Lance encodes columns and builds indices, on machines with few cores."""

from __future__ import annotations

import os

VARIABLE = "LANCE_CPU_THREADS"
_RESERVED = 2
"""So many cores Lance leaves to input and output; of a machine without more it uses a single one."""


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_all_cores() -> None:
    """Let Lance encode on all cores of a machine that has no more than it reserves and one; a value given is kept.

    Lance reads the variable when it first encodes something.
    """
    found = cores()
    if 1 < found <= _RESERVED + 1:
        os.environ.setdefault(VARIABLE, str(found))
