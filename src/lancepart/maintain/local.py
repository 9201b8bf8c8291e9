"""Maintenance in this process, one piece after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from lancepart.maintain.progress import track
from lancepart.read.engine import Executor, cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")


class Local:
    """Does work in pieces here, with a progress bar; each piece uses the threads of Lance."""

    is_distributed = False

    def map(
        self, action: Callable[[Item], Result], items: Sequence[Item], what: str, *, progress: bool = True
    ) -> list[Result]:
        """The results for each item, in order."""
        return [action(item) for item in track(items, what, show=progress)]


LOCAL = Local()


def executor_for(spark: SparkSession | None) -> Executor:
    """What does the work for a user who gave a Spark session, or none."""
    return LOCAL if spark is None else cluster().executor(spark)
