"""``ReadableTable``: what a table is and how it is read, at one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from lancepart.commit.temporary import TemporaryTable
from lancepart.errors import InvalidInputError
from lancepart.layout import create
from lancepart.layout.metadata import TableMetadata
from lancepart.layout.table_manifest import (
    TableManifest,
    load,
    past_version,
)
from lancepart.model.aliases import JoinType, RowSource
from lancepart.model.parameters import Parameters
from lancepart.model.spec import PartitionSpec
from lancepart.model.where import Where
from lancepart.read.engine import cluster
from lancepart.read.join import Join, JoinOptions, key_types
from lancepart.read.rerank import Reranker
from lancepart.read.result import Result
from lancepart.read.scan import Scan, ScanOptions
from lancepart.read.search import Search
from lancepart.read.search_request import BatchRequest, SearchOptions
from lancepart.storage.dataset import Dataset
from lancepart.storage.row_files import files_at, is_path

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import DataFrame

    from lancepart.catalog import DirectoryNamespace
    from lancepart.maintain.describe import TableDescription
    from lancepart.maintain.inspect import Inspect
    from lancepart.maintain.plots import Plots
    from lancepart.read.dataset import PartitionedDataset


class ReadableTable(Result):
    """A partitioned table that is read: its definition, scans, searches and joins."""

    def __init__(self, manifest: TableManifest, *, version: int | None = None) -> None:
        self._manifest = manifest
        self._version = version

    @property
    def metadata(self) -> TableMetadata:
        """The table's current definition."""
        return load(self._manifest, self._version)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self.metadata.plain_schema

    @property
    def spec(self) -> PartitionSpec:
        """How new rows are partitioned."""
        return self.metadata.spec

    @property
    def specs(self) -> tuple[PartitionSpec, ...]:
        """All versions of the partitioning, oldest first."""
        return self.metadata.specs

    @property
    def version(self) -> int:
        """The number of the snapshot: it grows with every commit, not always by one, and ``open_table`` takes it."""
        return self._manifest.snapshot(self._version).version

    @property
    def root(self) -> str:
        """The table's root."""
        return self._manifest.root.uri

    @property
    def namespace(self) -> DirectoryNamespace:
        """The table as a catalog of its namespaces and leaves."""
        from lancepart.catalog import DirectoryNamespace

        options = {f"storage.{key}": value for key, value in self._manifest.root.storage_options.items()}
        return DirectoryNamespace(root=self.root, dir_listing_enabled=False, **options)

    @property
    def inspect(self) -> Inspect:
        """What the table is made of, as Arrow tables."""
        from lancepart.maintain.inspect import Inspect

        return Inspect(self._manifest, self._version)

    @property
    def plot(self) -> Plots:
        """Charts of the partitions, their skew and the history, with Matplotlib (the extra ``plot``)."""
        from lancepart.maintain.plots import Plots

        return Plots(self.inspect)

    def scan(
        self,
        where: Where = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        *,
        version: int | str | datetime | None = None,
        **options: Unpack[ScanOptions],
    ) -> Scan:
        """Read the rows that match, lazily; ``where`` is SQL in DataFusion's dialect.

        ``version`` reads an older snapshot: its number, a tag, or a moment. ``options`` are ``offset``, ``order_by``
        (such as ``["day DESC", "id"]``), ``with_row_id``, ``batch_size`` and ``params``, the values of ``$name`` in the
        filter. An expression of pyarrow or Polars is a filter too.
        """
        wanted = self._version if version is None else past_version(self._manifest, version)
        snapshot = self._manifest.snapshot(wanted)
        metadata = create.load(snapshot)
        return Scan.of(self._manifest.root, snapshot, metadata, where, columns, limit, **options)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, batch by batch."""
        return self.scan().to_batches()

    def count_rows(self, where: Where = None, *, params: Parameters | None = None) -> int:
        """How many rows there are, or match."""
        return self.scan(where, params=params).count()

    def count(self) -> int:
        """How many rows there are."""
        return self.count_rows()

    def head(self, n: int = 5, columns: Sequence[str] | None = None) -> pa.Table:
        """The first rows; no more are read."""
        return self.scan(columns=columns, limit=n).to_arrow()

    def take(
        self,
        row_ids: object,
        columns: Sequence[str] | None = None,
        *,
        version: int | str | datetime | None = None,
    ) -> pa.Table:
        """The rows with some ids of ``scan(with_row_id=True)`` in their order; ids are valid at one snapshot."""
        from lancepart.read import rows

        return rows.take(self.scan(columns=columns, version=version), row_ids)

    def sample(
        self,
        n: int,
        columns: Sequence[str] | None = None,
        where: Where = None,
        *,
        seed: int | None = None,
        version: int | str | datetime | None = None,
        with_row_id: bool = False,
    ) -> pa.Table:
        """Rows drawn at random without repetition; a seed draws the same ones from the same snapshot."""
        from lancepart.read import rows

        return rows.sample(self.scan(where, columns, version=version, with_row_id=with_row_id), n, seed)

    def search(
        self,
        query: object = None,
        column: str | Sequence[str] | None = None,
        k: int = 10,
        where: Where = None,
        columns: Sequence[str] | None = None,
        *,
        hybrid: tuple[object, object] | None = None,
        reranker: Reranker | None = None,
        version: int | str | datetime | None = None,
        params: Parameters | None = None,
        **options: Unpack[SearchOptions],
    ) -> Search:
        """Find the rows whose vectors are nearest, whose texts match best, or both, lazily and at one snapshot.

        A query is a vector, a batch of them, a text or a query of ``lance.query``; ``where`` prunes partitions, and
        filters inside them before rows are ranked; ``params`` are the values of ``$name`` in it.
        """
        scan = self.scan(where, columns, version=version, params=params)
        if isinstance(query, str) and not query.strip():
            raise InvalidInputError("the text to search for is empty: give a word, or use scan for all rows")
        return Search.of(scan, query, column, hybrid=hybrid, reranker=reranker, options={"k": k, **options})

    def search_batch(
        self,
        queries: DataFrame,
        column: str | None = None,
        k: int = 10,
        where: Where = None,
        columns: Sequence[str] | None = None,
        *,
        query: str = "query",
        version: int | str | datetime | None = None,
        params: Parameters | None = None,
        **options: Unpack[SearchOptions],
    ) -> DataFrame:
        """The k best rows for each row of a Spark DataFrame, whose column ``query`` holds a vector or a text.

        The queries' other columns come with the rows. Few queries are answered by the driver, many by the executors.
        """
        request = BatchRequest(column=column, query=query, options={"k": k, **options})
        return cluster().search(self.scan(where, columns, version=version, params=params), queries, request)

    def warm(self, where: Where = None, columns: Sequence[str] | None = None) -> int:
        """Load what searches of the partitions that match a filter need into memory; returns the bytes held.

        That is the leaves, vectors and indices of texts of the columns named, of all that have an index unless named.
        """
        from lancepart.read.search_warm import warm

        return warm(self.scan(where), columns)

    def to_lance(self, where: Where = None, version: int | str | datetime | None = None) -> Dataset:
        """The table at a snapshot, or the rows that match, as one ``lance.LanceDataset`` in memory.

        No row is copied: it names the leaves' files, and hides rows that do not match by deletion files of its own.
        """
        from lancepart.read import union

        return union.of_scan(self.scan(where, version=version), indexed=True).dataset

    def join(
        self,
        other: ReadableTable | RowSource,
        on: Sequence[str | tuple[str, str]],
        how: JoinType = "inner",
        where: Where = None,
        columns: Sequence[str] | None = None,
        *,
        suffix: str = "_right",
        memory: int | None = None,
        params: Parameters | None = None,
    ) -> Join:
        """Join with another table, or with any rows, lazily: partition by partition where the partitions agree.

        Where they do not, the smaller side is broadcast or both are split by the keys; ``explain()`` says so. Rows that
        are no table are written to a temporary one first. ``params`` are the values of ``$name`` in the filter.
        """
        options: JoinOptions = {"suffix": suffix, "memory": memory, "params": params}
        if isinstance(other, ReadableTable):
            return Join.of(self.scan(), other.scan(), on, how, where, columns, **options)
        rows = TemporaryTable.of(self._given(other), key_types(on, self.schema))
        try:
            right = ReadableTable(rows.manifest).scan()
            join = Join.of(self.scan(), right, on, how, where, columns, **options)
        except BaseException:
            rows.remove()
            raise
        rows.belongs_to(join)
        return join

    def describe(self) -> TableDescription:
        """The table's columns, partitioning, size and snapshot, by its manifest alone."""
        from lancepart.maintain.describe import describe

        return describe(self._manifest, self._version)

    def to_dataset(self, where: Where = None, *, version: int | str | datetime | None = None) -> PartitionedDataset:
        """The table at one snapshot as a ``pyarrow.dataset.Dataset``, whose filters prune partitions."""
        from lancepart.read.dataset import PartitionedDataset

        return PartitionedDataset(self.scan(where, version=version))

    def lazy(self, where: Where = None, *, version: int | str | datetime | None = None) -> pl.LazyFrame:
        """The table at one snapshot as a Polars LazyFrame, whose predicates prune partitions."""
        from lancepart.read.polars_source import lazy_frame

        return lazy_frame(self.scan(where, version=version))

    def __datafusion_table_provider__(self, session: object = None) -> object:
        """The table as it is now for DataFusion's ``register_table``; every partition is part of it."""
        from lancepart.read import union

        return union.table_provider(self.scan(), session)

    def _given(self, data: RowSource, *, same_columns: bool = False) -> RowSource:
        """Paths as files, which are reached as the table is."""
        reachable = self._manifest.root.storage_options
        return files_at(data, storage_options=reachable, same_columns=same_columns) if is_path(data) else data
