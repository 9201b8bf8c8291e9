"""Maintenance in this process: few pieces one after the other, many of them on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from lancepart.maintain.progress import track
from lancepart.model.config import config
from lancepart.read.engine import Executor, cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MANY = 32
"""So many pieces are small on average: each keeps a thread busy with more than the threads of Lance do."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Local:
    """Does work in pieces here, with a progress bar; each piece uses the threads of Lance."""

    is_distributed = False

    def map(
        self, action: Callable[[Item], Result], items: Sequence[Item], what: str, *, progress: bool = True
    ) -> list[Result]:
        """The results for each item, in order."""
        if len(items) < _MANY:
            return [action(item) for item in track(items, what, show=progress)]
        with ThreadPoolExecutor(config.threads) as pool:
            begun = [pool.submit(action, item) for item in items]
            try:
                return [each.result() for each in track(begun, what, show=progress)]
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


LOCAL = Local()
_EXECUTOR: ContextVar[Executor] = ContextVar("executor", default=LOCAL)


@contextmanager
def using(executor: Executor) -> Iterator[None]:
    """Let an executor do the maintenance of this context that is given no session."""
    token = _EXECUTOR.set(executor)
    try:
        yield
    finally:
        _EXECUTOR.reset(token)


def executor_for(spark: SparkSession | None) -> Executor:
    """The executor for an optional Spark session."""
    return _EXECUTOR.get() if spark is None else cluster().executor(spark)
