"""The plan of a scan or a join on Spark: what all of its tasks share, and the tasks.

Plain values, without what planned them, so that workers import little. The driver pickles them for its executors;
plans that users' options carry are JSON (``plan_json``).
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lancepart.layout.metadata import TableMetadata
from lancepart.model.aliases import JsonMapping
from lancepart.model.predicate import Predicate
from lancepart.read.leaf import LeafTask
from lancepart.read.pieces import Piece
from lancepart.storage.root import Root

if TYPE_CHECKING:
    from lancepart.read.group import GroupTask, JoinQuery
    from lancepart.spark.partial_aggregates import PartialAggregates

Group = tuple[tuple[Piece, ...], tuple[Piece, ...]]
"""Leaves of the left and of the right table that are joined."""
Pickled = tuple[bytes, list[bytes]]
"""A plan, and its tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTask:
    """What one task reads: leaves of a scan, or groups of a join."""

    pieces: tuple[Piece, ...] = ()
    groups: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRead:
    """A table that is read: what is the same for all of its leaves.

    ``version`` is the snapshot that they are of, where a worker may look up what it records of them.
    """

    root: Root
    metadata: TableMetadata
    columns: tuple[str, ...]
    predicate: Predicate | None = None
    version: int | None = None

    def task(self, piece: Piece, limit: int | None = None) -> LeafTask:
        """What is to be read of one piece."""
        return LeafTask(
            root=self.root,
            metadata=self.metadata,
            leaf=piece.leaf,
            columns=self.columns,
            predicate=self.predicate,
            limit=limit,
            fragments=piece.fragments,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkScan:
    """A scan: rows of a table, or one row of aggregates a task; ``counted`` is their number where it is known.

    With ``partial`` its tasks aggregate their rows by groups, as far as Spark does before it shuffles.
    """

    side: TableRead
    limit: int | None = None
    aggregates: tuple[JsonMapping, ...] = ()
    counted: int | None = None
    row_identity: bool = False
    partial: PartialAggregates | None = None

    def narrowed(self, columns: Sequence[str]) -> SparkScan:
        """The same scan of some columns."""
        return replace(self, side=replace(self.side, columns=tuple(columns)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkJoin:
    """A join of two tables, group by group."""

    left: TableRead
    right: TableRead
    query: JoinQuery
    memory: int | None = None

    def narrowed(self, columns: Sequence[str]) -> SparkJoin:
        """The same join with some columns of its result."""
        return replace(self, query=replace(self.query, shown=tuple(columns)))

    def task(self, group: Group) -> GroupTask:
        """What is to be done for one group."""
        from lancepart.read.group import GroupTask

        left, right = (tuple(map(side.task, own)) for side, own in zip((self.left, self.right), group, strict=True))
        return GroupTask(left=left, right=right, query=self.query)


SparkPlan = SparkScan | SparkJoin


def pickled(plan: SparkPlan, tasks: Sequence[SparkTask]) -> Pickled:
    """A plan as Spark carries it to the executors."""
    return pickle.dumps(plan), [pickle.dumps(task) for task in tasks]
