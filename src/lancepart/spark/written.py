"""How much the tasks of a write wrote, as they report it: for the metrics in Spark's UI."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lancepart.commit.write_job import WriteResult
from lancepart.errors import InvalidInputError
from lancepart.spark.results import loads
from lancepart.storage.leaf_data import Fragments


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Rows, files and bytes that tasks wrote, and the rows that are removed where they stand."""

    rows: int = 0
    files: int = 0
    bytes: int = 0
    removed: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(
            rows=self.rows + other.rows,
            files=self.files + other.files,
            bytes=self.bytes + other.bytes,
            removed=self.removed + other.removed,
        )


def measured(reports: Iterable[bytes]) -> Written:
    """The sum of what tasks report; a report that only says where rows were put aside counts nothing."""
    return sum(map(_measured, reports), Written())


def _measured(report: bytes) -> Written:
    try:
        return _of(loads(report))
    except InvalidInputError:
        return Written()


def _of(report: object) -> Written:
    match report:
        case WriteResult(parts=parts, gone=gone):
            staged = sum((_of(part.staged.fragments) for part in parts), Written())
            return staged + Written(removed=sum(map(len, gone.values())))
        case Fragments():
            return Written(rows=report.rows, files=len(report.items), bytes=report.bytes)
        case (staged, dict(gone)):
            return _of(staged) + Written(removed=sum(map(len, gone.values())))
        case _:
            return Written()
