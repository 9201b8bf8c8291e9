"""Running work in pieces on Spark's executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from lancepart.plan.pack import pack
from lancepart.spark.results import dumps, loads
from lancepart.spark.tasks import task_count

Item = TypeVar("Item")
Result = TypeVar("Result")

_PIECES_A_CORE = 4


class SparkExecutor:
    """Does work in pieces on a session's executors."""

    is_distributed = True

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def map(
        self, action: Callable[[Item], Result], items: Sequence[Item], what: str, *, progress: bool = True
    ) -> list[Result]:
        """The results for each item, in order; Spark shows the progress itself."""
        return spread(self._session, action, items)


def spread(spark: SparkSession, action: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Do something for each item on the executors; the results in the order of the items.

    The action is found by its name there, so that it must be a function of a module.
    """
    if not items:
        return []
    packed = dealt(action, items, task_count(spark))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from lancepart.spark.spread import done

        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield done(packed[number])

    numbers = spark.range(0, len(packed), 1, numPartitions=len(packed))
    rows = numbers.mapInArrow(run, "results binary").collect()
    found = [pair for row in rows for pair in loads(row["results"])]
    return [result for _, result in sorted(found, key=lambda pair: pair[0])]


def dealt(action: Callable[[Item], Result], items: Sequence[Item], parallelism: int) -> list[bytes]:
    """The work of each task: an action, and some of the items with their positions."""
    groups = pack([1] * len(items), _PIECES_A_CORE * parallelism)
    return [pickle.dumps((action, [(at, items[at]) for at in group])) for group in groups if group]


def done(packed: bytes) -> pa.RecordBatch:
    """One task, on the executor that it was sent to."""
    action, items = pickle.loads(packed)
    results = tuple((at, action(item)) for at, item in items)
    return pa.RecordBatch.from_pydict({"results": pa.array([dumps(results)], pa.binary())})
