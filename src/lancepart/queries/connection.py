"""A warehouse without Spark: its tables by name, and SQL over them."""

from __future__ import annotations

import contextlib
import html
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from lancepart.errors import (
    InvalidInputError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from lancepart.layout import same_definition
from lancepart.layout.addresses import public_options
from lancepart.layout.opening import refuse_table
from lancepart.model.aliases import Transactions
from lancepart.model.html_text import html_table
from lancepart.model.parameters import Parameters, with_values, without_comments
from lancepart.model.spec import PartitionField
from lancepart.model.suggest import near
from lancepart.model.table_names import joined, parts_of
from lancepart.queries.named_sources import source_of
from lancepart.queries.query import MOST_NAMES, Name, Query
from lancepart.queries.sources import LanceSource, QuerySource, TableSource
from lancepart.queries.warehouse import Entry, Warehouse
from lancepart.storage import lance_tables
from lancepart.storage.dataset import Dataset
from lancepart.table import PartitionedTable, create_table, open_table


def sql(query: str, *, params: Parameters | None = None, **tables: object) -> Query:
    """A query over tables that are given by name; lazy, like a scan.

    >>> sql("SELECT sum(n) AS total FROM t WHERE n < $most", params={"most": 3}, t=pa.table({"n": [1, 2, 3]})).to_list()
    [{'total': 3}]
    """
    sources: dict[Name, QuerySource] = {(name,): source_of(name, data) for name, data in tables.items()}
    return Query.of(_written(query, params), sources)


def _written(query: str, params: Parameters | None) -> str:
    """The text of a query with the values of its parameters, without comments."""
    if not isinstance(query, str):
        raise InvalidInputError(f"the query is {query!r}: give SQL in a string")
    return without_comments(with_values(query, params))


def connect(warehouse: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> Connection:
    """The warehouse at a path or a URI, the very one that Spark's catalog reads and writes."""
    return Connection(Warehouse.at(warehouse, storage_options))


class Connection:
    """Tables of a warehouse under dotted names, and SQL over them."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._tables: dict[str, PartitionedTable] = {}

    @property
    def root(self) -> str:
        """Where the warehouse is."""
        return self._warehouse.catalog.root.uri

    def sql(self, query: str, *, params: Parameters | None = None, **tables: object) -> Query:
        """A query over tables of the warehouse and over those given by name, which come first; lazy, like a scan."""
        text = _written(query, params)
        sources: dict[Name, QuerySource] = {(name,): source_of(name, data) for name, data in tables.items()}
        self._refuse_table()
        paths, lowered = list(self._paths(())), text.lower()
        for path in paths:
            named = path[-1].lower().replace('"', '""') in lowered
            if named and path not in sources and len(path) <= MOST_NAMES:
                sources[path] = self._source(path)
        return Query.of(text, sources, [*dict.fromkeys([*sources, *paths])])

    def _source(self, path: Name) -> QuerySource:
        found = self._warehouse.find(path)
        if found.partitioned:
            return TableSource(self._opened(found.location, None).scan())
        return LanceSource(self._plain(found.location, None))

    def table(self, name: str | Sequence[str], *, version: int | str | datetime | None = None) -> PartitionedTable:
        """A partitioned table of the warehouse."""
        path = _path(name)
        found = self._find(path)
        if not found.partitioned:
            raise UnsupportedOperationError(
                f"table {joined(path)!r} is a plain Lance table: use lance_table({joined(path)!r}), or SQL"
            )
        return self._opened(found.location, version)

    def lance_table(self, name: str | Sequence[str], *, version: int | str | None = None) -> Dataset:
        """A plain Lance table of the warehouse as a ``lance.LanceDataset``."""
        path = _path(name)
        found = self._find(path)
        if found.partitioned:
            raise UnsupportedOperationError(f"table {joined(path)!r} is partitioned: use table(…).to_lance()")
        return self._plain(found.location, version)

    def exists(self, name: str | Sequence[str]) -> bool:
        """Whether the warehouse has a table of this name."""
        try:
            self._warehouse.find(_path(name))
        except (TableNotFoundError, NamespaceNotFoundError):
            return False
        return True

    def list_tables(self, namespace: str | Sequence[str] = ()) -> list[str]:
        """The names of all tables, or of those in a namespace and beneath it."""
        self._refuse_table()
        return [joined(path) for path in self._paths(_path(namespace) if namespace else ())]

    def list_namespaces(self, namespace: str | Sequence[str] = ()) -> list[str]:
        """The names of the namespaces directly beneath one."""
        path = _path(namespace) if namespace else ()
        return [joined([*path, name]) for name in self._warehouse.namespaces(path)]

    def create_namespace(self, name: str | Sequence[str], *, exist_ok: bool = False) -> None:
        """Make a namespace."""
        try:
            self._warehouse.create_namespace(_path(name), {})
        except NamespaceAlreadyExistsError:
            if not exist_ok:
                shown = joined(_path(name))
                raise NamespaceAlreadyExistsError(f"{shown!r} already exists: exist_ok=True accepts that") from None
        except NamespaceNotFoundError:
            raise self._no_namespace(_path(name)[:-1]) from None

    def create_table(
        self,
        name: str | Sequence[str],
        schema: pa.Schema,
        partition_by: Sequence[str | PartitionField] = (),
        *,
        exist_ok: bool = False,
        transactions: Transactions = "strong",
        properties: Mapping[str, str] | None = None,
    ) -> PartitionedTable:
        """Make a table; it is there for others when its row in the warehouse is.

        Without partition fields it is one leaf, which ``update_spec`` can partition later.
        """
        path = _path(name)
        try:
            location, there = self._warehouse.place(path)
        except NamespaceNotFoundError:
            raise self._no_namespace(path[:-1]) from None
        if there is not None:
            return self._existing(path, schema, partition_by, transactions, exist_ok=exist_ok)
        root, options = self._where(location)
        made = create_table(root, schema, partition_by, transactions=transactions, storage_options=options)
        try:
            self._warehouse.publish(path, location, dict(properties or {}), replaced=None)
        except TableAlreadyExistsError:
            self._warehouse.discard(location)
            return self._existing(path, schema, partition_by, transactions, exist_ok=exist_ok)
        except BaseException:
            self._warehouse.discard(location)
            raise
        return made

    def _existing(
        self,
        path: Name,
        schema: pa.Schema,
        partition_by: Sequence[str | PartitionField],
        transactions: str,
        *,
        exist_ok: bool,
    ) -> PartitionedTable:
        if not exist_ok:
            raise TableAlreadyExistsError(f"table {joined(path)!r} already exists: exist_ok=True opens it")
        found = self.table(path)
        metadata = found.metadata
        same_definition.refuse_other(metadata, schema, partition_by, layout=metadata.layout, transactions=transactions)
        return found

    def drop_table(self, name: str | Sequence[str], *, missing_ok: bool = False) -> None:
        """Remove a table: its row first, then its files."""
        if not self._warehouse.drop(_path(name)) and not missing_ok:
            self._find(_path(name))

    def rename_table(self, name: str | Sequence[str], new_name: str | Sequence[str]) -> None:
        """Give a table another name or namespace."""
        try:
            self._warehouse.rename(_path(name), _path(new_name))
        except TableNotFoundError:
            self._find(_path(name))
            raise

    def _find(self, path: Name) -> Entry:
        try:
            return self._warehouse.find(path)
        except TableNotFoundError:
            known, name = self.list_tables(), joined(path)
            hint = near(name, known) or ("; list_tables() names those that do" if known else "; it has no tables yet")
            raise TableNotFoundError(f"table {name!r} does not exist in the warehouse{hint}") from None

    def _refuse_table(self) -> None:
        refuse_table(self._warehouse.catalog.root, self._warehouse.catalog.snapshot())

    def _no_namespace(self, path: Name) -> NamespaceNotFoundError:
        """The error about a namespace that is to hold something and does not exist."""
        known: list[str] = []
        with contextlib.suppress(NamespaceNotFoundError):
            known = self.list_namespaces(path[:-1])
        name = joined(path)
        return NamespaceNotFoundError(
            f"namespace {name!r} does not exist in the warehouse{near(name, known)}; create_namespace makes it"
        )

    def _paths(self, namespace: Name) -> Iterator[Name]:
        for name in self._warehouse.tables(namespace):
            yield (*namespace, name)
        for name in self._warehouse.namespaces(namespace):
            yield from self._paths((*namespace, name))

    def _where(self, location: str) -> tuple[str, dict[str, str]]:
        root = self._warehouse.catalog.root
        return root.uri_of(location), dict(root.storage_options)

    def _opened(self, location: str, version: int | str | datetime | None) -> PartitionedTable:
        root, options = self._where(location)
        if version is not None:
            return open_table(root, version=version, storage_options=options)
        known = self._tables.get(location)
        if known is None:
            known = self._tables[location] = open_table(root, storage_options=options)
        return known

    def _plain(self, location: str, version: int | str | None) -> Dataset:
        root, options = self._where(location)
        return lance_tables.opened(root, options, version)

    def __reduce__(self) -> tuple[Callable[[str, Mapping[str, str]], Connection], tuple[str, Mapping[str, str]]]:
        """Pickle the warehouse's root and options without credentials, which come from the environment."""
        return _reconnected, (self.root, public_options(self._warehouse.catalog.root))

    def _repr_html_(self) -> str:
        return f"<b>{html.escape(self.root)}</b>{html_table(['table'], [[name] for name in self.list_tables()])}"

    def __repr__(self) -> str:
        return f"Connection({self.root!r})"


def _reconnected(root: str, options: Mapping[str, str]) -> Connection:
    return connect(root, storage_options=options)


def _path(name: str | Sequence[str]) -> Name:
    return (parts_of(name) or ("",)) if isinstance(name, str) else tuple(name)
