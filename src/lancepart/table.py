"""``PartitionedTable``, the entry point: creating, opening and using a partitioned table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVarTuple, Unpack

import pyarrow as pa

from lancepart.commit.actions import Action, Append, Delete, Overwrite, Update, Upsert
from lancepart.commit.idempotency import IdempotencyKey
from lancepart.commit.merge import Merge
from lancepart.commit.merge_action import MergeRows
from lancepart.commit.perform import perform
from lancepart.commit.result import CommitResult
from lancepart.commit.temporary import TemporaryTable
from lancepart.commit.transaction import SNAPSHOT, Transaction
from lancepart.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from lancepart.layout import create, evolution, opening, same_definition
from lancepart.layout.metadata import STRONG, TableMetadata
from lancepart.layout.table_manifest import (
    TableManifest,
    catalog_of,
    committing,
    load,
    maintained,
    namespace_of,
    past_version,
    pinned_version,
    travelling,
    tree_of,
)
from lancepart.model.aliases import RowSource
from lancepart.model.parameters import Parameters
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.where import Where
from lancepart.read.engine import cluster
from lancepart.read.join import Join
from lancepart.read.rerank import Reranker
from lancepart.read.result import Result
from lancepart.read.scan import Scan, ScanOptions
from lancepart.read.search import Search
from lancepart.read.search_request import BatchRequest, SearchOptions
from lancepart.storage.dataset import Dataset
from lancepart.storage.root import Root
from lancepart.storage.row_files import files_at, is_path
from lancepart.storage.translate import is_secret
from lancepart.write.conform import rereadable
from lancepart.write.frames import AUTO

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
Given = TypeVarTuple("Given")

_SCHEMA_CHANGE = "a change of the schema"


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
    parsed = Root.parse(root, storage_options)
    try:
        return PartitionedTable(
            opening.create_table(parsed, schema, partition_by, transactions=transactions, layout=layout)
        )
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
    table = PartitionedTable(manifest, version=past_version(manifest, version))
    _ = table.metadata
    return table


def open_pinned(
    root: str | os.PathLike[str], version: int, *, storage_options: Mapping[str, str] | None = None
) -> PartitionedTable:
    """Open a table at the version that a plan was made at; one without snapshots as it is now."""
    manifest = opening.find(Root.parse(root, storage_options))
    return PartitionedTable(manifest, version=pinned_version(manifest, version))


def hold_open(table: PartitionedTable) -> PartitionedTable:
    """The same table at its snapshot of now, which stays open: to be read only."""
    version = table.version
    catalog_of(table._manifest).hold(version)
    return PartitionedTable(table._manifest, version=version)


def discard_new_table(table: PartitionedTable) -> None:
    """Remove a table that was just made, unless somebody has committed to it; one without snapshots stays."""
    if tree_of(table._manifest) is None:
        from lancepart.maintain.discard import discard_new

        discard_new(catalog_of(table._manifest), table.metadata.salt or "")


def is_same_snapshot(one: PartitionedTable, other: PartitionedTable) -> bool:
    """Whether two tables of one root are at the same snapshot; a number may come again after a rescue."""
    snapshots = [catalog_of(table._manifest).snapshot(table._version) for table in (one, other)]
    return snapshots[0].file_names == snapshots[1].file_names


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
    from lancepart.maintain.local import executor_for

    return PartitionedTable(upgrades.upgrade(parsed, namespace, executor=executor_for(spark), remove_old=remove_old))


def _unpickled(
    root: str, namespace: Sequence[str], version: int | None, options: Mapping[str, str]
) -> PartitionedTable:
    return PartitionedTable(opening.find(Root.parse(root, options), namespace), version=version)


class PartitionedTable(Result):
    """One table out of many Lance tables, one a partition."""

    def __init__(self, manifest: TableManifest, *, version: int | None = None) -> None:
        self._manifest = manifest
        self._version = version

    @property
    def metadata(self) -> TableMetadata:
        """The table's definition as it stands."""
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
        from lancepart.maintain.tags import Tags

        return Tags(travelling(self._manifest, self._version))

    @property
    def maintenance(self) -> Maintenance:
        """Upkeep."""
        from lancepart.maintain.maintenance import Maintenance

        return Maintenance(maintained(self._manifest, "maintenance", self._version))

    def changes(self, since: int | str | datetime, until: int | str | datetime | None = None) -> Changes:
        """The rows inserted and deleted after one snapshot up to another, lazily; ``_change`` says which they are."""
        from lancepart.maintain.changes import changes

        return changes(maintained(self._manifest, "changes", self._version), since, until)

    @property
    def inspect(self) -> Inspect:
        """What the table is made of, as Arrow tables."""
        from lancepart.maintain.inspect import Inspect

        return Inspect(self._manifest, self._version)

    def append(
        self, data: RowSource, *, idempotency_key: str | None = None, distribution: str = AUTO
    ) -> CommitResult | None:
        """Add rows in one atomic commit; the new snapshot's version (in weak mode ``None``, and not atomic).

        Of all calls with one ``idempotency_key``, whatever they do, only one commits. A Spark DataFrame is written by
        the executors: ``distribution`` says whether its rows are brought together by partition first.
        """
        return self._perform(Append(data=self._given(data), distribution=distribution), idempotency_key)

    def overwrite(
        self,
        data: RowSource,
        where: str | None = None,
        *,
        whole_table: bool = False,
        idempotency_key: str | None = None,
        distribution: str = AUTO,
    ) -> CommitResult | None:
        """Replace exactly the partitions that the data touches or, with ``where``, exactly the rows that match it.

        ``whole_table=True`` replaces all rows of the table.
        """
        data = self._given(data)
        if whole_table and where is not None:
            raise InvalidInputError("whole_table replaces all rows, and where only some: give one of them")
        where = "true" if whole_table else where
        return self._perform(Overwrite(data=data, where=where, distribution=distribution), idempotency_key)

    def delete(self, where: str, *, idempotency_key: str | None = None) -> CommitResult | None:
        """Remove the rows that match."""
        return self._perform(Delete(where=where), idempotency_key)

    def update(
        self, set: Mapping[str, str], where: str | None = None, *, idempotency_key: str | None = None
    ) -> CommitResult | None:
        """Set columns to SQL expressions in the rows that match; a row whose partition changes moves."""
        return self._perform(Update(values=set, where=where), idempotency_key)

    def upsert(
        self, data: RowSource, on: Sequence[str], *, idempotency_key: str | None = None, distribution: str = AUTO
    ) -> CommitResult | None:
        """Replace the rows that have the same key, in the columns that the data names, and add the others."""
        kept = rereadable(self._given(data, same_columns=True))
        return self._perform(Upsert(data=kept, on=on, distribution=distribution), idempotency_key)

    def _given(self, data: RowSource, *, same_columns: bool = False) -> RowSource:
        """Paths as files, which are reached as the table is."""
        reachable = self._manifest.root.storage_options
        return files_at(data, storage_options=reachable, same_columns=same_columns) if is_path(data) else data

    def merge(self, source: RowSource, on: Sequence[str]) -> Merge:
        """Match rows of a source by key; say what happens to them, and end with ``execute()``: one commit."""
        maintained(self._manifest, "merge", self._version)
        return Merge(source=self._given(source, same_columns=True), on=on, run=self._merge)

    def _merge(self, merge: Merge, key: str | None) -> CommitResult | None:
        kept = replace(merge, source=rereadable(merge.source))
        return self._perform(MergeRows(merge=kept), key)

    def transaction(self, isolation: str = SNAPSHOT, *, idempotency_key: str | None = None) -> Transaction:
        """Several changes as one commit: ``with table.transaction() as tx:``."""
        self._refuse_past()
        manifest = committing(self._manifest, "transaction")
        return Transaction(manifest=manifest, isolation=isolation, once=_once(idempotency_key))

    def _perform(self, action: Action, key: str | None) -> CommitResult | None:
        self._refuse_past()
        return perform(self._manifest, action, once=_once(key))

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

    def search_batch(
        self,
        queries: DataFrame,
        column: str | None = None,
        k: int = 10,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        query: str = "query",
        **options: Unpack[SearchOptions],
    ) -> DataFrame:
        """The k best rows for each row of a Spark DataFrame, whose column ``query`` holds a vector or a text.

        The queries' other columns come with the rows. Few queries are answered by the driver, many by the executors.
        """
        request = BatchRequest(column=column, query=query, options={"k": k, **options})
        return cluster().search(self.scan(where, columns), queries, request)

    def warm(self, where: str | None = None, columns: Sequence[str] | None = None) -> int:
        """Bring into memory what searches of the partitions that a filter leaves need; how many bytes are held then.

        That is the leaves, vectors and indices of texts of the columns named, of all that have an index unless named.
        """
        from lancepart.read.search_warm import warm

        return warm(self.scan(where), columns)

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
        other: PartitionedTable | RowSource,
        on: Sequence[str | tuple[str, str]],
        how: str = "inner",
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        suffix: str = "_right",
        memory: int | None = None,
    ) -> Join:
        """Join with another table, or with any rows, lazily: partition by partition where the partitions agree.

        Where they do not, the smaller side is broadcast or both are split by the keys; ``explain()`` says so. Rows that
        are no table are written to a temporary one first.
        """
        if isinstance(other, PartitionedTable):
            return Join.of(self.scan(), other.scan(), on, how, where, columns, suffix=suffix, memory=memory)
        rows = TemporaryTable.of(self._given(other))
        try:
            right = PartitionedTable(rows.manifest).scan()
            join = Join.of(self.scan(), right, on, how, where, columns, suffix=suffix, memory=memory)
        except BaseException:
            rows.remove()
            raise
        rows.belongs_to(join)
        return join

    def update_spec(self, partition_by: Partitioning) -> PartitionSpec:
        """Partition new rows differently; old ones stay where they are."""
        return self._evolve("update_spec", create.new_spec, partition_by).spec

    def add_column(self, field: pa.Field) -> None:
        """Add a nullable column; rows written before read as NULL."""
        self._evolve(_SCHEMA_CHANGE, evolution.add_column, field)

    def rename_column(self, old: str, new: str) -> None:
        """Give a column another name; nothing is rewritten."""
        self._evolve(_SCHEMA_CHANGE, evolution.rename_column, old, new)

    def drop_column(self, name: str) -> None:
        """Remove a column; a partition source that is removed reads as NULL for new rows."""
        self._evolve(_SCHEMA_CHANGE, evolution.drop_column, name)

    def widen_column(self, name: str, type: pa.DataType) -> None:
        """Give a column a type that holds all it held before, and more."""
        self._evolve(_SCHEMA_CHANGE, evolution.widen_column, name, type)

    def _evolve(
        self, what: str, step: Callable[[TableMetadata, *Given], TableMetadata], *given: *Given
    ) -> TableMetadata:
        self._refuse_past()
        return create.change(maintained(self._manifest, what), step, *given)

    def _refuse_past(self) -> None:
        if self._version is not None:
            raise UnsupportedOperationError(
                f"the table is open at snapshot {self._version}: open it without a version to write"
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
        namespace = list(namespace_of(self._manifest))
        options = {key: value for key, value in self._manifest.root.storage_options.items() if not is_secret(key)}
        return _unpickled, (self.root, namespace, self._version, options)

    def __repr__(self) -> str:
        try:
            return f"PartitionedTable({self.describe()})"
        except LanceNamespaceError:
            return f"PartitionedTable({self.root!r})"

    def _repr_html_(self) -> str:
        return self.inspect.html()


def _once(key: str | None) -> IdempotencyKey | None:
    return None if key is None else IdempotencyKey(key=key)
