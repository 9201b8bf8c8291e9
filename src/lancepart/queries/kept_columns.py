"""Columns that queries read again and again, kept in memory: decoding them costs more than most queries do with them.

A table is registered with the columns that a query needs. The others are in its schema too, as a function that fails:
DataFusion drops what is not needed before it reads, and should it not, the query is run once more without all this.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from functools import partial

import pyarrow as pa
from datafusion import SessionContext, udf

from lancepart.errors import InternalError
from lancepart.layout.leaves import Leaf
from lancepart.queries.floats import quoted
from lancepart.storage import lance_tables
from lancepart.storage.cache import cache
from lancepart.storage.snapshot import Snapshot

_BATCH = 16_384
_SHARE = 4
"""The columns that one table has in memory for a query take at most this part of the cache."""
_MISSING = "lancepart column not in memory"


def read_before(snapshot: Snapshot, key: Hashable, columns: Sequence[str]) -> bool:
    """Whether an earlier query on the snapshot read these columns: what is read once is not worth keeping."""
    seen: set[str] = snapshot.derived(("columns read", key), set)
    known = seen.issuperset(columns)
    seen.update(columns)
    return known


def would_fit(
    leaves: Sequence[Leaf], schema: pa.Schema, columns: Sequence[str], text_bytes: Callable[[Sequence[str]], float]
) -> bool:
    """Whether columns of leaves take so little memory that they are kept, by their types and files.

    Files tell only how large the texts can be. If that is too much for the table's part of the cache and not for all of
    it, ``text_bytes`` decides: how many bytes the texts of a row take.
    """
    rows = sum(leaf.stats.rows for leaf in leaves if leaf.stats is not None)
    stored = sum(leaf.stats.bytes for leaf in leaves if leaf.stats is not None)
    kinds = {name: schema.field(name).type for name in columns}
    texts = [name for name, kind in kinds.items() if pa.types.is_string(kind) or pa.types.is_large_string(kind)]
    others = [kind for name, kind in kinds.items() if name not in texts]
    if not all(pa.types.is_primitive(kind) or pa.types.is_decimal(kind) for kind in others):
        return False
    part = cache.capacity // _SHARE
    fixed: int = sum(rows * max(8, kind.bit_width) // 8 for kind in others)
    most = fixed + 8 * rows * len(texts) + (2 * stored if texts else 0)
    if most <= part or not texts or most > cache.capacity:
        return most <= part
    return fixed + rows * text_bytes(texts) <= part


def kept(key: Hashable, dataset: object, schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """Columns of an open Lance table, of which those that are not in memory yet are read in one go."""
    absent = [name for name in columns if not cache.holds(("column", key, name))]
    found = lance_tables.read_whole(dataset, absent).combine_chunks() if absent else None

    def column(name: str) -> pa.ChunkedArray:
        read = found if found is not None and name in absent else lance_tables.read_whole(dataset, [name])
        return read.column(name).cast(schema.field(name).type)

    return pa.table({name: cache.get(("column", key, name), partial(column, name), _size) for name in columns})


def are_kept(key: Hashable, columns: Sequence[str]) -> bool:
    """Whether all of some columns are in memory."""
    return all(cache.holds(("column", key, name)) for name in columns)


def _size(column: pa.ChunkedArray) -> int:
    return int(column.nbytes)


def register(context: SessionContext, name: str, rows: pa.Table, schema: pa.Schema) -> None:
    """Register a table, by its quoted name, of which only some columns are there."""
    whole = rows.schema.names == schema.names
    own = name if whole else f'{name[:-1]} in memory"'
    batches = rows.to_batches(max_chunksize=_BATCH) or [pa.RecordBatch.from_pylist([], schema=rows.schema)]
    count = min(len(batches), os.cpu_count() or 1)
    context.register_record_batches(own, [batches[index::count] for index in range(count)])
    if whole:
        return
    first = rows.schema.field(0)
    shown = []
    for field in schema:
        column = quoted(field.name)
        if field.name not in rows.schema.names:
            function = f"{_MISSING}: {field.name}"
            context.register_udf(udf(_refused(field.name), [first.type], field.type, "volatile", function))
            column = f"{quoted(function)}({quoted(first.name)}) AS {column}"
        shown.append(column)
    context.sql(f"CREATE VIEW {name} AS SELECT {', '.join(shown)} FROM {own}")


def was_missed(error: BaseException) -> bool:
    """Whether a query failed because it needed a column after all."""
    return _MISSING in str(error)


def _refused(name: str) -> Callable[[pa.Array], pa.Array]:
    def refuse(values: pa.Array) -> pa.Array:
        raise InternalError(f"{_MISSING}: {name!r}")

    return refuse
