"""Tables as users name them: a root, or ``warehouse:namespace.table``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from lancepart.cli.usage import UsageError
from lancepart.errors import InvalidInputError, LanceNamespaceError, NamespaceNotFoundError, TableNotFoundError
from lancepart.layout.opening import refuse_in_warehouse
from lancepart.model.aliases import TableLayout, Transactions
from lancepart.model.suggest import near
from lancepart.model.table_names import joined, parts_of
from lancepart.queries.connection import connect
from lancepart.table import PartitionedTable, create_table, discard_new_table, open_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a table is: the root of a table, or of a catalog with the path of a table inside."""

    root: str
    path: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read a target; a local path that exists is a root, whatever it holds.

        >>> Target.parse("s3://bucket/warehouse:sales.events")
        Target(root='s3://bucket/warehouse', path=('sales', 'events'))
        >>> Target.parse("s3://bucket/events").path, Target.parse("data/wh:events").path
        ((), ('events',))
        """
        root, colon, name = text.rpartition(":")
        if not colon or "/" in name or os.path.exists(text):
            return cls(root=text)
        if not root:
            raise UsageError(f"{text!r} names no warehouse: write warehouse:namespace.table, or the table's root")
        return cls(root=root, path=path_of(name))

    def open(self, storage: Mapping[str, str], version: int | str | datetime | None = None) -> PartitionedTable:
        """Open the table."""
        try:
            return open_table(self.root, namespace=self.path, version=version, storage_options=storage or None)
        except (NamespaceNotFoundError, TableNotFoundError):
            if self.path:
                self._refuse_missing(storage)
            raise

    def _refuse_missing(self, storage: Mapping[str, str]) -> None:
        """Say which tables a warehouse has, if it is one, in place of the one that it has not."""
        try:
            known = connect(self.root, storage_options=storage or None).list_tables()
        except LanceNamespaceError:
            return
        name = joined(self.path)
        if known and name not in known:
            hint = near(name, known) or f"; lancepart ns list -r {self.root} shows them"
            raise TableNotFoundError(f"there is no table {name!r} in the warehouse {self.root!r}{hint}") from None

    def exists(self, storage: Mapping[str, str]) -> bool:
        """Whether there is a table; what else is at the root is an error."""
        try:
            self.open(storage)
        except (NamespaceNotFoundError, TableNotFoundError):
            return False
        return True

    def discard(self, made: PartitionedTable, storage: Mapping[str, str]) -> None:
        """Remove a table that was just made here, unless others have committed to it meanwhile."""
        if discard_new_table(made) and self.path:
            connect(self.root, storage_options=storage or None).drop_table(self.path, missing_ok=True)

    def create(
        self,
        schema: pa.Schema,
        by: Sequence[str],
        storage: Mapping[str, str],
        *,
        transactions: Transactions = "strong",
        layout: TableLayout = "manifest",
    ) -> PartitionedTable:
        """Make a table there; one of a warehouse has the current layout, and its namespace is made if it is missing."""
        if not self.path:
            options = storage or None
            return create_table(
                self.root, schema, by, transactions=transactions, layout=layout, storage_options=options
            )
        refuse_in_warehouse(layout, str(self))
        warehouse = connect(self.root, storage_options=storage or None)
        for depth in range(1, len(self.path)):
            warehouse.create_namespace(self.path[:depth], exist_ok=True)
        return warehouse.create_table(self.path, schema, by, transactions=transactions)

    def __str__(self) -> str:
        return f"{self.root}:{joined(self.path)}" if self.path else self.root


def path_of(name: str) -> tuple[str, ...]:
    """The path of a namespace or a table; names that hold dots are quoted with back-ticks.

    >>> path_of("sales.events"), path_of("`a.b`.c"), path_of("")
    (('sales', 'events'), ('a.b', 'c'), ())
    """
    try:
        return parts_of(name)
    except InvalidInputError as error:
        raise UsageError(str(error)) from None
