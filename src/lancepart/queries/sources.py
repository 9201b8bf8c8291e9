"""What a query can read: partitioned tables, plain Lance tables, and whatever has Arrow inside."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import ClassVar

import pyarrow as pa
import pyarrow.dataset as ds
from datafusion import SessionContext

from lancepart.errors import UnsupportedOperationError
from lancepart.layout.columns import is_blob
from lancepart.layout.layouts import capabilities
from lancepart.layout.leaves import Leaf
from lancepart.model.nested import nulls_inside
from lancepart.model.predicate import Predicate
from lancepart.plan import planner
from lancepart.queries import kept_columns
from lancepart.queries.floats import register_without_hidden
from lancepart.queries.scan_filters import ScanFilter
from lancepart.read import union
from lancepart.read.dataset import PartitionedDataset
from lancepart.read.scan import Scan
from lancepart.storage import lance_tables
from lancepart.storage.cache import cache

_SMALL = 4 << 20
"""The bytes on disk up to which the leaves that a query reads are kept in memory."""
_SAMPLED = 100_000
"""The rows from which on it pays to find out how many of them a filter keeps."""
_PART = 150_000
"""The rows that each core should have to read: planning one more scan takes as long as reading some of them."""
_SHARE = 8
"""The part of the cache that a small table may take."""
_BATCH = 8_192


class QuerySource(ABC):
    """A table of a query; ``schema`` is what the query is planned with."""

    __slots__ = ()
    takes_filters: ClassVar[bool] = True
    """Whether DataFusion leaves filters to what reads the rows."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns as DataFusion sees them."""

    @abstractmethod
    def register(self, context: SessionContext, name: str, predicate: Predicate | None, *, whole: bool = False) -> str:
        """Give the context the rows that may match, under a name, as a ``whole`` if so; say how they are read."""

    def keeps_many(self, predicate: Predicate | None, scans: Sequence[ScanFilter]) -> bool:
        """Whether the filters of its scans keep so many rows that DataFusion had better evaluate them."""
        return False

    def in_memory(
        self, predicate: Predicate | None, columns: Sequence[str], *, reading: bool
    ) -> tuple[pa.Table, str] | None:
        """Columns of the rows that may match, if they are kept in memory, and how that is called.

        Without ``reading``, nothing large is read that is not there already.
        """
        return None


@dataclass(frozen=True)
class TableSource(QuerySource):
    """A partitioned table at one snapshot: partitions are pruned first, and what is left is read as one."""

    scan: Scan
    _plans: dict[int, tuple[Predicate | None, planner.Plan]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return _plain(self.scan.schema)

    def register(self, context: SessionContext, name: str, predicate: Predicate | None, *, whole: bool = False) -> str:
        """Register the partitions that can hold a matching row."""
        planned = self._pruned(predicate)
        what = f"{len(planned.leaves)} partitions"
        if not planned.leaves:
            context.register_record_batches(name, [[no_rows(self.schema)]])
            return what
        narrowed = replace(self.scan, planned=planned)
        if self.is_native:
            made = self._union(planned.leaves)
            if made is not None:
                return f"{what}, {self._register_union(context, name, planned.leaves, made, whole=whole)}"
        context.register_dataset(name, PartitionedDataset(narrowed))
        return f"{what}, read as Arrow"

    def _pruned(self, predicate: Predicate | None) -> planner.Plan:
        """The leaves of the scan that can hold a matching row; a query asks for them several times."""
        known = self._plans.get(id(predicate))
        if known is None:
            known = self._plans[id(predicate)] = predicate, self._planned(predicate)
        return known[1]

    def _planned(self, predicate: Predicate | None) -> planner.Plan:
        if self.scan.planned is not None:
            return planner.narrowed(self.scan.planned, self.scan.snapshot, self.scan.metadata, predicate)
        planned = planner.plan(self.scan.snapshot, self.scan.metadata, predicate)
        if self.scan.predicate is None:
            return planned
        kept = {leaf.object_id for leaf in self.scan.plan().leaves}
        return replace(planned, leaves=tuple(leaf for leaf in planned.leaves if leaf.object_id in kept))

    def _key(self, leaves: Sequence[Leaf]) -> Hashable:
        """What rows of leaves depend on: whose they are, their versions, and the columns by their ids."""
        root, metadata = self.scan.root, self.scan.metadata
        return (*root.identity, metadata.salt, metadata.schema.serialize().to_pybytes(), _versions(leaves))

    def _register_union(
        self, context: SessionContext, name: str, leaves: tuple[Leaf, ...], union: object, *, whole: bool
    ) -> str:
        """Register leaves that are read as one, from memory if they are small: planning a scan costs more than they."""
        known = [leaf.stats.bytes for leaf in leaves if leaf.stats is not None and leaf.read_version is not None]
        if len(known) < len(leaves) or sum(known) > _kept_bytes():
            self._register_natively(context, name, [] if whole else _parts(leaves), union)
            return "read natively"
        rows = cache.get(
            ("small table", self._key(leaves)),
            lambda: lance_tables.read_whole(union).cast(self.schema),
            lambda made: made.nbytes,
        )
        context.register_record_batches(name, _partitions(rows))
        return "kept in memory"

    def _register_natively(
        self, context: SessionContext, name: str, parts: Sequence[tuple[Leaf, ...]], union: object
    ) -> None:
        """Register leaves that Lance reads, as several tables side by side where one core would take long for all.

        Lance decodes on all cores, but gives DataFusion one stream, in which it also filters.
        """
        made = [self._union(part) for part in parts]
        if len(made) < 2 or any(part is None for part in made):
            context.register_table(name, lance_tables.table_provider(union))
            return
        own = [f'{name[:-1]} part {number}"' for number in range(len(made))]
        for each, part in zip(own, made, strict=True):
            context.register_table(each, lance_tables.table_provider(part))
        context.sql(f"CREATE VIEW {name} AS {' UNION ALL '.join(f'SELECT * FROM {each}' for each in own)}")

    def in_memory(
        self, predicate: Predicate | None, columns: Sequence[str], *, reading: bool
    ) -> tuple[pa.Table, str] | None:
        """Columns of the leaves that can hold a matching row, kept in memory from the second query on."""
        leaves = self._pruned(predicate).leaves
        known = [leaf.stats.bytes for leaf in leaves if leaf.stats is not None and leaf.read_version is not None]
        if not self.is_native or len(known) < len(leaves) or sum(known) <= _kept_bytes():
            return None
        wanted = [name for name in self.schema.names if name in set(columns)] or self._narrowest()
        if wanted and leaves and sum(known) <= _SMALL:
            return self._read_once(leaves, wanted)
        text_bytes = partial(self._text_bytes, leaves)
        if not wanted or not kept_columns.would_fit(leaves, self.schema, wanted, text_bytes):
            return None
        key = self._key(leaves)
        if reading:
            wished = kept_columns.read_before(self.scan.snapshot, key, wanted)
        else:
            wished = kept_columns.are_kept(key, wanted)
        if not wished or (made := self._union(leaves)) is None:
            return None
        rows = kept_columns.kept(key, made, self.schema, wanted)
        return rows, f"{len(leaves)} partitions, columns kept in memory"

    def _text_bytes(self, leaves: tuple[Leaf, ...], columns: Sequence[str]) -> float:
        """How many bytes some columns of a row take, by a sample."""

        def measure() -> float:
            found = None if (made := self._union(leaves)) is None else lance_tables.sample(made, columns)
            return math.inf if found is None or not found.num_rows else found.nbytes / found.num_rows

        return self.scan.snapshot.derived(("bytes of a row", self._key(leaves), tuple(columns)), measure)

    def _read_once(self, leaves: tuple[Leaf, ...], columns: Sequence[str]) -> tuple[pa.Table, str] | None:
        """Columns of a small table that is not kept: Lance reads them in less time than DataFusion plans a scan."""
        if (made := self._union(leaves)) is None:
            return None
        schema = pa.schema([self.schema.field(name) for name in columns])
        return lance_tables.read_whole(made, columns).cast(
            schema
        ), f"{len(leaves)} partitions, columns read into memory"

    def _narrowest(self) -> list[str]:
        """A column to count rows by."""
        fixed = [each for each in self.schema if pa.types.is_primitive(each.type)]
        return [min(fixed, key=lambda each: each.type.bit_width).name] if fixed else []

    def keeps_many(self, predicate: Predicate | None, scans: Sequence[ScanFilter]) -> bool:
        """Whether most of a table's scans keep many rows, by a sample of them; never if the table is small."""
        leaves = self._pruned(predicate).leaves
        if not self.is_native or any(leaf.stats is None or leaf.read_version is None for leaf in leaves):
            return False
        if sum(leaf.stats.rows for leaf in leaves if leaf.stats is not None) < _SAMPLED:
            return False
        made = self._union(leaves)
        if made is None or any(scan.wide for scan in scans):
            return False
        found = [self._keeps_many(self._key(leaves), made, scan) for scan in scans]
        return 2 * sum(found) > len(found)

    def _keeps_many(self, key: Hashable, union: object, scan: ScanFilter) -> bool:
        def sample() -> pa.Table:
            read = lance_tables.sample(union, list(scan.columns))
            return read.cast(pa.schema([self.schema.field(name) for name in read.column_names]))

        def keeps_many() -> bool:
            return scan.keeps_many(cache.get(("sample", key, scan.columns), sample, lambda made: made.nbytes))

        return self.scan.snapshot.derived(("keeps many", key, scan.text), keeps_many)

    def _union(self, leaves: tuple[Leaf, ...]) -> object | None:
        """Leaves as one Lance dataset, kept as long as the snapshot is; None if they can't be one."""

        def make() -> object | None:
            scan = self.scan
            rows = union.UnionRows(root=scan.root, metadata=scan.metadata, leaves=leaves, snapshot=scan.snapshot)
            try:
                made = union.of_leaves(rows).dataset
            except UnsupportedOperationError:
                return None
            return made if made.schema.names == self.schema.names else None

        if any(leaf.read_version is None for leaf in leaves):
            return make()
        return self.scan.snapshot.derived(("queried", _versions(leaves)), make)

    @property
    def partitions(self) -> int:
        """How many partitions the table has."""
        return sum(planner.leaf_counts(self.scan.snapshot, self.scan.metadata).values())

    @cached_property
    def is_native(self) -> bool:
        """Whether Lance itself can read all leaves as one: no column is computed, and none is a blob or extension."""
        fields = [*self.scan.metadata.schema]
        odd = any(isinstance(each.type, pa.BaseExtensionType) or is_blob(each.type) for each in fields)
        marked = any(b"lance-encoding:blob" in (each.metadata or {}) for each in fields)
        whole = self.scan.predicate is None and self.scan.columns is None and self.scan.planned is None
        return whole and capabilities(self.scan.metadata).version_rows and not odd and not marked


@dataclass(frozen=True, slots=True)
class DatasetSource(QuerySource):
    """A dataset of pyarrow."""

    dataset: ds.Dataset

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return _plain(self.dataset.schema)

    def register(self, context: SessionContext, name: str, predicate: Predicate | None, *, whole: bool = False) -> str:
        """Register it, with a view before its structs, whose fields may hold values where they are NULL."""
        structs = [field.name for field in self.schema if pa.types.is_struct(field.type)]
        own = f'{name[:-1]} stored"' if structs else name
        context.register_dataset(own, self.dataset)
        if structs:
            register_without_hidden(context, name, own, self.schema, structs)
        return "a pyarrow dataset"


@dataclass(frozen=True, slots=True)
class LanceSource(QuerySource):
    """A plain Lance table."""

    dataset: object

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return _plain(lance_tables.schema_of(self.dataset))

    def register(self, context: SessionContext, name: str, predicate: Predicate | None, *, whole: bool = False) -> str:
        """Register it for native reading."""
        context.register_table(name, lance_tables.table_provider(self.dataset))
        return "a Lance table, read natively"


@dataclass(frozen=True, slots=True)
class ArrowSource(QuerySource):
    """Rows in memory."""

    takes_filters: ClassVar[bool] = False
    rows: pa.Table

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""
        return _plain(self.rows.schema)

    def register(self, context: SessionContext, name: str, predicate: Predicate | None, *, whole: bool = False) -> str:
        """Register them as they are."""
        batches = nulls_inside(self.rows.cast(self.schema)).to_batches() or [no_rows(self.schema)]
        context.register_record_batches(name, [batches])
        return f"{self.rows.num_rows} rows in memory"


def _versions(leaves: Sequence[Leaf]) -> tuple[tuple[str, int | None], ...]:
    return tuple((leaf.location, leaf.read_version) for leaf in leaves)


def _partitions(rows: pa.Table) -> list[list[pa.RecordBatch]]:
    """Rows in as many partitions as there are cores, if there are enough of them."""
    batches = rows.to_batches(max_chunksize=_BATCH) or [no_rows(rows.schema)]
    count = min(len(batches), os.cpu_count() or 1)
    return [batches[index::count] for index in range(count)]


def _parts(leaves: Sequence[Leaf]) -> list[tuple[Leaf, ...]]:
    """Leaves in parts of about as many rows, one a core if there are enough rows, in the order of the leaves."""
    rows = {leaf.object_id: leaf.stats.rows if leaf.stats is not None else 0 for leaf in leaves}
    count = min(os.cpu_count() or 1, len(leaves), sum(rows.values()) // _PART)
    parts: list[list[Leaf]] = [[] for _ in range(count)]
    held = [0] * count
    for leaf in sorted(leaves, key=lambda leaf: -rows[leaf.object_id]) if count > 1 else ():
        least = held.index(min(held))
        parts[least].append(leaf)
        held[least] += rows[leaf.object_id]
    return [tuple(leaf for leaf in leaves if leaf in part) for part in parts if part]


def _kept_bytes() -> int:
    """The bytes on disk up to which the cache keeps all columns of a table, which may be larger in memory."""
    return min(_SMALL, cache.capacity // _SHARE)


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


def _plain(schema: pa.Schema) -> pa.Schema:
    """The columns as DataFusion sees them: an extension type by what it is stored as."""
    kinds = [field.type for field in schema]
    plain = [kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind for kind in kinds]
    return pa.schema([pa.field(field.name, kind) for field, kind in zip(schema, plain, strict=True)])
