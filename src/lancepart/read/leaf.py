"""Reading one leaf in the table's columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.layout.columns import AS_BYTES, constant, is_blob, is_marked, to_table_columns
from lancepart.layout.layouts import layout_for, match
from lancepart.layout.leaves import Leaf
from lancepart.layout.matching import Matching
from lancepart.layout.metadata import TableMetadata
from lancepart.model.filtering import matching_rows
from lancepart.model.nested import path_of, project
from lancepart.model.predicate import Constant, Predicate
from lancepart.model.schema import field_id
from lancepart.read import constants
from lancepart.read.kept import KEPT
from lancepart.read.lance_pushdown import lance_filter, shallow
from lancepart.read.leaf_memory import leaf_key
from lancepart.storage import leaf_handle
from lancepart.storage.cache import cache, handle_size
from lancepart.storage.dataset import Session
from lancepart.storage.leaf_handle import LeafHandle, LeafScanOptions
from lancepart.storage.root import Root
from lancepart.storage.translate import UnreadableError, storage_errors

ADDRESS = "__lancepart_address"
LEAF = "__lancepart_leaf"
"""The columns that identify a row: its address in a leaf, and the identity of that leaf (``Leaf.identity``)."""

_LEAST_ROWS = 1_024
_BATCH_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafTask:
    """What to read of one leaf, or of some of its fragments: plain values, so that it can be done elsewhere.

    ``ahead`` is how many fragments may be read ahead; Lance by itself may hold a whole leaf.
    """

    root: Root
    metadata: TableMetadata
    leaf: Leaf
    columns: tuple[str, ...]
    predicate: Predicate | None
    limit: int | None = None
    fragments: tuple[int, ...] | None = None
    ahead: int | None = None
    batch_rows: int | None = None


Opener = Callable[[LeafTask], LeafHandle]
Read = Callable[[LeafTask], Iterator[pa.RecordBatch]]
"""How the rows of one leaf are read."""


def in_large_batches(task: LeafTask, most_rows: int) -> LeafTask:
    """The same task in batches of a few megabytes, so that there are few; Lance's default if the size is unknown."""
    stats = task.leaf.stats
    if stats is None:
        return task
    width = max(1, stats.bytes // max(1, stats.rows))
    return replace(task, batch_rows=max(_LEAST_ROWS, min(most_rows, _BATCH_BYTES // width)))


def read(task: LeafTask) -> Iterator[pa.RecordBatch]:
    """The matching rows of a leaf, in the table's columns or fields inside them, batch by batch."""
    return projected(task, _read)


def projected(task: LeafTask, read: Callable[[LeafTask], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Rows in the table's columns or fields inside them, by what reads whole columns."""
    plain = task.metadata.plain_schema
    if all(name in plain.names for name in task.columns):
        yield from read(task)
        return
    tops = dict.fromkeys((path_of(name, plain) or (name,))[0] for name in task.columns)
    for batch in read(replace(task, columns=tuple(tops))):
        yield project(batch, task.columns)


def _read(task: LeafTask) -> Iterator[pa.RecordBatch]:
    if (begun := _begun(task)) is None:
        return
    task, handle = begun
    matching = match(leaf_handle.shape_of(handle), task.metadata, task.leaf)
    pushed, _ = _pushed(task, matching)
    if pushed is None or task.limit is not None:
        yield from scanned(task, handle, matching)
        return
    key = (task.root.uri, pushed)
    late = False if KEPT.keeps_many(key, task.leaf) else None
    fragments = None if task.fragments is None else len(task.fragments)
    yield from KEPT.counted(scanned(task, handle, matching, late=late), key, task.leaf, fragments)


def scanned(
    task: LeafTask, handle: LeafHandle, matching: Matching, *, late: bool | None = None
) -> Iterator[pa.RecordBatch]:
    """The matching rows of an open dataset whose columns are matched to the table's, batch by batch.

    ``late`` says whether all columns but the filter's are read of matching rows only; None leaves it to Lance.
    """
    pushed, residual = _pushed(task, matching)
    shown = _fields(task.metadata, _needed(task, residual))
    names = [name for field in shown if (name := matching.names.get(field_id(field) or 0)) is not None]
    options: LeafScanOptions = {
        "columns": names,
        "filter": pushed,
        **_handling(task, shown, matching),
        **_pace(task, handle),
    }
    if residual is None and task.limit is not None:
        options["limit"] = task.limit
    if late is not None:
        options["late_materialization"] = late
    with storage_errors(f"read the leaf at {task.leaf.location!r}", task.root):
        if not names:
            yield from _without_columns(handle, task, shown, matching, pushed, residual)
            return
        for batch in handle.scanner(**options).to_batches():
            yield from _shown(batch, task, shown, matching, residual)


def _pace(task: LeafTask, handle: LeafHandle) -> LeafScanOptions:
    """Which fragments Lance reads, and how much at once."""
    wanted: LeafScanOptions = {}
    if task.fragments is not None:
        wanted["fragments"] = leaf_handle.fragments_of(handle, task.fragments)
    if task.ahead is not None:
        wanted["fragment_readahead"] = task.ahead
    if task.batch_rows is not None:
        wanted["batch_size"] = task.batch_rows
    return wanted


def matching_addresses(task: LeafTask, opener: Opener | None = None) -> npt.NDArray[np.uint64]:
    """The addresses of the matching rows of a leaf."""
    if (begun := _begun(task, opener)) is None:
        return np.array([], dtype=np.uint64)
    task, handle = begun
    shape = leaf_handle.shape_of(handle)
    matching = match(shape, task.metadata, task.leaf)
    pushed, residual = _pushed(task, matching)
    if residual is None:
        with storage_errors(f"search the leaf at {task.leaf.location!r}", task.root):
            return leaf_handle.addresses(handle, pushed)
    found = [batch.column(ADDRESS).to_numpy() for batch in with_addresses(task, opener)]
    return np.concatenate(found) if found else np.array([], dtype=np.uint64)


def with_addresses(task: LeafTask, opener: Opener | None = None) -> Iterator[pa.RecordBatch]:
    """The matching rows of a leaf, with their addresses in a column."""
    if (begun := _begun(task, opener)) is None:
        return
    task, handle = begun
    shape = leaf_handle.shape_of(handle)
    matching = match(shape, task.metadata, task.leaf)
    pushed, residual = _pushed(task, matching)
    shown = _fields(task.metadata, _needed(task, residual))
    names = [name for field in shown if (name := matching.names.get(field_id(field) or 0)) is not None]
    options: LeafScanOptions = {
        "columns": names,
        "filter": pushed,
        **_handling(task, shown, matching),
        **_pace(task, handle),
    }
    options["with_row_address"] = True
    with storage_errors(f"read the leaf at {task.leaf.location!r}", task.root):
        for batch in handle.scanner(**options).to_batches():
            rows = to_table_columns(batch, shown, matching).append_column(ADDRESS, batch.column("_rowaddr"))
            kept = rows if residual is None else matching_rows(rows, residual)
            if kept.num_rows:
                yield kept.select([*task.columns, ADDRESS])


def physical_column(task: LeafTask, number: int) -> pa.Field | None:
    """A column of the table as a leaf has it, if it does."""
    shape = leaf_handle.shape_of(kept_open(task))
    name = match(shape, task.metadata, task.leaf).names.get(number)
    return None if name is None else shape.schema.field(name)


def count(task: LeafTask) -> int:
    """How many rows of a leaf match."""
    if (begun := _begun(task)) is None:
        return 0
    task, handle = begun
    return count_in(task, handle, match(leaf_handle.shape_of(handle), task.metadata, task.leaf))


def count_in(task: LeafTask, handle: LeafHandle, matching: Matching) -> int:
    """How many rows of an open dataset match."""
    pushed, residual = _pushed(task, matching)
    if residual is None:
        with storage_errors(f"count rows of the leaf at {task.leaf.location!r}", task.root):
            return _count(handle, task, pushed)
    return sum(batch.num_rows for batch in scanned(replace(task, columns=(), limit=None), handle, matching))


def _count(handle: LeafHandle, task: LeafTask, where: str | None) -> int:
    if task.fragments is None:
        return int(handle.count_rows(filter=where))
    return sum(int(part.count_rows(where)) for part in leaf_handle.fragments_of(handle, task.fragments))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLeaf:
    """A leaf opened for a task at one version: how its columns match, the pushed filter, and the rest of it.

    The latest version of a leaf without snapshots, under whose number another may come, is read by this handle alone.
    """

    task: LeafTask
    handle: LeafHandle
    matching: Matching
    pushed: str | None
    residual: Predicate | None

    def reopen(self, _: LeafTask) -> LeafHandle:
        """The leaf at the version that was opened, for other tasks on it."""
        return self.handle


def matched(task: LeafTask, handle: LeafHandle) -> Matching:
    """How the columns of an open leaf match the table's."""
    return match(leaf_handle.shape_of(handle), task.metadata, task.leaf)


def opened(
    task: LeafTask,
    opener: Opener,
    matcher: Callable[[LeafTask, LeafHandle], Matching] = matched,
) -> OpenLeaf | None:
    """A leaf opened for a task; None if no row can match."""
    if (begun := _begun(task, opener)) is None:
        return None
    settled, handle = begun
    matching = matcher(task, handle)
    pushed, residual = _pushed(settled, matching)
    return OpenLeaf(task=settled, handle=handle, matching=matching, pushed=pushed, residual=residual)


def _begun(task: LeafTask, opener: Opener | None = None) -> tuple[LeafTask, LeafHandle] | None:
    """The task with its filter answered by the path, and its leaf opened; None when there is nothing to read."""
    settled = _settled(task)
    if settled is None:
        return None
    try:
        return settled, (opener or kept_open)(settled)
    except UnreadableError:
        if layout_for(task.metadata).is_declared(task.root, task.leaf):
            return None
        raise


def _settled(task: LeafTask) -> LeafTask | None:
    """The task with its filter answered as far as the leaf's path can; None when no row matches."""
    if task.predicate is None or not task.leaf.constants:
        return task
    columns = {}
    for number, value in task.leaf.constants:
        field = task.metadata.columns[number]
        columns[field.name] = constant(value, field.type, 1)
    left = constants.settled(task.predicate, columns)
    if isinstance(left, Constant):
        return replace(task, predicate=None) if left.value is True else None
    return replace(task, predicate=left)


def open_leaf(task: LeafTask, *, session: Session | None = None) -> LeafHandle:
    """Open the leaf of a task, with caches that others share if a session is given."""
    try:
        return leaf_handle.open_leaf(task.root, task.leaf.location, task.leaf.read_version, session=session)
    except UnreadableError as error:
        raise type(error)(
            f"leaf {task.leaf.object_id!r} can't be read at version {task.leaf.read_version}: its files are gone or "
            f"damaged; the snapshot may have expired ({error})"
        ) from None


def kept_open(task: LeafTask) -> LeafHandle:
    """The leaf of a task, kept open for those who read it next if its version never changes."""
    key = leaf_key(task.root, task.leaf)
    if key is None:
        return open_leaf(task)
    found: LeafHandle = cache.get(("leaf", *key), lambda: open_leaf(task, session=cache.session), handle_size)
    return found


def _pushed(task: LeafTask, matching: Matching) -> tuple[str | None, Predicate | None]:
    """The filter to push to Lance in the leaf's own columns, and the filter to evaluate on the rows that it gives."""
    predicate = task.predicate
    if predicate is None:
        return None, None
    names, types, blobs = {}, {}, set()
    for field in _fields(task.metadata, sorted(predicate.columns())):
        number = field_id(field)
        if number is None or number not in matching.names:
            continue
        if _is_blob(field, matching):
            names[field.name] = matching.names[number]
            blobs.add(field.name)
        elif matching.types[number] == field.type:
            names[field.name], types[field.name] = matching.names[number], field.type
    pushed, exact = shallow(*lance_filter(predicate, types, blobs))
    return None if pushed is None else pushed.to_sql(names), None if exact else predicate


def _is_blob(field: pa.Field, matching: Matching) -> bool:
    number = field_id(field) or 0
    return is_marked(field) or any(map(is_blob, (field.type, matching.types.get(number, field.type))))


def _handling(task: LeafTask, shown: Sequence[pa.Field], matching: Matching) -> LeafScanOptions:
    """Blobs as bytes, unless none is shown and a filter tests whether there is one, for which no byte is needed."""
    tested = _fields(task.metadata, sorted(task.predicate.columns())) if task.predicate is not None else []
    unread = any(_is_blob(field, matching) for field in tested)
    if unread and not any(_is_blob(field, matching) for field in shown):
        return {}
    return {"blob_handling": AS_BYTES["blob_handling"]}


def _needed(task: LeafTask, residual: Predicate | None) -> list[str]:
    extra = sorted(residual.columns() - set(task.columns)) if residual is not None else []
    return [*task.columns, *extra]


def _fields(metadata: TableMetadata, names: Sequence[str]) -> list[pa.Field]:
    return [metadata.schema.field(metadata.schema.get_field_index(name)) for name in names]


def _shown(
    batch: pa.RecordBatch, task: LeafTask, shown: list[pa.Field], matching: Matching, residual: Predicate | None
) -> Iterator[pa.RecordBatch]:
    rows = to_table_columns(batch, shown, matching)
    if residual is not None:
        rows = matching_rows(rows, residual)
    if rows.num_rows:
        yield rows.select(list(task.columns)) if len(shown) != len(task.columns) else rows


def _without_columns(
    handle: LeafHandle,
    task: LeafTask,
    shown: list[pa.Field],
    matching: Matching,
    pushed: str | None,
    residual: Predicate | None,
) -> Iterator[pa.RecordBatch]:
    """Rows of which the leaf has none of the requested columns: as many NULLs as rows match."""
    remaining = _count(handle, task, pushed)
    while remaining > 0:
        size = min(remaining, 65_536)
        remaining -= size
        empty = pa.RecordBatch.from_struct_array(pa.array([{}] * size, pa.struct([])))
        yield from _shown(empty, task, shown, matching, residual)
