"""``PartitionedTable``, the entry point: creating, opening and using a partitioned table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeGuard, Unpack

import pyarrow as pa

from lancepart.commit import distributed_write, hive, merging
from lancepart.commit.hive import HiveWrite
from lancepart.commit.idempotency import IdempotencyKey
from lancepart.commit.merge import Merge
from lancepart.commit.perform import perform
from lancepart.commit.result import CommitResult
from lancepart.commit.transaction import SNAPSHOT, Transaction
from lancepart.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from lancepart.layout import create, evolution, opening, same_definition
from lancepart.layout.hive_tree import TreeManifest
from lancepart.layout.layouts import refuse_past
from lancepart.layout.metadata import HIVE, MANIFEST, STRONG, WEAK, TableMetadata
from lancepart.model.aliases import RowSource
from lancepart.model.parameters import Parameters
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.where import Where
from lancepart.read.join import Join
from lancepart.read.rerank import Reranker
from lancepart.read.result import Result
from lancepart.read.scan import Scan, ScanOptions
from lancepart.read.search import Search
from lancepart.read.search_request import SearchOptions
from lancepart.storage import history
from lancepart.storage.dataset import Dataset
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.storage.row_files import files_at, is_path
from lancepart.storage.translate import is_secret
from lancepart.write.conform import is_rereadable, rereadable
from lancepart.write.elsewhere import check_distribution, is_spark, spark_frames

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import DataFrame

    from lancepart.catalog import DirectoryNamespace
    from lancepart.maintain.changes import Changes
    from lancepart.maintain.describe import TableDescription
    from lancepart.maintain.inspect import Inspect
    from lancepart.maintain.maintenance import Maintenance
    from lancepart.maintain.tags import Tags
    from lancepart.read.dataset import PartitionedDataset

Partitioning = Sequence[str | PartitionField]


def create_table(
    root: str | os.PathLike[str],
    schema: pa.Schema,
    partition_by: Partitioning,
    *,
    transactions: str = STRONG,
    layout: str = "manifest",
    exist_ok: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionedTable:
    """Make a partitioned table at a root of its own; with ``exist_ok`` open one that has the same definition.

    >>> import tempfile
    >>> schema = pa.schema([("id", pa.int64()), ("country", pa.string())])
    >>> table = create_table(tempfile.mkdtemp(), schema, ["country"])
    >>> _ = table.append(pa.table({"id": [1, 2], "country": ["US", "FR"]}))
    >>> table.scan("country = 'FR'").to_arrow().to_pylist()
    [{'id': 2, 'country': 'FR'}]
    """
    if layout not in (MANIFEST, HIVE):
        raise UnsupportedOperationError(f"layout {layout!r} is not supported: use {MANIFEST!r} or {HIVE!r}")
    if transactions not in (STRONG, WEAK):
        raise InvalidInputError(f"transactions is {transactions!r}: use {STRONG!r} or {WEAK!r}")
    parsed = Root.parse(root, storage_options)
    try:
        if layout == HIVE:
            return PartitionedTable(opening.create_hive(parsed, schema, partition_by))
        manifest = Manifest(parsed)
        create.create(manifest, schema, partition_by, transactions=transactions)
        return PartitionedTable(manifest)
    except TableAlreadyExistsError:
        if not exist_ok:
            raise
        there = PartitionedTable(opening.find(parsed))
        same_definition.refuse_other(there.metadata, schema, partition_by, layout=layout, transactions=transactions)
        return there


def exists(
    root: str | os.PathLike[str], *, namespace: Sequence[str] = (), storage_options: Mapping[str, str] | None = None
) -> bool:
    """Whether there is a partitioned table at a root."""
    from lancepart.maintain import drop

    return drop.exists(Root.parse(root, storage_options), namespace)


def drop_table(
    root: str | os.PathLike[str], *, missing_ok: bool = False, storage_options: Mapping[str, str] | None = None
) -> None:
    """Remove a table with all its partitions and snapshots; files beneath the root that are not its own stay."""
    from lancepart.maintain import drop

    try:
        drop.drop(Root.parse(root, storage_options))
    except TableNotFoundError:
        if not missing_ok:
            raise


def open_table(
    root: str | os.PathLike[str],
    *,
    namespace: Sequence[str] = (),
    version: int | str | datetime | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionedTable:
    """Open a partitioned table, as it is now or as it was at a snapshot: its number, a tag, or a moment.

    Whichever layout it has; ``namespace`` is the path of a Hive-style table inside a larger catalog.
    """
    manifest = opening.find(Root.parse(root, storage_options), namespace)
    table = PartitionedTable(manifest, version=_past(manifest, version))
    _ = table.metadata
    return table


def open_pinned(
    root: str | os.PathLike[str], version: int, *, storage_options: Mapping[str, str] | None = None
) -> PartitionedTable:
    """Open a table at the version that a plan was made at; one without snapshots as it is now."""
    manifest = opening.find(Root.parse(root, storage_options))
    known = None if isinstance(manifest, TreeManifest) else history.resolve(manifest, version)
    return PartitionedTable(manifest, version=known)


def _past(manifest: Manifest, version: int | str | datetime | None) -> int | None:
    """The snapshot that a user names, if the table can still be read as it was then."""
    if version is None:
        return None
    if isinstance(manifest, TreeManifest):
        refuse_past(manifest.snapshot())
    found = history.resolve(manifest, version)
    refuse_past(manifest.snapshot(found))
    return found


def scan_polars(
    root: str | os.PathLike[str],
    *,
    version: int | str | datetime | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> pl.LazyFrame:
    """A table as a Polars LazyFrame at one snapshot; predicates prune partitions."""
    return open_table(root, version=version, storage_options=storage_options).lazy()


def upgrade(
    root: str | os.PathLike[str],
    *,
    namespace: Sequence[str] = (),
    spark: Any = None,
    remove_old: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionedTable:
    """Turn the two older layouts into the current one; a call that was killed is gone on with by the next.

    The old tree stays until a call says ``remove_old=True``.
    """
    parsed = Root.parse(root, storage_options)
    from lancepart.maintain import upgrade as upgrades

    return PartitionedTable(upgrades.upgrade(parsed, namespace, spark=spark, remove_old=remove_old))


def _unpickled(
    root: str, namespace: Sequence[str], version: int | None, options: Mapping[str, str]
) -> PartitionedTable:
    return PartitionedTable(opening.find(Root.parse(root, options), namespace), version=version)


class PartitionedTable(Result):
    """One table out of many Lance tables, one a partition."""

    def __init__(self, manifest: Manifest, *, version: int | None = None) -> None:
        self._manifest = manifest
        self._version = version

    @property
    def metadata(self) -> TableMetadata:
        """The table's definition as it stands."""
        return create.load(self._manifest, self._manifest.snapshot(self._version))

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
        """The snapshot: the manifest's version."""
        return self._manifest.snapshot(self._version).version

    @property
    def root(self) -> str:
        """Where the table lives."""
        return self._manifest.root.uri

    @property
    def namespace(self) -> DirectoryNamespace:
        """The table as a catalog of its namespaces and leaves."""
        from lancepart.catalog import DirectoryNamespace

        options = {f"storage.{key}": value for key, value in self._manifest.root.storage_options.items()}
        return DirectoryNamespace(root=self.root, dir_listing_enabled=False, **options)

    @property
    def tags(self) -> Tags:
        """Names for snapshots."""
        if self.metadata.transactions != STRONG:
            refuse_past(self._manifest.snapshot(self._version))
        from lancepart.maintain.tags import Tags

        return Tags(self._manifest)

    @property
    def maintenance(self) -> Maintenance:
        """Upkeep."""
        self._require_current("maintenance")
        from lancepart.maintain.maintenance import Maintenance

        return Maintenance(self._manifest)

    def changes(self, since: int | str | datetime, until: int | str | datetime | None = None) -> Changes:
        """The rows inserted and deleted after one snapshot up to another, lazily; ``_change`` says which they are."""
        self._require_current("changes")
        from lancepart.maintain.changes import changes

        return changes(self._manifest, since, until)

    @property
    def inspect(self) -> Inspect:
        """What the table is made of, as Arrow tables."""
        from lancepart.maintain.inspect import Inspect

        return Inspect(self._manifest, self._version)

    def append(
        self, data: RowSource, *, idempotency_key: str | None = None, distribution: str = "auto"
    ) -> CommitResult | None:
        """Add rows in one atomic commit; the new snapshot's version (in weak mode ``None``, and not atomic).

        Of all calls with one ``idempotency_key``, whatever they do, only one commits. A Spark DataFrame is written by
        the executors: ``distribution`` says whether its rows are brought together by partition first.
        """
        data = self._given(data)
        check_distribution(distribution)
        if self._is_for_executors(data):
            return self._on_spark(data, distributed_write.APPEND, idempotency_key, distribution)
        return self._perform("append", lambda tx: tx.append(data), idempotency_key, again=is_rereadable(data))

    def overwrite(
        self,
        data: RowSource,
        where: str | None = None,
        *,
        whole_table: bool = False,
        idempotency_key: str | None = None,
        distribution: str = "auto",
    ) -> CommitResult | None:
        """Replace exactly the partitions that the data touches or, with ``where``, exactly the rows that match it.

        ``whole_table=True`` replaces all rows of the table.
        """
        data = self._given(data)
        check_distribution(distribution)
        if whole_table and where is not None:
            raise InvalidInputError("whole_table replaces all rows, and where only some: give one of them")
        where = "true" if whole_table else where
        if self._is_for_executors(data):
            mode = distributed_write.OVERWRITE if where is None else distributed_write.WHERE
            return self._on_spark(data, mode, idempotency_key, distribution, where=where)
        again = is_rereadable(data)
        return self._perform("overwrite", lambda tx: tx.overwrite(data, where), idempotency_key, again=again)

    def delete(self, where: str, *, idempotency_key: str | None = None) -> CommitResult | None:
        """Remove the rows that match."""
        return self._perform("delete", lambda tx: tx.delete(where), idempotency_key)

    def update(
        self, set: Mapping[str, str], where: str | None = None, *, idempotency_key: str | None = None
    ) -> CommitResult | None:
        """Set columns to SQL expressions in the rows that match; a row whose partition changes moves."""
        return self._perform("update", lambda tx: tx.update(set, where), idempotency_key)

    def upsert(
        self, data: RowSource, on: Sequence[str], *, idempotency_key: str | None = None, distribution: str = "auto"
    ) -> CommitResult | None:
        """Replace the rows that have the same key, in the columns that the data names, and add the others."""
        data = self._given(data)
        check_distribution(distribution)
        if self._is_for_executors(data) and not self._completed_here(data):
            return self._on_spark(data, distributed_write.UPSERT, idempotency_key, distribution, on=on)
        kept = rereadable(data)
        return self._perform("upsert", lambda tx: tx.upsert(kept, on), idempotency_key)

    def _given(self, data: RowSource) -> RowSource:
        """Paths as files, which are reached as the table is."""
        return files_at(data, storage_options=self._manifest.root.storage_options) if is_path(data) else data

    def merge(self, source: RowSource, on: Sequence[str]) -> Merge:
        """Match rows of a source by key; say what happens to them, and end with ``execute()``: one commit."""
        self._require_current("merge")

        def run(merge: Merge, key: str | None) -> CommitResult | None:
            kept = replace(merge, source=rereadable(merge.source))

            def act(tx: Transaction | HiveWrite) -> None:
                assert isinstance(tx, Transaction)
                merging.run(tx, kept)

            return self._perform("merge", act, key)

        return Merge(source=self._given(source), on=on, run=run)

    def transaction(self, isolation: str = SNAPSHOT, *, idempotency_key: str | None = None) -> Transaction:
        """Several changes as one commit: ``with table.transaction() as tx:``."""
        self._refuse_past()
        self._refuse_tree("transaction")
        once = None if idempotency_key is None else IdempotencyKey(key=idempotency_key)
        return Transaction(manifest=self._manifest, isolation=isolation, once=once)

    def _is_for_executors(self, data: RowSource) -> TypeGuard[DataFrame]:
        """Whether Spark's executors write the data; into a Hive-style tree the driver does, leaf by leaf."""
        return is_spark(data) and not isinstance(self._manifest, TreeManifest)

    def _completed_here(self, data: DataFrame) -> bool:
        """Whether rows lack columns of a table without snapshots, so that no executor could say what these held."""
        metadata = self.metadata
        return metadata.transactions != STRONG and bool(distributed_write.unnamed_columns(metadata, data.columns))

    def _on_spark(
        self, data: DataFrame, mode: str, key: str | None, distribution: str, **options: Any
    ) -> CommitResult | None:
        self._refuse_past()
        once = None if key is None else IdempotencyKey(key=key)
        frames = spark_frames()
        version: int | None = frames.write(
            self._manifest, data, self.schema, distribution, mode=mode, once=once, **options
        )
        return CommitResult(version) if version is not None and not isinstance(version, CommitResult) else version

    def _perform(
        self, operation: str, action: Callable[[Transaction | HiveWrite], None], key: str | None, *, again: bool = True
    ) -> CommitResult | None:
        self._refuse_past()
        if isinstance(self._manifest, TreeManifest):
            if key is not None:
                self._refuse_tree("an idempotency key")
            hive.write_hive(self._manifest, action)
            return None
        once = None if key is None else IdempotencyKey(key=key)
        return perform(self._manifest, operation, action, once=once, again=again)

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
        wanted = self._version if version is None else _past(self._manifest, version)
        snapshot = self._manifest.snapshot(wanted)
        metadata = create.load(self._manifest, snapshot)
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
        """Some rows, as few as are asked for."""
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
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        hybrid: tuple[object, object] | None = None,
        reranker: Reranker | None = None,
        version: int | str | datetime | None = None,
        **options: Unpack[SearchOptions],
    ) -> Search:
        """Find the rows whose vectors are nearest, whose texts match best, or both, lazily and at one snapshot.

        A query is a vector, a batch of them, a text or a query of ``lance.query``; ``where`` prunes partitions, and
        filters inside them before rows are ranked.
        """
        scan = self.scan(where, columns, version=version)
        return Search.of(scan, query, column, hybrid=hybrid, reranker=reranker, options={"k": k, **options})

    def to_lance(self, where: str | None = None, version: int | str | datetime | None = None) -> Dataset:
        """The table at a snapshot, or the rows that match, as one ``lance.LanceDataset`` in memory.

        No row is copied: it names the leaves' files, and hides rows that do not match by deletion files of its own.
        """
        from lancepart.read import union

        return union.of_scan(self.scan(where, version=version)).dataset

    def publish_lance(self, path: str | os.PathLike[str] | None = None) -> Dataset:
        """The latest snapshot as one Lance dataset on disk, for clients that know nothing of lancepart.

        It stands at a path or, without one, in ``union.lance`` beneath the root. Publishing again brings it up to date;
        until ``unpublish_lance`` nothing that it reads is collected.
        """
        self._refuse_past()
        from lancepart.maintain.publish import publish

        return publish(self._manifest, path)

    def unpublish_lance(self, path: str | os.PathLike[str] | None = None) -> None:
        """Remove a dataset that ``publish_lance`` made, and hold on to nothing for it any more."""
        self._refuse_past()
        from lancepart.maintain.publish import unpublish

        unpublish(self._manifest, path)

    def join(
        self,
        other: PartitionedTable,
        on: Sequence[str | tuple[str, str]],
        how: str = "inner",
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        suffix: str = "_right",
        memory: int | None = None,
    ) -> Join:
        """Join with another table partition by partition, lazily and without a shuffle, or say why that can't be."""
        if not isinstance(other, PartitionedTable):
            raise InvalidInputError(f"a table is joined with another of lancepart.open_table, not with {other!r}")
        return Join.of(self.scan(), other.scan(), on, how, where, columns, suffix=suffix, memory=memory)

    def update_spec(self, partition_by: Partitioning) -> PartitionSpec:
        """Partition new rows differently; old ones stay where they are."""
        self._refuse_past()
        self._require_current("update_spec")
        return create.change(self._manifest, lambda old: create.new_spec(old, partition_by)).spec

    def add_column(self, field: pa.Field) -> None:
        """Add a nullable column; rows written before read as NULL."""
        self._evolve(lambda old: evolution.add_column(old, field))

    def rename_column(self, old: str, new: str) -> None:
        """Give a column another name; nothing is rewritten."""
        self._evolve(lambda metadata: evolution.rename_column(metadata, old, new))

    def drop_column(self, name: str) -> None:
        """Remove a column; a partition source that is removed reads as NULL for new rows."""
        self._evolve(lambda old: evolution.drop_column(old, name))

    def widen_column(self, name: str, type: pa.DataType) -> None:
        """Give a column a type that holds all it held before, and more."""
        self._evolve(lambda old: evolution.widen_column(old, name, type))

    def _evolve(self, step: Callable[..., TableMetadata]) -> None:
        self._refuse_past()
        self._require_current("a change of the schema")
        create.change(self._manifest, step)

    def _refuse_past(self) -> None:
        if self._version is not None:
            raise UnsupportedOperationError(
                f"the table is open at snapshot {self._version}: open it without a version to write"
            )

    def _refuse_tree(self, what: str) -> None:
        if isinstance(self._manifest, TreeManifest):
            raise UnsupportedOperationError(f"{what}: a Hive-style table has no snapshots; lancepart.upgrade makes one")

    def _require_current(self, what: str) -> None:
        layout = self.metadata.layout
        if layout != MANIFEST:
            raise UnsupportedOperationError(
                f"{what} needs the current layout, and the table has the older {layout!r}: use lancepart.upgrade first"
            )

    def describe(self) -> TableDescription:
        """The table's columns, partitioning, size and snapshot, by its manifest alone."""
        from lancepart.maintain.describe import describe

        return describe(self._manifest, self._version)

    def to_dataset(
        self, where: str | None = None, *, version: int | str | datetime | None = None
    ) -> PartitionedDataset:
        """The table at one snapshot as a ``pyarrow.dataset.Dataset``, whose filters prune partitions."""
        from lancepart.read.dataset import PartitionedDataset

        return PartitionedDataset(self.scan(where, version=version))

    def lazy(self, where: str | None = None, *, version: int | str | datetime | None = None) -> pl.LazyFrame:
        """The table at one snapshot as a Polars LazyFrame, whose predicates prune partitions."""
        from lancepart.read.polars_source import lazy_frame

        return lazy_frame(self.scan(where, version=version))

    def __datafusion_table_provider__(self, session: object = None) -> object:
        """The table as it is now for DataFusion's ``register_table``; every partition is part of it."""
        from lancepart.read import union

        return union.table_provider(self.scan(), session)

    def __reduce__(self) -> tuple[Callable[..., PartitionedTable], tuple[str, list[str], int | None, dict[str, str]]]:
        """Pickle where the table is and how to reach it, without credentials: those come from the environment."""
        namespace = list(self._manifest.namespace) if isinstance(self._manifest, TreeManifest) else []
        options = {key: value for key, value in self._manifest.root.storage_options.items() if not is_secret(key)}
        return _unpickled, (self.root, namespace, self._version, options)

    def __repr__(self) -> str:
        try:
            return f"PartitionedTable({self.describe()})"
        except LanceNamespaceError:
            return f"PartitionedTable({self.root!r})"

    def _repr_html_(self) -> str:
        return self.inspect.html()
