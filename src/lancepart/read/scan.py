"""A lazy scan: planned on first use, read on threads, in bounded memory."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import TYPE_CHECKING, TypedDict, Unpack

import pyarrow as pa

from lancepart.errors import InvalidInputError, TableColumnNotFoundError, UnsupportedOperationError
from lancepart.layout.addresses import SnapshotAddress
from lancepart.layout.layouts import layout_of
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.config import config
from lancepart.model.nested import field_of, path_of
from lancepart.model.parameters import Parameters
from lancepart.model.parse import parse
from lancepart.model.predicate import Filter, Predicate
from lancepart.model.public import public
from lancepart.model.suggest import near
from lancepart.model.where import Where, as_sql
from lancepart.plan import planner
from lancepart.plan.planner import Plan
from lancepart.read import leaf, packs, row_ids
from lancepart.read.engine import cluster
from lancepart.read.key_lookup import narrowed
from lancepart.read.leaf import LeafTask, Read
from lancepart.read.memory import default_memory
from lancepart.read.ordered import Order, ordered, parse_order
from lancepart.read.prefetch import in_order
from lancepart.read.result import Result
from lancepart.storage.root import Root
from lancepart.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FEW_LEAVES = 64
"""A plan of so few leaves is kept for the next scan with the same filter."""
_SHORT_FILTER = 1_000
"""Of a filter of so many characters it is found out whether all rows of some leaves match."""


class ScanOptions(TypedDict, total=False):
    """The options of a scan besides a filter, columns and a limit."""

    offset: int
    order_by: str | Sequence[str] | None
    with_row_id: bool
    batch_size: int | None
    params: Parameters | None


class ScanFields(TypedDict):
    """What a scan reads of its snapshot, as it is pickled."""

    where: str | None
    columns: tuple[str, ...] | None
    limit: int | None
    offset: int
    order: tuple[Order, ...]
    with_row_id: bool
    batch_size: int | None


@public("batch_size", "columns", "explain", "limit", "offset", "plan", "sql", "to_spark", "with_row_id")
@dataclass(frozen=True, kw_only=True)
class Scan(Result):
    """Rows of a table at one snapshot: those that a filter matches, some columns of them."""

    root: Root
    snapshot: Snapshot
    metadata: TableMetadata
    where: Filter | None = None
    columns: tuple[str, ...] | None = None
    """The columns to read, in this order; None for all."""
    limit: int | None = None
    """The most rows that are read; None for all."""
    planned: Plan | None = None
    offset: int = 0
    """How many of the first rows are left out."""
    order: tuple[Order, ...] = ()
    with_row_id: bool = False
    """Whether the rows have a column ``_rowid``, which ``table.take`` understands."""
    batch_size: int | None = None
    """The most rows of one batch; None leaves it to Lance."""

    @classmethod
    def of(
        cls,
        root: Root,
        snapshot: Snapshot,
        metadata: TableMetadata,
        where: Where,
        columns: Sequence[str] | None,
        limit: int | None,
        **options: Unpack[ScanOptions],
    ) -> Scan:
        """Check the arguments; nothing is read yet."""
        if isinstance(columns, str) or not isinstance(columns, Iterable | None):
            raise InvalidInputError(f"columns is {columns!r}: give a list of names")
        unknown = [name for name in columns or () if path_of(name, metadata.plain_schema) is None]
        if unknown:
            known = ", ".join(metadata.schema.names)
            raise TableColumnNotFoundError(
                f"there is no column {unknown[0]!r}: the table has {known}{near(unknown[0], metadata.schema.names)}"
            )
        twice = [name for name in columns or () if list(columns or ()).count(name) > 1]
        if twice or (columns is not None and not len(columns)):
            fault = f"has {twice[0]!r} twice" if twice else "is empty"
            raise InvalidInputError(f"columns {fault}: name each column to be read once, or leave it out for all")
        if not _is_count(limit):
            raise InvalidInputError(
                f"limit is {limit!r}: give a whole number from 0 up to 2**63 - 1, or None for all rows"
            )
        chosen = None if columns is None else tuple(columns)
        text = as_sql(where, metadata.plain_schema, options.get("params"))
        scan = cls(root=root, snapshot=snapshot, metadata=metadata, where=text, columns=chosen, limit=limit)
        _ = scan.predicate
        return scan._with(**options)

    def _with(
        self,
        *,
        offset: int = 0,
        order_by: str | Sequence[str] | None = None,
        with_row_id: bool = False,
        batch_size: int | None = None,
        params: Parameters | None = None,
    ) -> Scan:
        if offset is None or not _is_count(offset):
            raise InvalidInputError(f"offset is {offset!r}: give a whole number from 0 up")
        if batch_size is not None and (not _is_count(batch_size) or batch_size < 1):
            raise InvalidInputError(f"batch_size is {batch_size!r}: give a whole number from 1 up")
        if with_row_id:
            row_ids.refuse_taken(self.metadata.schema.names)
        order = parse_order(order_by, self.metadata.plain_schema, row_ids=with_row_id)
        size = None if batch_size is None else int(batch_size)
        return replace(self, offset=int(offset), order=order, with_row_id=bool(with_row_id), batch_size=size)

    @cached_property
    def predicate(self) -> Predicate | None:
        """The filter as a tree."""
        where, schema = self.where, self.metadata.plain_schema
        if where is None or isinstance(where, Predicate):
            return where
        return self.snapshot.derived(("filter", where, schema.serialize().to_pybytes()), lambda: parse(where, schema))

    @property
    def sql(self) -> str | None:
        """The filter as SQL."""
        return self.where.to_sql() if isinstance(self.where, Predicate) else self.where

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        plain = self.metadata.plain_schema
        names = plain.names if self.columns is None else self.columns
        return pa.schema([*(field_of(name, plain) for name in names), *([row_ids.FIELD] if self.with_row_id else [])])

    @property
    def _plan(self) -> Plan:
        return self._pruned[0]

    @cached_property
    def _pruned(self) -> tuple[Plan, bool]:
        """The plan, and whether all rows of its leaves are known to match; kept with the snapshot if it is small."""
        if self.planned is not None:
            return self.planned, False
        if self.predicate is None or not isinstance(self.where, str) or len(self.where) > _SHORT_FILTER:
            return planner.plan(self.snapshot, self.metadata, self.predicate), False

        def make() -> tuple[Plan, bool]:
            found, partly = planner.plan_partly(self.snapshot, self.metadata, self.predicate)
            lasting = all(item.read_version is not None for item in found.leaves)
            return found, not partly and lasting and bool(self.metadata.salt)

        key = ("plan", self.where, self.metadata.plain_schema.serialize().to_pybytes())
        return self.snapshot.derived(key, make, lambda made: len(made[0].leaves) <= _FEW_LEAVES)

    def plan(self) -> Plan:
        """Which leaves are read, and why."""
        return self._plan

    def explain(self) -> str:
        """The plan in words."""
        return self._plan.explain(planner.leaf_counts(self.snapshot, self.metadata))

    def count(self) -> int:
        """How many rows there are; without a filter the manifest knows, and no leaf is opened."""
        if self.predicate is None and self.planned is None:
            known = planner.count_all(self.snapshot, self.metadata)
            if known is not None:
                return self._shown(known)
        counted = packs.packed(self.tasks(), self.snapshot)
        with ThreadPoolExecutor(config.threads) as pool:
            return self._shown(sum(pool.map(packs.count, counted)))

    def _shown(self, rows: int) -> int:
        """How many of so many matching rows the scan gives."""
        left = max(0, rows - self.offset)
        return left if self.limit is None else min(left, self.limit)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, leaf after leaf unless they are sorted; few batches are held at a time."""
        yield from self._batches(ahead=True)

    def to_arrow(self) -> pa.Table:
        """All rows as a table."""
        return pa.Table.from_batches(list(self._batches(ahead=False)), schema=self.schema)

    def _batches(self, *, ahead: bool) -> Iterator[pa.RecordBatch]:
        if self.limit == 0:
            return
        rows = self._sorted() if self.order else _sliced(self._in_order(ahead=ahead), self.offset, self.limit)
        for batch in rows:
            size = self.batch_size or max(1, batch.num_rows)
            for start in range(0, batch.num_rows, size):
                yield batch.slice(start, size)

    def _in_order(self, *, ahead: bool) -> Iterator[pa.RecordBatch]:
        """The rows leaf after leaf; leaves are read together, unless only the first rows are wanted.

        Without ``ahead`` the caller's own thread may read: Lance's threads work then, and it has nothing else to do.
        """
        if self.with_row_id or self.limit is not None:
            return in_order(self.tasks(), self._read)
        found = packs.packed(self.tasks(), self.snapshot)
        return packs.read(found[0]) if len(found) == 1 and not ahead else in_order(found, packs.read)

    @property
    def _read(self) -> Read:
        """How one leaf is read."""
        if not self.with_row_id:
            return leaf.read
        return partial(row_ids.read_with_ids, numbers=row_ids.leaf_numbers(self.snapshot, self.metadata))

    def _sorted(self) -> Iterator[pa.RecordBatch]:
        return ordered(
            self.tasks(),
            self._read,
            self.schema,
            self.order,
            table=self.metadata.plain_schema,
            limit=self.limit,
            offset=self.offset,
            memory=default_memory(),
        )

    def to_spark(self, spark: SparkSession, *, tasks: int | None = None) -> DataFrame:
        """The rows as a Spark DataFrame, read by the executors in about as many tasks as there are cores."""
        if self.order or self.offset or self.with_row_id:
            raise UnsupportedOperationError(
                "Spark orders, skips and numbers rows itself: leave order_by, offset and with_row_id out of the scan"
            )
        return cluster(spark).scan(self, spark, tasks)

    def tasks(self) -> list[LeafTask]:
        """The tasks of the scan, a leaf each."""
        leaves = narrowed(self.root, self.snapshot, self.metadata, self._plan.leaves, self.predicate)
        return [self.task_of(item) for item in leaves]

    def task_of(self, item: Leaf) -> LeafTask:
        """The task that reads one leaf."""
        return LeafTask(
            root=self.root,
            metadata=self.metadata,
            leaf=item,
            columns=tuple(self.schema.names),
            predicate=None if self._pruned[1] else self.predicate,
            limit=None if self.limit is None or self.order else self.limit + self.offset,
            batch_rows=self.batch_size,
        )

    def __reduce__(self) -> tuple[Callable[[SnapshotAddress, ScanFields], Scan], tuple[SnapshotAddress, ScanFields]]:
        """Pickle where the snapshot is, without credentials, and what is read of it."""
        if self.planned is not None:
            raise UnsupportedOperationError(
                "a scan of a transaction, or of some partitions, is not pickled: pickle the table, or to_arrow()"
            )
        fields: ScanFields = {
            "where": self.sql,
            "columns": self.columns,
            "limit": self.limit,
            "offset": self.offset,
            "order": self.order,
            "with_row_id": self.with_row_id,
            "batch_size": self.batch_size,
        }
        return _unpickled, (SnapshotAddress.of(self.root, self.snapshot), fields)

    def __repr__(self) -> str:
        parts = [f"where={self.sql!r}"] if self.where is not None else []
        parts += [f"columns={list(self.columns)!r}"] if self.columns is not None else []
        parts += [f"limit={self.limit}"] if self.limit is not None else []
        parts += [f"offset={self.offset}"] if self.offset else []
        parts += [f"order_by={[item.to_sql(item.column) for item in self.order]!r}"] if self.order else []
        return f"Scan({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"


def _unpickled(address: SnapshotAddress, fields: ScanFields) -> Scan:
    root, snapshot = address.opened()
    return Scan(root=root, snapshot=snapshot, metadata=layout_of(snapshot).load(snapshot), **fields)


def _sliced(batches: Iterable[pa.RecordBatch], offset: int, limit: int | None) -> Iterator[pa.RecordBatch]:
    """The rows after the first few, and no more than a limit of them."""
    remaining = limit
    for batch in batches:
        skipped = min(offset, batch.num_rows)
        offset -= skipped
        rows = batch.slice(skipped, remaining)
        if rows.num_rows:
            yield rows
        if remaining is not None:
            remaining -= rows.num_rows
            if remaining == 0:
                return


def _is_count(limit: object) -> bool:
    return limit is None or (not isinstance(limit, bool) and isinstance(limit, Integral) and 0 <= int(limit) < 1 << 63)
