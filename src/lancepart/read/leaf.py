"""Reading one leaf as the table shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from datafusion import SessionContext

from lancepart.errors import InvalidTableStateError
from lancepart.layout.columns import Matching, to_table_columns
from lancepart.layout.leaves import Leaf
from lancepart.layout.metadata import TableMetadata
from lancepart.model.predicate import Predicate, is_portable
from lancepart.model.schema import field_id
from lancepart.storage import leafdata
from lancepart.storage.root import Root
from lancepart.storage.translate import MissingError, storage_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafTask:
    """What to read of one leaf: plain values, so that it can be done elsewhere."""

    root: Root
    metadata: TableMetadata
    leaf: Leaf
    columns: tuple[str, ...]
    predicate: Predicate | None
    limit: int | None = None


def read(task: LeafTask) -> Iterator[Any]:
    """The matching rows of a leaf, in the table's columns, batch by batch."""
    handle = _open(task)
    shape = leafdata.shape_of(handle)
    matching = Matching.of(shape.schema, shape.native_ids)
    pushed = _pushed(task, matching)
    residual = task.predicate if task.predicate is not None and pushed is None else None
    shown = _fields(task.metadata, _needed(task, residual))
    names = [name for field in shown if (name := matching.names.get(field_id(field) or 0)) is not None]
    wanted = {"limit": task.limit} if residual is None and task.limit is not None else {}
    with storage_errors(f"read the leaf at {task.leaf.location!r}", task.root):
        if not names:
            yield from _without_columns(handle, task, shown, matching, pushed, residual)
            return
        for batch in handle.to_batches(columns=names, filter=pushed, **wanted):
            yield from _shown(batch, task, shown, matching, residual)


def count(task: LeafTask) -> int:
    """How many rows of a leaf match."""
    handle = _open(task)
    shape = leafdata.shape_of(handle)
    pushed = _pushed(task, Matching.of(shape.schema, shape.native_ids))
    if task.predicate is None or pushed is not None:
        with storage_errors(f"count rows of the leaf at {task.leaf.location!r}", task.root):
            return int(handle.count_rows(filter=pushed))
    return sum(batch.num_rows for batch in read(task))


def _open(task: LeafTask) -> Any:
    try:
        return leafdata.open_leaf(task.root, task.leaf.location, task.leaf.read_version)
    except MissingError as error:
        raise InvalidTableStateError(
            f"leaf {task.leaf.object_id!r} can't be read at version {task.leaf.read_version}: its files are gone; "
            f"the snapshot may have expired ({error})"
        ) from None


def _pushed(task: LeafTask, matching: Matching) -> str | None:
    """The filter in the leaf's own columns, if it can be asked there exactly."""
    predicate = task.predicate
    if predicate is None or not is_portable(predicate):
        return None
    names = {}
    for field in _fields(task.metadata, sorted(predicate.columns())):
        number = field_id(field)
        if number is None or number not in matching.names or matching.types[number] != field.type:
            return None
        names[field.name] = matching.names[number]
    return predicate.to_sql(names)


def _needed(task: LeafTask, residual: Predicate | None) -> list[str]:
    extra = sorted(residual.columns() - set(task.columns)) if residual is not None else []
    return [*task.columns, *extra]


def _fields(metadata: TableMetadata, names: Sequence[str]) -> list[Any]:
    return [metadata.schema.field(metadata.schema.get_field_index(name)) for name in names]


def _shown(
    batch: Any, task: LeafTask, shown: list[Any], matching: Matching, residual: Predicate | None
) -> Iterator[Any]:
    rows = to_table_columns(batch, shown, matching)
    if residual is not None:
        rows = matching_rows(rows, residual)
    if rows.num_rows:
        yield rows.select(list(task.columns)) if len(shown) != len(task.columns) else rows


def _without_columns(
    handle: Any, task: LeafTask, shown: list[Any], matching: Matching, pushed: str | None, residual: Predicate | None
) -> Iterator[Any]:
    """Rows of which the leaf has none of the columns asked for: as many NULLs as rows match."""
    remaining = int(handle.count_rows(filter=pushed))
    while remaining > 0:
        size = min(remaining, 65_536)
        remaining -= size
        empty = pa.RecordBatch.from_struct_array(pa.array([{}] * size, pa.struct([])))
        yield from _shown(empty, task, shown, matching, residual)


def matching_rows(rows: Any, predicate: Predicate) -> Any:
    """The rows of a batch that a filter matches, asked of DataFusion."""
    context = SessionContext()
    context.register_record_batches("rows", [[rows]])
    found = context.sql(f"SELECT * FROM rows WHERE {predicate.to_sql()}").collect()
    table = pa.Table.from_batches(found, schema=rows.schema) if found else rows.schema.empty_table()
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)
