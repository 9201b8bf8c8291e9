"""Work of a statement in the planning service, handed to the jar, whose Spark tasks do it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
from pyspark.sql.types import BinaryType, StructField, StructType

from lancepart.maintain.local import LOCAL
from lancepart.read.engine import Executor
from lancepart.spark.answers import read_plan
from lancepart.spark.handing import Hand, taker
from lancepart.spark.results import loads
from lancepart.spark.spread import dealt, done

Item = TypeVar("Item")
Result = TypeVar("Result")
_RESULTS = StructType([StructField("results", BinaryType())])


def executor(parallelism: int) -> Executor:
    """What does the work of a statement: Spark's tasks, or this process where nobody takes work."""
    hand = taker()
    return LOCAL if hand is None else HandingExecutor(hand, parallelism)


class HandingExecutor:
    """Does work in pieces by Spark's tasks; a single piece is not worth a job."""

    is_distributed = True

    def __init__(self, hand: Hand, parallelism: int) -> None:
        self._hand, self._parallelism = hand, parallelism

    def map(
        self, action: Callable[[Item], Result], items: Sequence[Item], what: str, *, progress: bool = True
    ) -> list[Result]:
        """The results for each item, in order."""
        if len(items) < 2:
            return LOCAL.map(action, items, what, progress=progress)
        tasks = [pickle.dumps(each) for each in dealt(action, items, self._parallelism)]
        plan = read_plan((pickle.dumps(Pieces()), tasks), _RESULTS)
        results = self._hand(f"{what}, {len(items)} pieces", plan.function, plan.tasks)
        found = [pair for result in results for pair in loads(result)]
        return [result for _, result in sorted(found, key=lambda pair: pair[0])]


@dataclass(frozen=True, slots=True)
class Pieces:
    """What all tasks have in common: that their results are rows."""

    def rows(self, packed: bytes) -> Iterator[pa.RecordBatch]:
        """The results of one task."""
        yield done(packed)
