"""What a query can read: partitioned tables, plain Lance tables, and whatever has Arrow inside."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.dataset as ds
from datafusion import SessionContext

from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.layout.columns import is_blob
from lancepart.layout.layouts import capabilities
from lancepart.layout.leaves import Leaf
from lancepart.model.predicate import Predicate
from lancepart.plan import planner
from lancepart.read import union
from lancepart.read.dataset import PartitionedDataset
from lancepart.read.result import Result
from lancepart.read.scan import Scan
from lancepart.storage import lance_tables
from lancepart.table import PartitionedTable, exists, open_table


class Source(ABC):
    """A table of a query; ``schema`` is what the query is planned with."""

    __slots__ = ()
    takes_filters: ClassVar[bool] = True
    """Whether DataFusion leaves filters to what reads the rows."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns as DataFusion sees them."""

    @abstractmethod
    def register(self, context: SessionContext, name: str, predicate: Predicate | None) -> str:
        """Give the context the rows that may match, under a name; say how they are read."""


@dataclass(frozen=True, slots=True)
class TableSource(Source):
    """A partitioned table at one snapshot: partitions are pruned first, and what is left is read as one."""

    scan: Scan

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return _plain(self.scan.schema)

    def register(self, context: SessionContext, name: str, predicate: Predicate | None) -> str:
        """Register the partitions that can hold a matching row."""
        planned = planner.plan(self.scan.snapshot, self.scan.metadata, predicate)
        if self.scan.predicate is not None:
            kept = {leaf.object_id for leaf in self.scan.plan().leaves}
            planned = replace(planned, leaves=tuple(leaf for leaf in planned.leaves if leaf.object_id in kept))
        what = f"{len(planned.leaves)} partitions"
        if not planned.leaves:
            context.register_record_batches(name, [[pa.RecordBatch.from_pylist([], schema=self.schema)]])
            return what
        narrowed = replace(self.scan, planned=planned)
        if self.is_native:
            made = self._union(planned.leaves)
            if made is not None:
                context.register_table(name, lance_tables.table_provider(made))
                return f"{what}, read natively"
        context.register_dataset(name, PartitionedDataset(narrowed))
        return f"{what}, read as Arrow"

    def _union(self, leaves: tuple[Leaf, ...]) -> object | None:
        """Leaves as one Lance dataset, kept as long as the snapshot is; None if they can't be one."""

        def make() -> object | None:
            try:
                made = union.of_leaves(self.scan.root, self.scan.metadata, leaves).dataset
            except UnsupportedOperationError:
                return None
            return made if made.schema.names == self.schema.names else None

        if any(leaf.read_version is None for leaf in leaves):
            return make()
        key = ("queried", tuple((leaf.location, leaf.read_version) for leaf in leaves))
        return self.scan.snapshot.derived(key, make)

    @property
    def partitions(self) -> int:
        """How many partitions the table has."""
        return sum(planner.leaf_counts(self.scan.snapshot, self.scan.metadata).values())

    @property
    def is_native(self) -> bool:
        """Whether Lance itself can read all leaves as one: no column is computed, and none is a blob or extension."""
        fields = [*self.scan.metadata.schema]
        odd = any(isinstance(field.type, pa.BaseExtensionType) or is_blob(field.type) for field in fields)
        marked = any(b"lance-encoding:blob" in (field.metadata or {}) for field in fields)
        whole = (
            capabilities(self.scan.metadata).version_rows and self.scan.predicate is None and self.scan.columns is None
        )
        return whole and not odd and not marked


@dataclass(frozen=True, slots=True)
class DatasetSource(Source):
    """A dataset of pyarrow."""

    dataset: ds.Dataset

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return _plain(self.dataset.schema)

    def register(self, context: SessionContext, name: str, predicate: Predicate | None) -> str:
        """Register it as it is."""
        context.register_dataset(name, self.dataset)
        return "a pyarrow dataset"


@dataclass(frozen=True, slots=True)
class LanceSource(Source):
    """A plain Lance table."""

    dataset: object

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return _plain(lance_tables.schema_of(self.dataset))

    def register(self, context: SessionContext, name: str, predicate: Predicate | None) -> str:
        """Register it for native reading."""
        context.register_table(name, lance_tables.table_provider(self.dataset))
        return "a Lance table, read natively"


@dataclass(frozen=True, slots=True)
class ArrowSource(Source):
    """Rows in memory."""

    takes_filters: ClassVar[bool] = False
    rows: pa.Table

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""
        return _plain(self.rows.schema)

    def register(self, context: SessionContext, name: str, predicate: Predicate | None) -> str:
        """Register them as they are."""
        batches = self.rows.cast(self.schema).to_batches() or [pa.RecordBatch.from_pylist([], schema=self.schema)]
        context.register_record_batches(name, [batches])
        return f"{self.rows.num_rows} rows in memory"


def source_of(name: str, data: object) -> Source:
    """What a caller names in a query, as a source; a path is that of a partitioned or a plain Lance table."""
    if isinstance(data, str | os.PathLike):
        return source_of(name, open_table(data) if exists(data) else lance_tables.opened(os.fspath(data)))
    if isinstance(data, PartitionedTable):
        return TableSource(data.scan())
    if isinstance(data, Scan) and data.limit is None and not data.order and not data.offset and not data.with_row_id:
        return TableSource(data) if data.columns is None else DatasetSource(PartitionedDataset(data))
    if lance_tables.is_lance(data):
        return LanceSource(data)
    if isinstance(data, Result):
        return ArrowSource(data.to_arrow())
    if isinstance(data, ds.Dataset):
        return DatasetSource(data)
    if isinstance(data, pa.RecordBatch):
        return ArrowSource(pa.Table.from_batches([data]))
    if isinstance(data, pa.Table):
        return ArrowSource(data)
    if isinstance(data, list):
        return ArrowSource(pa.Table.from_pylist(data))
    if type(data).__module__.partition(".")[0] == "pandas":
        return ArrowSource(pa.Table.from_pandas(data, preserve_index=False))
    if hasattr(data, "__arrow_c_stream__"):
        return ArrowSource(pa.RecordBatchReader.from_stream(data).read_all())
    raise InvalidInputError(
        f"{name} is a {type(data).__name__}: a query reads tables of lancepart, lance.dataset, pyarrow, pandas, Polars "
        "and DuckDB, and paths of tables"
    )


def _plain(schema: pa.Schema) -> pa.Schema:
    """The columns as DataFusion sees them: an extension type by what it is stored as."""
    kinds = [field.type for field in schema]
    plain = [kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind for kind in kinds]
    return pa.schema([pa.field(field.name, kind) for field, kind in zip(schema, plain, strict=True)])
