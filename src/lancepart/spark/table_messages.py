"""The messages of the planning service that read, search and write one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lancepart.model.aliases import JsonMapping
from lancepart.spark.protocol import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing(Message):
    """A request or a reply without fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo(Message):
    """Table metadata at one snapshot, which every scan of the table then names."""

    version: int
    sources: tuple[str, ...]
    exact: tuple[str, ...]
    partitioning: tuple[JsonMapping, ...]
    by: tuple[JsonMapping, ...]
    fields: tuple[str, ...]
    snapshots: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReply(Message):
    """A table that was opened by its path."""

    schema: JsonMapping
    table: TableInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistsReply(Message):
    """Whether there is a table."""

    exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest(Message):
    """The request to plan a scan of a table at a snapshot.

    ``handled`` are filters that Spark does not apply again, ``pushed`` those that it does, and ``runtime`` those that a
    join has found for this table; without them, too, its result is right. Rows of at most ``inline_bytes``
    come with the reply. With ``partial`` each task aggregates its rows as Spark would, which reads ``columns``.
    """

    version: int
    columns: tuple[str, ...]
    handled: tuple[JsonMapping, ...] = ()
    pushed: tuple[JsonMapping, ...] = ()
    runtime: tuple[JsonMapping, ...] = ()
    aggregates: tuple[JsonMapping, ...] = ()
    limit: int | None = None
    parallelism: int = 2
    partitioning: tuple[JsonMapping, ...] | None = None
    inline_bytes: int = 0
    partial: JsonMapping | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan(Message):
    """What Spark's Python workers are given: the function that reads, pickled, and its argument for each task.

    ``inline`` says that the tasks are the rows themselves, an Arrow stream each, and that there is no function.
    """

    function: bytes
    tasks: tuple[bytes, ...]
    inline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReply(Message):
    """A planned scan: first the tasks that have a key each, then those of the same rows without keys.

    ``file_bytes`` is the size of all files of the leaves that are read. ``reasons`` say for EXPLAIN why those are read,
    ``unused`` which of the pushed filters Spark alone applies.
    """

    schema: JsonMapping
    read: ReadPlan
    tasks: int
    keys: tuple[Any, ...]
    partitioning: tuple[JsonMapping, ...]
    rows: int
    bytes: int
    estimated_bytes: int
    leaves_read: int
    leaves_pruned: int
    fragments: int
    file_bytes: int
    reasons: tuple[str, ...]
    unused: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOverRequest(Message):
    """Some columns of a plan that ``scan.to_spark`` or ``join.to_spark`` put into the options."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOnlySource(Message):
    """What can only be read: a metadata table of a partitioned table."""

    kind: str
    location: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOnlyRequest(Message):
    """Some columns of what can only be read."""

    table: ReadOnlySource
    columns: tuple[str, ...]
    parallelism: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsReply(Message):
    """A planned scan that reports its columns and tasks to Spark and, if that is known, how large it is."""

    schema: JsonMapping
    read: ReadPlan
    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest(Message):
    """A call of ``lance_search`` on a snapshot: its constant arguments, and the types of those that vary by row."""

    version: int
    arguments: Mapping[str, Any]
    varying: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReply(Message):
    """The columns of what is found and, where arguments vary, the pickled class that Spark's workers run for them."""

    schema: JsonMapping
    function: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRowsRequest(Message):
    """The same call, all of it constant, to be answered: which columns are needed."""

    version: int
    arguments: Mapping[str, Any]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineReply(Message):
    """Rows that come with the reply, as a stream of Arrow's."""

    rows: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolveRequest(Message):
    """Changes of the columns of a table that is known by its path, in their order."""

    changes: tuple[JsonMapping, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysRequest(Message):
    """A table that is not there yet: its columns, and how it is to be partitioned unless an option says so."""

    schema: JsonMapping
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysReply(Message):
    """What its rows can be brought together by."""

    partitioning: tuple[JsonMapping, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsRequest(Message):
    """The snapshot whose partitions are listed."""

    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsReply(Message):
    """The values of each partition, as texts."""

    partitions: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequest(Message):
    """Filters that mean the same here as in Spark; rows that all of them match go."""

    where: tuple[JsonMapping, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Message):
    """The snapshot that a commit made, none in a layout without snapshots; and how much its tasks wrote."""

    version: int | None = None
    rows: int = 0
    files: int = 0
    bytes: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest(Message):
    """A write to be planned: ``mode`` is append, truncate, dynamic, filter (what ``pushed`` matches) or rows.

    The last is a statement that changes the rows which a scan at ``version`` with these filters reads.
    """

    mode: str
    schema: JsonMapping
    by: tuple[str, ...] = ()
    handled: tuple[JsonMapping, ...] = ()
    pushed: tuple[JsonMapping, ...] = ()
    version: int | None = None
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainWriteRequest(Message):
    """A write to a plain Lance table of the catalog: ``mode`` is append, truncate, filter or rows.

    A filter replaces what ``pushed`` matches, the last rows that were read at ``version``, which their identities name.
    """

    id: tuple[str, ...]
    mode: str
    schema: JsonMapping
    pushed: tuple[JsonMapping, ...] = ()
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReply(Message):
    """A planned write: the function that Spark's Python workers run, and the plan that commits as JSON."""

    function: bytes
    writer: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest(Message):
    """A planned write, and what the tasks that succeeded report."""

    writer: bytes
    reports: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortRequest(Message):
    """A planned write that failed."""

    writer: bytes
