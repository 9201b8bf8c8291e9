"""What Spark's Python workers run for ``lance_search`` where the query comes from the rows of another table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from pyspark_lancepart.messages import plainly


@dataclass(frozen=True, slots=True)
class SearchFunction:
    """A search of one snapshot that waits for its query; on a worker it is the class that Spark expects there."""

    work: str

    def __reduce__(self) -> Any:
        """Spark's workers take nothing but a class, so that unpickling makes one."""
        return handler, (self.work,)


def handler(work: str) -> type:
    """A class whose ``eval`` is given the arguments that vary, as arrays."""
    return type("lance_search", (SearchHandler,), {"work": json.loads(work)})


class SearchHandler:
    """The best rows for each query; the table is opened once a task."""

    work: dict[str, Any]

    def eval(self, *values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows for one query; none for a query that is NULL. Spark takes no columns of Arrow's in lateral joins."""
        if None in values:
            return
        with plainly():
            found = self._found(dict(zip(self.work["varying"], values, strict=True)))
            columns = [_plain(found.column(field.name), field) for field in self._schema]
        yield from zip(*columns, strict=True)

    def _found(self, query: dict[str, Any]) -> pa.Table:
        from lancepart.spark.table_function import SearchCall
        from lancepart.spark.types import as_spark

        found = SearchCall(arguments={**self.work["arguments"], **query}).search(self._table).to_arrow()
        return pa.Table.from_batches(
            [as_spark(each, self._schema) for each in found.combine_chunks().to_batches()], self._schema
        )

    @cached_property
    def _schema(self) -> pa.Schema:
        from lancepart.spark.types import arrow_schema, read_schema

        return arrow_schema(read_schema(self.work["schema"]))

    @cached_property
    def _table(self) -> Any:
        from lancepart.spark import plain_tables
        from lancepart.storage.root import Root
        from lancepart.table import open_pinned
        from pyspark_lancepart import settle

        settle()
        work = self.work
        if work["plain"] is not None:
            return plain_tables.opened(Root.parse(work["root"], work["storage"]), work["plain"], work["version"])
        return open_pinned(work["root"], work["version"], storage_options=work["storage"])


def _plain(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """The values as Spark takes them from Python, which wants maps as dicts."""
    return [_with_dicts(each, field.type) for each in column.to_pylist()]


def _with_dicts(value: Any, kind: pa.DataType) -> Any:
    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_map(kind):
        return {_hashable(key): _with_dicts(item, kind.item_type) for key, item in value}
    if pa.types.is_struct(kind):
        return tuple(_with_dicts(value[each.name], each.type) for each in kind)
    return [_with_dicts(each, kind.value_type) for each in value]


def _hashable(key: Any) -> Any:
    return tuple(key.values()) if isinstance(key, dict) else tuple(key) if isinstance(key, list) else key
