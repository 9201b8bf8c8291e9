"""Rows of leaves in an order: the first few by a heap, all of them by a sort that goes through the disk if need be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancepart.errors import InvalidInputError, TableColumnNotFoundError, reraise_interrupt
from lancepart.model.nested import field_of, path_of
from lancepart.model.suggest import near
from lancepart.read.group import as_shown, bounded_session
from lancepart.read.leaf import LeafTask, Read
from lancepart.read.row_ids import ROW_ID
from lancepart.read.streams import LeafSource

_BATCH_ROWS = 8_192
_ITEM = re.compile(r"^(?P<name>.+?)(?:\s+(?P<way>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?$", re.IGNORECASE)

_BETWEEN_COMMAS = re.compile(r"""(?:[^,"`]|"(?:[^"]|"")*"|`(?:[^`]|``)*`)+""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One column to sort by; by default NULLs are larger than all values, as in PostgreSQL."""

    column: str
    descending: bool = False
    nulls_first: bool = False

    def to_sql(self, name: str) -> str:
        """The item of an ORDER BY over a column of another name."""
        return f"{name} {'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


def parse_order(order_by: str | Sequence[str] | None, schema: pa.Schema, *, row_ids: bool) -> tuple[Order, ...]:
    """Read what to sort by: columns, or fields inside them, each with ASC or DESC and NULLS FIRST or LAST.

    >>> parse_order(["n DESC", "s"], pa.schema([("n", pa.int64()), ("s", pa.string())]), row_ids=False)[0]
    Order(column='n', descending=True, nulls_first=True)
    """
    if order_by is None:
        return ()
    items = _items(order_by, schema) if isinstance(order_by, str) else list(order_by)
    return tuple(_parsed(item, schema, row_ids=row_ids) for item in items)


def _items(order_by: str, schema: pa.Schema) -> list[str]:
    """What is between the commas of a text, those in quotes left alone; one name that holds a comma is that name."""
    found = _ITEM.match(order_by.strip())
    whole = found is not None and path_of(found["name"], schema) is not None
    return [order_by] if whole else _BETWEEN_COMMAS.findall(order_by) or [order_by]


def _unquoted(name: str, schema: pa.Schema) -> str:
    """A column by its own name, and a field inside one as it was written."""
    path = path_of(name, schema)
    return path[0] if path is not None and len(path) == 1 else name


def _parsed(item: object, schema: pa.Schema, *, row_ids: bool) -> Order:
    if not isinstance(item, str) or not item.strip():
        raise InvalidInputError(f"order_by has {item!r}: give names of columns, as in ['day DESC', 'id']")
    if path_of(item, schema) is not None:
        return Order(column=_unquoted(item, schema))
    found = _ITEM.match(item.strip())
    assert found is not None
    name = found["name"]
    if path_of(name, schema) is None and not (row_ids and name == ROW_ID):
        raise TableColumnNotFoundError(
            f"there is no column {name!r} to order by: the table has {', '.join(schema.names)}"
            f"{near(name, schema.names)}"
        )
    descending = (found["way"] or "").lower() == "desc"
    nulls_first = descending if found["nulls"] is None else found["nulls"].lower() == "first"
    return Order(column=_unquoted(name, schema), descending=descending, nulls_first=nulls_first)


def ordered(
    tasks: Sequence[LeafTask],
    read: Read,
    schema: pa.Schema,
    order: Sequence[Order],
    *,
    table: pa.Schema,
    limit: int | None,
    offset: int,
    memory: int,
) -> Iterator[pa.RecordBatch]:
    """The rows of leaves in the columns of ``schema``, sorted within about ``memory`` bytes."""
    extra = [item.column for item in order if item.column not in schema.names]
    needed = pa.schema([*schema, *(field_of(name, table) for name in dict.fromkeys(extra))])
    context = bounded_session(memory, _BATCH_ROWS)
    source = LeafSource(tasks, needed, _BATCH_ROWS, read=read)
    if source.is_empty:
        return
    context.register_dataset("rows", source)
    shown = ", ".join(f"c{at}" for at in range(len(schema)))
    sort = ", ".join(item.to_sql(f"c{needed.get_field_index(item.column)}") for item in order)
    ends = ("" if limit is None else f" LIMIT {limit}") + (f" OFFSET {offset}" if offset else "")
    try:
        for batch in context.sql(f"SELECT {shown} FROM rows ORDER BY {sort}{ends}").execute_stream():
            rows = batch.to_pyarrow()
            if rows.num_rows:
                yield as_shown(rows, schema)
    except Exception as error:
        reraise_interrupt(error)
        if source.error is not None:
            raise source.error from None
        raise
    finally:
        source.close()
