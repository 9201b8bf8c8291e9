"""``PartitionedTable``, the entry point: reading, writing, evolving and maintaining a partitioned table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVarTuple

import pyarrow as pa

from lancepart.commit.actions import Action, Append, Delete, Overwrite, Update, Upsert
from lancepart.commit.idempotency import IdempotencyKey
from lancepart.commit.merge import Merge
from lancepart.commit.merge_action import MergeRows
from lancepart.commit.perform import perform
from lancepart.commit.result import CommitResult
from lancepart.commit.transaction import Transaction
from lancepart.errors import (
    InvalidInputError,
    LanceNamespaceError,
    UnsupportedOperationError,
)
from lancepart.layout import create, evolution, opening
from lancepart.layout.addresses import public_options
from lancepart.layout.metadata import TableMetadata
from lancepart.layout.table_manifest import (
    committing,
    maintained,
    namespace_of,
    travelling,
)
from lancepart.model.aliases import Distribution, Isolation, RowSource
from lancepart.model.parameters import Parameters
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.where import Condition, Where, text_of, update_texts
from lancepart.storage.dataset import Dataset
from lancepart.storage.root import Root
from lancepart.table.readable import ReadableTable
from lancepart.write.conform import rereadable

if TYPE_CHECKING:
    from lancepart.maintain.changes import Changes
    from lancepart.maintain.maintenance import Maintenance
    from lancepart.maintain.tags import Tags

Given = TypeVarTuple("Given")

_SCHEMA_CHANGE = "a change of the schema"


class PartitionedTable(ReadableTable):
    """One table out of many Lance tables, one a partition."""

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

    def append(
        self, data: RowSource, *, idempotency_key: str | None = None, distribution: Distribution = "auto"
    ) -> CommitResult | None:
        """Add rows in one atomic commit; the new snapshot's version (in weak mode ``None``, and not atomic).

        Of all calls with one ``idempotency_key``, whatever they do, only one commits. A Spark DataFrame is written by
        the executors: ``distribution`` says whether its rows are brought together by partition first.
        """
        return self._perform(Append(data=self._given(data), distribution=distribution), idempotency_key)

    def overwrite(
        self,
        data: RowSource,
        where: Where = None,
        *,
        whole_table: bool = False,
        params: Parameters | None = None,
        idempotency_key: str | None = None,
        distribution: Distribution = "auto",
    ) -> CommitResult | None:
        """Replace exactly the partitions that the data touches or, with ``where``, exactly the rows that match it.

        ``whole_table=True`` replaces all rows of the table.
        """
        data = self._given(data)
        if whole_table and where is not None:
            raise InvalidInputError("whole_table replaces all rows, and where only some: give one of them")
        test = "true" if whole_table else text_of(where, self._columns, params)
        return self._perform(Overwrite(data=data, where=test, distribution=distribution), idempotency_key)

    def delete(
        self, where: Condition, *, params: Parameters | None = None, idempotency_key: str | None = None
    ) -> CommitResult | None:
        """Remove the rows that match; ``params`` are the values of ``$name`` in the filter."""
        return self._perform(Delete(where=text_of(where, self._columns, params)), idempotency_key)

    def update(
        self,
        set: Mapping[str, str],
        where: Where = None,
        *,
        params: Parameters | None = None,
        idempotency_key: str | None = None,
    ) -> CommitResult | None:
        """Set columns to SQL expressions in the rows that match; a row whose partition changes moves.

        ``params`` are the values of ``$name`` in the expressions and in the filter.
        """
        values, test = update_texts(set, where, self._columns, params)
        return self._perform(Update(values=values, where=test), idempotency_key)

    def upsert(
        self,
        data: RowSource,
        on: Sequence[str],
        *,
        idempotency_key: str | None = None,
        distribution: Distribution = "auto",
    ) -> CommitResult | None:
        """Replace the rows that have the same key, in the columns that the data names, and add the others."""
        kept = rereadable(self._given(data, same_columns=True))
        return self._perform(Upsert(data=kept, on=on, distribution=distribution), idempotency_key)

    def merge(self, source: RowSource, on: Sequence[str]) -> Merge:
        """Match rows of a source by key; say what happens to them, and end with ``execute()``: one commit."""
        maintained(self._manifest, "merge", self._version)
        return Merge(source=self._given(source, same_columns=True), on=on, run=self._merge)

    def _merge(self, merge: Merge, key: str | None) -> CommitResult | None:
        kept = replace(merge, source=rereadable(merge.source))
        return self._perform(MergeRows(merge=kept), key)

    def transaction(self, isolation: Isolation = "snapshot", *, idempotency_key: str | None = None) -> Transaction:
        """Several changes as one commit: ``with table.transaction() as tx:``."""
        self._refuse_past()
        manifest = committing(self._manifest, "transaction")
        return Transaction(manifest=manifest, isolation=isolation, idempotency=_idempotency(idempotency_key))

    def _columns(self) -> pa.Schema:
        return self.schema

    def _perform(self, action: Action, key: str | None) -> CommitResult | None:
        self._refuse_past()
        return perform(self._manifest, action, idempotency=_idempotency(key))

    def publish_lance(self, path: str | os.PathLike[str] | None = None) -> Dataset:
        """The latest snapshot as one Lance dataset on disk, for clients without lancepart.

        It is written to a path or, without one, to ``union.lance`` beneath the root. Publishing again updates it; until
        ``unpublish_lance`` none of its files are collected.
        """
        self._refuse_past()
        from lancepart.maintain.publish_union import publish

        return publish(self._manifest, path)

    def unpublish_lance(self, path: str | os.PathLike[str] | None = None) -> None:
        """Remove a dataset that ``publish_lance`` made; its snapshot is no longer kept for it."""
        self._refuse_past()
        from lancepart.maintain.publish_union import unpublish

        unpublish(self._manifest, path)

    def update_spec(self, partition_by: Sequence[str | PartitionField]) -> PartitionSpec:
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
        """Change a column to a wider type."""
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

    def __reduce__(self) -> tuple[Callable[..., PartitionedTable], tuple[str, list[str], int | None, dict[str, str]]]:
        """Pickle the table's root and options without credentials, which come from the environment."""
        namespace = list(namespace_of(self._manifest))
        return _unpickled, (self.root, namespace, self._version, public_options(self._manifest.root))

    def __repr__(self) -> str:
        try:
            return f"PartitionedTable({self.describe()})"
        except LanceNamespaceError:
            return f"PartitionedTable({self.root!r})"

    def _repr_html_(self) -> str:
        return self.inspect.html()


def _unpickled(
    root: str, namespace: Sequence[str], version: int | None, options: Mapping[str, str]
) -> PartitionedTable:
    return PartitionedTable(opening.find(Root.parse(root, options), namespace), version=version)


def _idempotency(key: str | None) -> IdempotencyKey | None:
    return None if key is None else IdempotencyKey(key=key)
