"""A scan for Spark: leaves packed by their bytes into about as many tasks as there are cores."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lancepart.format.records import Stats
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.plan import planner
from lancepart.plan.pack import pack
from lancepart.read.leaf import ADDRESS, LEAF
from lancepart.read.prefetch import THREADS
from lancepart.read.scan import Scan
from lancepart.spark.aggregates import aggregate_schema, needed
from lancepart.spark.filters import predicate_of
from lancepart.spark.operations import ScanRequest
from lancepart.spark.scan_spec import Piece, ScanSpec
from lancepart.spark.spark_partitioning import KeyPart, key_of, key_parts, to_parts
from lancepart.storage import leaf_data
from lancepart.storage.root import Root
from lancepart.table import PartitionedTable

_LEAST_BYTES = 2 << 20
_MOST_BYTES = 512 << 20
_MOST_KEYS_A_CORE = 32
_LEAST_KEYS = 256
_ROW_BYTES, _COMPRESSED = 32, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The tasks of a scan, and the key that all rows of each have; and, for when no keys are needed, fewer tasks."""

    work: ScanSpec
    schema: Any
    tasks: tuple[tuple[Piece, ...], ...]
    keys: tuple[tuple[Any, ...], ...]
    parts: tuple[KeyPart, ...]
    rows: int
    bytes: int
    estimated_bytes: int = 0
    unkeyed_tasks: tuple[tuple[Piece, ...], ...] = ()


def plan(table: PartitionedTable, question: ScanRequest) -> Planned:
    """Choose the leaves and pack them; a scan that tells where its rows stand has no keys."""
    asked = question.columns
    if set(asked) & {LEAF, ADDRESS}:
        plain = tuple(name for name in asked if name not in (LEAF, ADDRESS))
        return _with_places(table, plan(table, replace(question, columns=plain, partitioning=())))
    predicate = predicate_of(question.handled, question.pushed, table.schema)
    columns = (needed(question.aggregates) if question.aggregates else asked) or (_narrowest(table.schema),)
    scan = table.scan(None if predicate is None else predicate.to_sql(), columns)
    work = ScanSpec(
        root=scan.root,
        metadata=scan.metadata,
        columns=columns,
        predicate=scan.predicate,
        limit=question.limit,
        aggregates=question.aggregates,
    )
    if question.aggregates:
        return _aggregated(scan, work, question)
    leaves = _enough(_measured(scan.root, scan.plan().leaves), work)
    parts = _parts(scan.metadata, leaves, columns, question)
    tasks, keys = _packed(scan.root, scan.metadata, leaves, parts, question.parallelism)
    unkeyed_tasks, _ = _packed(scan.root, scan.metadata, leaves, (), question.parallelism) if parts else ((), ())
    return Planned(
        work=work,
        schema=scan.schema,
        tasks=tasks,
        keys=keys,
        parts=parts,
        rows=sum(leaf.stats.rows for leaf in leaves if leaf.stats),
        bytes=_estimated(leaves, scan.schema),
        estimated_bytes=_estimated_bytes(leaves, scan.schema),
        unkeyed_tasks=unkeyed_tasks,
    )


def _with_places(table: PartitionedTable, planned: Planned) -> Planned:
    """A plan whose rows also say where they stand in the snapshot."""
    leaves = planner.numbered(table.scan().snapshot, planned.work.metadata)
    numbers = {leaf.object_id: number for number, leaf in enumerate(leaves)}
    tasks = [tuple(replace(piece, number=numbers[piece.leaf.object_id]) for piece in task) for task in planned.tasks]
    fields = [pa.field(LEAF, pa.int32(), nullable=False), pa.field(ADDRESS, pa.int64(), nullable=False)]
    return replace(
        planned,
        work=replace(planned.work, row_addresses=True),
        schema=pa.schema([*planned.schema, *fields]),
        tasks=tuple(tasks),
        bytes=planned.bytes + 12 * planned.rows,
    )


def _aggregated(scan: Scan, work: ScanSpec, question: ScanRequest) -> Planned:
    """One row a task; counting everything needs no task that reads."""
    known = scan.count() if scan.predicate is None and all("column" not in each for each in work.aggregates) else None
    leaves = () if known is not None else _measured(scan.root, scan.plan().leaves)
    tasks, _ = _packed(scan.root, scan.metadata, leaves, (), question.parallelism)
    tasks = tasks or ((),)
    return Planned(
        work=replace(work, counted=known),
        schema=aggregate_schema(work.aggregates, scan.metadata.plain_schema),
        tasks=tasks,
        keys=(),
        parts=(),
        rows=len(tasks),
        bytes=64 * len(tasks),
    )


def _narrowest(schema: Any) -> str:
    """The column that is cheapest to read, when only the number of rows is wanted."""
    return str(min(schema, key=lambda field: _width(field.type) or 1_000).name)


def _width(kind: Any) -> int | None:
    """The bytes of one value; ``None`` where values differ in length."""
    if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType) or pa.types.is_dictionary(kind):
        return None
    try:
        return max(kind.bit_width // 8, 1)
    except ValueError:
        return None


def _estimated(leaves: Sequence[Leaf], schema: Any) -> int:
    """At most what the leaves hold; less where only columns of a fixed width are read."""
    stats = [leaf.stats for leaf in leaves if leaf.stats]
    whole = sum(each.bytes for each in stats)
    widths = [_width(field.type) for field in schema]
    if None in widths:
        return whole
    return min(whole, sum(each.rows for each in stats) * (8 + sum(width or 0 for width in widths)))


def _estimated_bytes(leaves: Sequence[Leaf], schema: Any) -> int:
    """What the rows would take in memory, each in a row of its own, where texts are not compressed: rather too much."""
    stats = [leaf.stats for leaf in leaves if leaf.stats]
    widths = [_width(field.type) for field in schema]
    fixed = sum(each.rows for each in stats) * (_ROW_BYTES + sum(width or 0 for width in widths))
    return fixed + (_COMPRESSED * sum(each.bytes for each in stats) if None in widths else 0)


def _measured(root: Root, leaves: Sequence[Leaf]) -> tuple[Leaf, ...]:
    """Leaves with their sizes; one of which the manifest knows none is opened, and read at the version found."""
    unknown = [leaf for leaf in leaves if leaf.stats is None]
    if not unknown:
        return tuple(leaves)
    with ThreadPoolExecutor(THREADS) as pool:
        found = {leaf.object_id: leaf for leaf in pool.map(lambda leaf: _open(root, leaf), unknown)}
    return tuple(found.get(leaf.object_id, leaf) for leaf in leaves)


def _open(root: Root, leaf: Leaf) -> Leaf:
    handle = leaf_data.open_leaf(root, leaf.location, leaf.read_version)
    rows, size, fragments = leaf_data.measure(handle)
    version = leaf.read_version if leaf.read_version is not None else int(handle.version)
    return replace(leaf, read_version=version, stats=Stats(rows=rows, bytes=size, fragments=fragments))


def _enough(leaves: tuple[Leaf, ...], work: ScanSpec) -> tuple[Leaf, ...]:
    """The first leaves that hold as many rows as are wanted, when every row counts."""
    if work.limit is None or work.predicate is not None:
        return leaves
    kept, rows = [], 0
    for leaf in leaves:
        if rows >= work.limit:
            break
        kept.append(leaf)
        rows += leaf.stats.rows if leaf.stats else 0
    return tuple(kept)


def _parts(
    metadata: TableMetadata, leaves: Sequence[Leaf], columns: Sequence[str], question: ScanRequest
) -> tuple[KeyPart, ...]:
    """What Spark is told of keys: as before, if it was told before; nothing where keys would make too many tasks."""
    if question.partitioning is not None:
        return to_parts(question.partitioning)
    if question.limit is not None or not leaves:
        return ()
    parts = key_parts(metadata, [leaf.spec_id for leaf in leaves], columns)
    distinct = len({key_of(parts, leaf, metadata) for leaf in leaves})
    worthwhile = sum(_size(leaf) for leaf in leaves) // _LEAST_BYTES
    return parts if distinct <= max(_LEAST_KEYS, _MOST_KEYS_A_CORE * question.parallelism, worthwhile) else ()


def _packed(
    root: Root, metadata: TableMetadata, leaves: Sequence[Leaf], parts: Sequence[KeyPart], parallelism: int
) -> tuple[tuple[tuple[Piece, ...], ...], tuple[tuple[Any, ...], ...]]:
    """Tasks of about one size, each within one key, and those keys; in the order of the keys' first leaves."""
    groups: dict[tuple[Any, ...], list[Leaf]] = {}
    for leaf in leaves:
        groups.setdefault(key_of(parts, leaf, metadata), []).append(leaf)
    total = sum(_size(leaf) for leaf in leaves)
    share = min(max(total // max(parallelism, 1), _LEAST_BYTES), _MOST_BYTES)
    tasks, keys = [], []
    for key, members in groups.items():
        pieces = [piece for leaf in members for piece in _pieces(root, leaf, share)]
        bins = max(1, round(sum(piece.bytes for piece in pieces) / share))
        for chosen in pack([piece.bytes for piece in pieces], bins):
            tasks.append(tuple(pieces[index] for index in chosen))
            keys.append(key)
    return tuple(tasks), tuple(keys) if parts else ()


def _size(leaf: Leaf) -> int:
    return leaf.stats.bytes if leaf.stats else 0


def _pieces(root: Root, leaf: Leaf, share: int) -> list[Piece]:
    """A leaf whole or, when it is larger than a task should be, by its fragments."""
    if _size(leaf) <= share or (leaf.stats and leaf.stats.fragments < 2):
        return [Piece(leaf=leaf, bytes=_size(leaf))]
    sizes = leaf_data.fragment_sizes(leaf_data.open_leaf(root, leaf.location, leaf.read_version))
    return [Piece(leaf=leaf, bytes=size, fragments=(number,)) for number, size in sizes.items()]
