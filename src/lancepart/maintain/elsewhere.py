"""Where the pieces of upkeep are done: here one by one, or on Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeVar

from lancepart.maintain.progress import track

Item = TypeVar("Item")
Result = TypeVar("Result")


def over(
    spark: Any, action: Callable[[Item], Result], items: Sequence[Item], what: str, *, progress: bool = True
) -> list[Result]:
    """Do something for each item, in order; on Spark's executors if there is a session.

    Their room is imported by name, so that upkeep does not depend on it.
    """
    if spark is None:
        return [action(item) for item in track(items, what, show=progress)]
    found: list[Result] = import_module("lancepart.spark.spread").spread(spark, action, items)
    return found
