"""Creating, opening and removing partitioned tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from lancepart.errors import (
    TableAlreadyExistsError,
    TableNotFoundError,
)
from lancepart.layout import opening, same_definition
from lancepart.layout.table_manifest import (
    catalog_of,
    has_commits,
    past_version,
    pinned_version,
)
from lancepart.model.aliases import TableLayout, Transactions
from lancepart.model.spec import PartitionField
from lancepart.storage.root import Root
from lancepart.table.partitioned import PartitionedTable

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import SparkSession


Partitioning = Sequence[str | PartitionField]


def create_table(
    root: str | os.PathLike[str],
    schema: pa.Schema,
    partition_by: Partitioning = (),
    *,
    transactions: Transactions = "strong",
    layout: TableLayout = "manifest",
    exist_ok: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionedTable:
    """Make a partitioned table at a root of its own; with ``exist_ok`` open one that has the same definition.

    Without partition fields it is one leaf, which ``update_spec`` can partition later.

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

    Whichever layout it has; ``namespace`` is the path of a table inside a larger catalog, such as a warehouse.
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


def open_held(
    root: str | os.PathLike[str],
    *,
    version: int | str | datetime | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionedTable:
    """Open a table to be read only, fixed at its newest snapshot or at another, which is opened once and stays open."""
    manifest = opening.find(Root.parse(root, storage_options))
    wanted = past_version(manifest, version)
    if has_commits(manifest):
        wanted = catalog_of(manifest).hold(wanted)
    return PartitionedTable(manifest, version=wanted)


def discard_new_table(table: PartitionedTable) -> bool:
    """Remove a table that was just created, and return whether it was removed.

    One that was committed to is kept, and so is one without snapshots.
    """
    if not has_commits(table._manifest):
        return False
    from lancepart.maintain.discard import discard_new

    return discard_new(catalog_of(table._manifest), table.metadata.salt or "")


def is_same_snapshot(one: PartitionedTable, other: PartitionedTable) -> bool:
    """Whether two tables of one root are at the same snapshot; a number may be reused after a rescue."""
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
    spark: SparkSession | None = None,
    remove_old: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionedTable:
    """Upgrade a table of an older layout to the current one; a call that was killed is resumed by the next.

    The old tree is kept until a call with ``remove_old=True``.
    """
    parsed = Root.parse(root, storage_options)
    from lancepart.maintain import upgrade as upgrades
    from lancepart.maintain.local import executor_for

    return PartitionedTable(upgrades.upgrade(parsed, namespace, executor=executor_for(spark), remove_old=remove_old))
