"""A lazy join of two tables, one group of leaves at a time: planned on first use, run on threads."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypedDict

import pyarrow as pa

from lancepart.errors import InvalidInputError, TableColumnNotFoundError, UnsupportedOperationError
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.config import config
from lancepart.model.join_keys import common_type
from lancepart.model.parameters import Parameters
from lancepart.model.parse import parse
from lancepart.model.predicate import Filter, Predicate
from lancepart.model.public import public
from lancepart.model.suggest import near
from lancepart.model.where import Where, as_sql
from lancepart.plan import join_planner as joins
from lancepart.plan.join_compatibility import JoinKey
from lancepart.plan.join_planner import JoinPlan, JoinSide
from lancepart.plan.output import Column, Filters, chosen, kind_of_join, result_columns, schema_of, split
from lancepart.read.engine import cluster
from lancepart.read.group import LEAST_MEMORY, GroupTask, JoinQuery, join_group
from lancepart.read.leaf import LeafTask
from lancepart.read.memory import default_memory
from lancepart.read.prefetch import as_they_come
from lancepart.read.result import Result
from lancepart.read.scan import Scan
from lancepart.read.split import split_groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

On = Sequence[str | tuple[str, str]]


class JoinOptions(TypedDict, total=False):
    """The options of a join besides its keys, kind, filter and columns."""

    suffix: str
    memory: int | None
    params: Parameters | None


@public("explain", "how", "plan", "to_spark")
@dataclass(frozen=True, kw_only=True)
class Join(Result):
    """Rows of two tables that belong together, each table at the snapshot it had when the join was made."""

    left: Scan
    right: Scan
    keys: tuple[JoinKey, ...]
    how: str
    """The kind of join, such as ``"inner"``."""
    where: Filter | None
    all_columns: tuple[Column, ...]
    columns: tuple[Column, ...]
    memory: int | None

    @classmethod
    def of(
        cls,
        left: Scan,
        right: Scan,
        on: On,
        how: str,
        where: Where,
        columns: Sequence[str] | None,
        *,
        suffix: str = "_right",
        memory: int | None = None,
        params: Parameters | None = None,
    ) -> Join:
        """Check the arguments and that the partitionings allow it; no leaf is opened yet."""
        kind = kind_of_join(how)
        keys = join_keys(on, left.metadata, right.metadata)
        found = result_columns(left.metadata.plain_schema, right.metadata.plain_schema, keys, kind, suffix)
        if memory is not None and (isinstance(memory, bool) or not isinstance(memory, int) or memory < 1):
            raise InvalidInputError(f"memory is {memory!r}: give a number of bytes")
        join = cls(
            left=left,
            right=right,
            keys=keys,
            how=kind,
            where=as_sql(where, schema_of(found), params),
            all_columns=found,
            columns=chosen(found, columns),
            memory=memory,
        )
        _ = join.plan()
        return join

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return schema_of(self.columns)

    @cached_property
    def predicate(self) -> Predicate | None:
        """The filter over all columns of the result, as a tree."""
        return parse(self.where, schema_of(self.all_columns)) if isinstance(self.where, str) else self.where

    @cached_property
    def _filters(self) -> Filters:
        schemas = self.left.metadata.plain_schema, self.right.metadata.plain_schema
        return split(self.predicate, self.all_columns, self.keys, self.how, *schemas)

    @cached_property
    def _plan(self) -> JoinPlan:
        left = _side("left", self.left, tuple(key.left for key in self.keys), self._filters.left)
        right = _side("right", self.right, tuple(key.right for key in self.keys), self._filters.right)
        return joins.plan(left, right, self.keys, self.how)

    def plan(self) -> JoinPlan:
        """Which leaves are joined with which, and why."""
        return self._plan

    def explain(self) -> str:
        """The plan in words."""
        filters = self._filters
        pushed = [("left", filters.left), ("right", filters.right), ("joined", filters.result)]
        lines = [f"filter on the {name} rows: {part.to_sql()}" for name, part in pushed if part is not None]
        return "\n".join([self._plan.explain(), *(["", *lines] if lines else [])])

    def tasks(self) -> list[GroupTask]:
        """The tasks, a group each, the largest first."""
        query, left, right = self.makers()
        groups = sorted(self._plan.groups, key=lambda group: -group.bytes)
        return [
            GroupTask(left=tuple(map(left, group.left)), right=tuple(map(right, group.right)), query=query)
            for group in groups
        ]

    def makers(self) -> tuple[JoinQuery, LeafTaskMaker, LeafTaskMaker]:
        """How groups are joined, and what makes tasks of the leaves of either side."""
        query = self._query()
        left = LeafTaskMaker(self.left, tuple(query.left.names), self._filters.left)
        right = LeafTaskMaker(self.right, tuple(query.right.names), self._filters.right)
        return query, left, right

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, in no order; few batches are held at a time."""
        tasks = split_groups(self.tasks(), config.threads)
        threads = max(1, min(config.threads, len(tasks)))
        memory = max(LEAST_MEMORY, (self.memory or default_memory()) // threads)
        yield from as_they_come(tasks, partial(join_group, memory=memory), threads)

    def to_spark(self, spark: SparkSession, *, tasks: int | None = None) -> DataFrame:
        """The rows as a Spark DataFrame, joined by the executors in about as many tasks as there are cores."""
        if self._plan.disagreement is not None:
            raise UnsupportedOperationError(f"{self._plan.disagreement}. On Spark, join the DataFrames of both instead")
        return cluster(spark).join(self, spark, tasks)

    def _query(self) -> JoinQuery:
        """The columns that are needed of either side, and how they are joined."""
        filters = self._filters
        named = {column.name for column in self.columns}
        named |= filters.result.columns() if filters.result is not None else set()
        needed = tuple(column for column in self.all_columns if column.name in named)
        left = {key.left for key in self.keys} | {column.left for column in needed}
        right = {key.right for key in self.keys} | {column.right for column in needed}
        return JoinQuery(
            how=self.how,
            keys=self.keys,
            left=_only(self.left, left),
            right=_only(self.right, right),
            needed=needed,
            shown=tuple(column.name for column in self.columns),
            where=filters.result,
        )

    def __repr__(self) -> str:
        pairs = [key.left if key.left == key.right else (key.left, key.right) for key in self.keys]
        sql = self.where.to_sql() if isinstance(self.where, Predicate) else self.where
        where = "" if sql is None else f", where={sql!r}"
        return f"Join({self.left.root.uri!r}, {self.right.root.uri!r}, on={pairs!r}, how={self.how!r}{where})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"


@dataclass(frozen=True, slots=True)
class LeafTaskMaker:
    """Makes a task of a leaf of one side."""

    scan: Scan
    columns: tuple[str, ...]
    predicate: Predicate | None

    def __call__(self, leaf: Leaf) -> LeafTask:
        """The columns and rows of one leaf that the join needs."""
        return LeafTask(
            root=self.scan.root,
            metadata=self.scan.metadata,
            leaf=leaf,
            columns=self.columns,
            predicate=self.predicate,
        )


def join_keys(on: On, left: TableMetadata, right: TableMetadata) -> tuple[JoinKey, ...]:
    """The pairs of columns that must be equal; those that can't be compared without loss are refused."""
    if isinstance(on, str) or not hasattr(on, "__len__") or not len(on):
        raise InvalidInputError(f"on is {on!r}: give a list of column names, or of pairs (left, right)")
    keys = []
    for item in on:
        names = (item, item) if isinstance(item, str) else tuple(item)
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            raise InvalidInputError(f"on has {item!r}: give a column's name, or a pair (left, right)")
        types = [
            _type_of(name, side, table)
            for name, side, table in zip(names, ("left", "right"), (left, right), strict=True)
        ]
        compared = common_type(*types)
        if compared is None:
            raise InvalidInputError(
                f"left column {names[0]!r} is {types[0]} and right column {names[1]!r} is {types[1]}: "
                "they have no common type that keeps all values of both"
            )
        keys.append(JoinKey(left=names[0], right=names[1], left_type=types[0], right_type=types[1], compared=compared))
    for side in ("left", "right"):
        own = [getattr(key, side) for key in keys]
        if len(set(own)) != len(own):
            raise InvalidInputError(f"on names a {side} column twice: name each once")
    return tuple(keys)


def key_types(on: On, schema: pa.Schema) -> dict[str, pa.DataType]:
    """The types that a table has for the keys of the rows it is joined with, by their names there."""
    pairs = [
        (item, item) if isinstance(item, str) else tuple(item)
        for item in ([] if isinstance(on, str) or on is None else on)
    ]
    return {pair[1]: schema.field(pair[0]).type for pair in pairs if len(pair) == 2 and pair[0] in schema.names}


def _type_of(name: str, side: str, metadata: TableMetadata) -> pa.DataType:
    schema = metadata.plain_schema
    if name not in schema.names:
        raise TableColumnNotFoundError(
            f"the {side} table has no column {name!r}: it has {', '.join(schema.names)}{near(name, schema.names)}"
        )
    return schema.field(name).type


def _side(name: str, scan: Scan, columns: tuple[str, ...], predicate: Predicate | None) -> JoinSide:
    return JoinSide(name=name, snapshot=scan.snapshot, metadata=scan.metadata, columns=columns, predicate=predicate)


def _only(scan: Scan, names: set[str | None]) -> pa.Schema:
    return pa.schema([field for field in scan.metadata.plain_schema if field.name in names])
