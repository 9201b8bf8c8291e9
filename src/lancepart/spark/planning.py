"""A scan for Spark: leaves packed by their bytes into about as many tasks as there are cores."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lancepart.format.records import Stats
from lancepart.layout.layouts import capabilities
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.aliases import JsonMapping, Value
from lancepart.model.config import config
from lancepart.model.predicate import Predicate
from lancepart.model.predicate_chains import all_of
from lancepart.plan import planner
from lancepart.read.leaf import ADDRESS, LEAF
from lancepart.read.pieces import cut, leaf_bytes, packed
from lancepart.read.scan import Scan
from lancepart.spark.aggregates import aggregate_schema, needed
from lancepart.spark.filters import predicate_of
from lancepart.spark.partial_aggregates import PartialAggregates
from lancepart.spark.scan_sizes import held_bytes, narrowest, scanned_bytes
from lancepart.spark.spark_partitioning import KeyPart, key_of, key_parts, to_parts
from lancepart.spark.spark_plan import SparkScan, SparkTask, TableRead
from lancepart.spark.table_messages import ScanRequest
from lancepart.storage import leaf_handle
from lancepart.storage.root import Root
from lancepart.table import PartitionedTable

_LEAST_BYTES = 2 << 20
_MOST_BYTES = 512 << 20
_MOST_KEYS_A_CORE = 32
_MOST_REASONS = 8
_COUNTED = "the manifest has the number of rows"
_LEAST_KEYS = 256
_MOST_PUSHED_KEYS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """What a scan reads and leaves out of a table's leaves, and why."""

    read: int = 0
    pruned: int = 0
    fragments: int = 0
    bytes: int = 0
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(cls, scan: Scan, leaves: Sequence[Leaf]) -> Pruning:
        """For the leaves that a scan reads; without a filter nobody asks how many there are."""
        plan = scan.plan()
        everything = len(plan.leaves)
        if scan.predicate is not None:
            everything = sum(planner.leaf_counts(scan.snapshot, scan.metadata).values())
        return cls(
            read=len(leaves),
            pruned=max(0, everything - len(leaves)),
            fragments=sum(leaf.stats.fragments for leaf in leaves if leaf.stats is not None),
            bytes=sum(map(leaf_bytes, leaves)),
            reasons=tuple(reason for spec in plan.specs if spec.kept for reason in spec.reasons)[:_MOST_REASONS],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The tasks of a scan, and the key that all rows of each have; and, for when no keys are needed, fewer tasks."""

    scan: SparkScan
    schema: pa.Schema
    tasks: tuple[SparkTask, ...]
    keys: tuple[tuple[Value, ...], ...]
    parts: tuple[KeyPart, ...]
    rows: int
    bytes: int
    estimated_bytes: int = 0
    unkeyed_tasks: tuple[SparkTask, ...] = ()
    pruning: Pruning = field(default_factory=Pruning)


def plan(table: PartitionedTable, request: ScanRequest) -> Planned:
    """Choose the leaves and pack them; a scan that identifies its rows has no keys."""
    requested = request.columns
    if set(requested) & {LEAF, ADDRESS}:
        plain = tuple(name for name in requested if name not in (LEAF, ADDRESS))
        return _with_identity(plan(table, replace(request, columns=plain, partitioning=())))
    predicate = predicate_of(request.handled, request.pushed, table.schema)
    columns = (needed(request.aggregates) if request.aggregates else requested) or (narrowest(table.schema),)
    narrower = _narrower(predicate, request, table.schema)
    scan = replace(table.scan(columns=columns), where=narrower)
    applied = narrower if _is_short(request.runtime) else predicate
    version = table.version if capabilities(scan.metadata).snapshots else None
    side = TableRead(root=scan.root, metadata=scan.metadata, columns=columns, predicate=applied, version=version)
    planned = SparkScan(side=side, limit=request.limit, aggregates=request.aggregates)
    if request.aggregates:
        return _aggregated(scan, planned, request)
    if request.partial is not None:
        return _partially_aggregated(scan, planned, request, PartialAggregates.of(request.partial))
    leaves = _enough(_measured(scan.root, scan.plan().leaves), planned)
    parts = _parts(scan.metadata, leaves, columns, request)
    tasks, keys = _packed(scan.root, scan.metadata, leaves, parts, request.parallelism)
    unkeyed_tasks, _ = _packed(scan.root, scan.metadata, leaves, (), request.parallelism) if parts else ((), ())
    return Planned(
        scan=planned,
        schema=scan.schema,
        tasks=tasks,
        keys=keys,
        parts=parts,
        rows=sum(leaf.stats.rows for leaf in leaves if leaf.stats),
        bytes=scanned_bytes(leaves, scan.schema, scan.metadata.plain_schema),
        estimated_bytes=held_bytes(leaves, scan.schema),
        unkeyed_tasks=unkeyed_tasks,
        pruning=Pruning.of(scan, leaves),
    )


def _narrower(predicate: Predicate | None, request: ScanRequest, schema: pa.Schema) -> Predicate | None:
    """The filter of a scan together with those that were found at run time."""
    found = predicate_of((), request.runtime, schema)
    parts = tuple(part for part in (predicate, found) if part is not None)
    return all_of(parts) if parts else None


def _is_short(filters: Sequence[JsonMapping]) -> bool:
    """Whether filters have so few values that testing each row costs less than what a join does with the row.

    A longer one only chooses leaves: the join drops the other rows, and each task would have to parse all values.
    """
    return sum(_values(each) for each in filters) <= _MOST_PUSHED_KEYS


def _values(tree: JsonMapping) -> int:
    return 1 if "value" in tree else sum(map(_values, tree.get("children", ())))


def _with_identity(planned: Planned) -> Planned:
    """A plan whose rows also have the columns that identify them."""
    fields = [pa.field(name, pa.int64(), nullable=False) for name in (LEAF, ADDRESS)]
    return replace(
        planned,
        scan=replace(planned.scan, row_identity=True),
        schema=pa.schema([*planned.schema, *fields]),
        bytes=planned.bytes + 16 * planned.rows,
    )


def _aggregated(scan: Scan, planned: SparkScan, request: ScanRequest) -> Planned:
    """One row a task; counting everything needs no task that reads."""
    counting = all("column" not in each for each in planned.aggregates)
    known = scan.count() if counting and scan.predicate is None else None
    leaves = () if known is not None else _measured(scan.root, scan.plan().leaves)
    tasks, _ = _packed(scan.root, scan.metadata, leaves, (), request.parallelism)
    tasks = tasks or (SparkTask(),)
    return Planned(
        scan=replace(planned, counted=known),
        schema=aggregate_schema(planned.aggregates, scan.metadata.plain_schema),
        tasks=tasks,
        keys=(),
        parts=(),
        rows=len(tasks),
        bytes=64 * len(tasks),
        pruning=Pruning.of(scan, leaves) if known is None else Pruning(reasons=(_COUNTED,)),
    )


def _partially_aggregated(scan: Scan, planned: SparkScan, request: ScanRequest, partial: PartialAggregates) -> Planned:
    """Tasks that give groups instead of rows; their keys are gone then, and Spark shuffles by groups."""
    leaves = _measured(scan.root, scan.plan().leaves)
    tasks, _ = _packed(scan.root, scan.metadata, leaves, (), request.parallelism)
    return Planned(
        scan=replace(planned, partial=partial),
        schema=partial.schema(scan.schema),
        tasks=tasks,
        keys=(),
        parts=(),
        rows=sum(leaf.stats.rows for leaf in leaves if leaf.stats),
        bytes=scanned_bytes(leaves, scan.schema, scan.metadata.plain_schema),
        pruning=Pruning.of(scan, leaves),
    )


def _measured(root: Root, leaves: Sequence[Leaf]) -> tuple[Leaf, ...]:
    """Leaves with their sizes; one of which the manifest knows none is opened, and read at the version found."""
    unknown = [leaf for leaf in leaves if leaf.stats is None]
    if not unknown:
        return tuple(leaves)
    with ThreadPoolExecutor(config.threads) as pool:
        found = {leaf.object_id: leaf for leaf in pool.map(lambda leaf: _open(root, leaf), unknown)}
    return tuple(found.get(leaf.object_id, leaf) for leaf in leaves)


def _open(root: Root, leaf: Leaf) -> Leaf:
    handle = leaf_handle.open_leaf(root, leaf.location, leaf.read_version)
    rows, size, fragments = leaf_handle.measure(handle)
    version = leaf.read_version if leaf.read_version is not None else int(handle.version)
    return replace(leaf, read_version=version, stats=Stats(rows=rows, bytes=size, fragments=fragments))


def _enough(leaves: tuple[Leaf, ...], scan: SparkScan) -> tuple[Leaf, ...]:
    """The first leaves that hold as many rows as are wanted, when every row counts."""
    if scan.limit is None or scan.side.predicate is not None:
        return leaves
    kept, rows = [], 0
    for leaf in leaves:
        if rows >= scan.limit:
            break
        kept.append(leaf)
        rows += leaf.stats.rows if leaf.stats else 0
    return tuple(kept)


def _parts(
    metadata: TableMetadata, leaves: Sequence[Leaf], columns: Sequence[str], request: ScanRequest
) -> tuple[KeyPart, ...]:
    """The keys reported to Spark: as before, if they were reported before; none if they would make too many tasks."""
    if request.partitioning is not None:
        return to_parts(request.partitioning)
    if request.limit is not None or not leaves:
        return ()
    parts = key_parts(metadata, [leaf.spec_id for leaf in leaves], columns)
    distinct = len({key_of(parts, leaf, metadata) for leaf in leaves})
    worthwhile = sum(leaf_bytes(leaf) for leaf in leaves) // _LEAST_BYTES
    return parts if distinct <= max(_LEAST_KEYS, _MOST_KEYS_A_CORE * request.parallelism, worthwhile) else ()


def _packed(
    root: Root, metadata: TableMetadata, leaves: Sequence[Leaf], parts: Sequence[KeyPart], parallelism: int
) -> tuple[tuple[SparkTask, ...], tuple[tuple[Value, ...], ...]]:
    """Tasks of about one size, each within one key, and those keys; in the order of the keys' first leaves."""
    groups: dict[tuple[Value, ...], list[Leaf]] = {}
    for leaf in leaves:
        groups.setdefault(key_of(parts, leaf, metadata), []).append(leaf)
    total = sum(leaf_bytes(leaf) for leaf in leaves)
    share = min(max(total // max(parallelism, 1), _LEAST_BYTES), _MOST_BYTES)
    tasks: list[SparkTask] = []
    keys: list[tuple[Value, ...]] = []
    for key, members in groups.items():
        pieces = cut(root, members, share)
        found = packed(pieces, max(1, round(sum(piece.bytes for piece in pieces) / share)))
        tasks += [SparkTask(pieces=each) for each in found]
        keys += [key] * len(found)
    return tuple(tasks), tuple(keys) if parts else ()
