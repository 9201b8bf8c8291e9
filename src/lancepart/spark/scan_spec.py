"""What a scan's tasks are given: plain values, without what planned them, so that workers import little."""

from __future__ import annotations

from dataclasses import dataclass

from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.aliases import JsonMapping
from lancepart.model.predicate import Predicate
from lancepart.storage.root import Root


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A leaf or some fragments of one."""

    leaf: Leaf
    bytes: int
    fragments: tuple[int, ...] | None = None
    number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSpec:
    """What all tasks of a scan have in common: plain values that travel to the executors."""

    root: Root
    metadata: TableMetadata
    columns: tuple[str, ...]
    predicate: Predicate | None
    limit: int | None
    aggregates: tuple[JsonMapping, ...] = ()
    counted: int | None = None
    row_addresses: bool = False
