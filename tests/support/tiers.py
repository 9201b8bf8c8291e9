"""The tiers of the tests, chosen by markers on them.

A test without a marker is quick and runs in ``make test``. ``slow`` leaves it to ``make test-all``; ``quick`` brings a
test of a slow module, or a slow variant of a test, back into ``make test``. ``long`` leaves it to ``make torture``. Of
the variants of a parametrized test without a marker the first and the last are quick, and the others are slow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

SLOW = pytest.mark.slow


def slow(*values: Any) -> Any:
    """A case of a parametrized test that only ``make test-all`` runs."""
    return pytest.param(*values, marks=SLOW)


def one_in(count: int, cases: Iterable[Any]) -> list[Any]:
    """Cases of which the first of every ``count`` is quick, and the others are slow."""
    return [
        slow(*(case if isinstance(case, tuple) else (case,))) if number % count else case
        for number, case in enumerate(cases)
    ]


def thin(items: Iterable[pytest.Item]) -> None:
    """Leave all but the first and the last variant of each parametrized test to ``make test-all``."""
    variants = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not any(map(item.get_closest_marker, ("slow", "quick", "long"))):
            variants[item.nodeid.partition("[")[0]].append(item)
    for same in variants.values():
        for item in same[1:-1]:
            item.add_marker(SLOW)
