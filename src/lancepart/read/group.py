"""One group of a join: its leaves joined by DataFusion, in memory if they fit, else sorted through the disk."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext

from lancepart.errors import reraise_interrupt
from lancepart.layout.columns import converted
from lancepart.model.filtering import DEEP_FILTERS
from lancepart.model.predicate import Predicate
from lancepart.model.quoting import arrow_type_name
from lancepart.model.terms import bind_terms
from lancepart.plan.join_compatibility import JoinKey
from lancepart.plan.join_planner import ANTI, FULL, LEFT, RIGHT, SEMI
from lancepart.plan.output import Column
from lancepart.read.hash_slices import WHOLE, HashSlice
from lancepart.read.leaf import LeafTask, in_large_batches
from lancepart.read.streams import LeafSource, storage_type

LEAST_MEMORY = 32 << 20
_EXHAUSTED = "Resources exhausted"
_IN_MEMORY = 32_768
_SORTED = (8_192, 1_024, 128)
_MOST_PARTS = 64
_SLOTS = 4_000_000
_DENSITY = 0.1
_MORE = 4
_JOINS = {
    "inner": ("INNER JOIN", "INNER JOIN"),
    LEFT: ("LEFT JOIN", "RIGHT JOIN"),
    RIGHT: ("RIGHT JOIN", "LEFT JOIN"),
    FULL: ("FULL JOIN", "FULL JOIN"),
    SEMI: ("LEFT SEMI JOIN", "RIGHT SEMI JOIN"),
    ANTI: ("LEFT ANTI JOIN", "RIGHT ANTI JOIN"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinQuery:
    """The settings shared by all groups of a join; ``needed`` are the columns that the filter or the result names."""

    how: str
    keys: tuple[JoinKey, ...]
    left: pa.Schema
    right: pa.Schema
    needed: tuple[Column, ...]
    shown: tuple[str, ...]
    where: Predicate | None = None

    def sql(self, *, left_first: bool) -> str:
        """The join of ``l`` and ``r`` over their numbered columns; the first of the two is held in memory."""
        names = {column.name: f"o{at}" for at, column in enumerate(self.needed)}
        inner = ", ".join(f"{self._shown(column)} AS {names[column.name]}" for column in self.needed)
        tests = " AND ".join(
            f"{_compared(f'l.c{self.left.get_field_index(key.left)}', key.left_type, key.compared)} = "
            f"{_compared(f'r.c{self.right.get_field_index(key.right)}', key.right_type, key.compared)}"
            for key in self.keys
        )
        kind = _JOINS[self.how][0 if left_first else 1]
        sides = f"l {kind} r" if left_first else f"r {kind} l"
        joined = f"SELECT {inner} FROM {sides} ON {tests}"
        outer = ", ".join(names[name] for name in self.shown)
        kept = "" if self.where is None else f" WHERE {self.where.to_sql(names)}"
        return f"SELECT {outer} FROM ({joined}) AS joined{kept}"

    def _shown(self, column: Column) -> str:
        """A column of the result: a key that both sides have is taken from the side that has all rows."""
        left = None if column.left is None else f"l.c{self.left.get_field_index(column.left)}"
        right = None if column.right is None else f"r.c{self.right.get_field_index(column.right)}"
        if left is None or right is None or self.how in (SEMI, ANTI):
            return left or str(right)
        wanted = column.field.type
        left = _compared(left, self.left.field(column.left).type, wanted)
        right = _compared(right, self.right.field(column.right).type, wanted)
        return right if self.how == RIGHT else f"coalesce({left}, {right})" if self.how == FULL else left

    @property
    def numbered(self) -> pa.Schema:
        """The columns that the filter may name, as the query calls them."""
        return pa.schema([(f"o{at}", column.field.type) for at, column in enumerate(self.needed)])

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result."""
        fields = {column.name: column.field for column in self.needed}
        return pa.schema([fields[name] for name in self.shown])


def _compared(column: str, data_type: pa.DataType, wanted: pa.DataType) -> str:
    """A column in another type; a value that does not fit equals none of the other side, and becomes NULL."""
    return column if data_type == wanted else f"arrow_try_cast({column}, '{arrow_type_name(wanted)}')"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTask:
    """What to join of one group: plain values, so that it can be done elsewhere."""

    left: tuple[LeafTask, ...]
    right: tuple[LeafTask, ...]
    query: JoinQuery

    @property
    def bytes(self) -> int:
        """How large its leaves are, as far as the manifest knows."""
        return size_of(self.left) + size_of(self.right)


def join_group(task: GroupTask, memory: int, part: HashSlice = WHOLE) -> Iterator[pa.RecordBatch]:
    """The joined rows of a group within ``memory`` bytes: in smaller parts if need be, at last through the disk."""
    if min(size_of(task.left), size_of(task.right)) <= memory * part.of and (
        yield from _tried(task, memory, part, _IN_MEMORY)
    ):
        return
    if part.of < _MOST_PARTS:
        for piece in part.finer():
            yield from join_group(task, memory, piece)
        return
    for batch_rows in _SORTED:
        if (yield from _tried(task, memory, part, batch_rows)):
            return
    yield from _run(task, _MORE * memory, part, _SORTED[-1])


def _tried(task: GroupTask, memory: int, part: HashSlice, batch_rows: int) -> Generator[pa.RecordBatch, None, bool]:
    """Rows, and whether the memory sufficed for them; if not, none was given."""
    started = False
    try:
        for batch in _run(task, memory, part, batch_rows):
            started = True
            yield batch
    except Exception as error:
        reraise_interrupt(error)
        if started or _EXHAUSTED not in str(error):
            raise
        return False
    return True


def _run(task: GroupTask, memory: int, part: HashSlice, batch_rows: int) -> Iterator[pa.RecordBatch]:
    context = bounded_session(memory, batch_rows)
    query, schema = task.query, task.query.schema
    keys = [[(getattr(key, side), key.compared) for key in query.keys] for side in ("left", "right")]
    frugal = batch_rows != _IN_MEMORY or part.of > 1
    sources = [
        LeafSource([_paced(leaf, frugal=frugal) for leaf in leaves], side, batch_rows, own, part)
        for leaves, side, own in ((task.left, query.left, keys[0]), (task.right, query.right, keys[1]))
    ]
    for name, source in zip("lr", sources, strict=True):
        _register(context, name, source)
    left_first = size_of(task.left) <= size_of(task.right)
    try:
        sql = bind_terms(context, query.sql(left_first=left_first), query.numbered)
        for batch in context.sql(sql).execute_stream():
            rows = batch.to_pyarrow()
            if rows.num_rows:
                yield as_shown(rows, schema)
    except Exception as error:
        reraise_interrupt(error)
        for failed in [source.error for source in sources if source.error is not None]:
            raise failed from None
        raise
    finally:
        for source in sources:
            source.close()


def _paced(task: LeafTask, *, frugal: bool) -> LeafTask:
    """A leaf read little by little where memory is short, else in batches of a few megabytes, so that there are few."""
    return replace(task, ahead=1) if frugal else in_large_batches(task, _IN_MEMORY)


def bounded_session(memory: int, batch_rows: int) -> SessionContext:
    """A session within a memory limit: one side hashed in memory, or both sorted with the disk's help.

    Whole numbers that lie close together, as ids do, are looked up in an array of some slots instead of being hashed.
    """
    in_memory = batch_rows == _IN_MEMORY
    settings = {
        **DEEP_FILTERS,
        "datafusion.execution.batch_size": str(batch_rows),
        "datafusion.optimizer.prefer_hash_join": str(in_memory).lower(),
        "datafusion.execution.sort_spill_reservation_bytes": str(memory // 32),
        "datafusion.execution.sort_in_place_threshold_bytes": str(memory // 64),
        "datafusion.execution.perfect_hash_join_small_build_threshold": str(_SLOTS),
        "datafusion.execution.perfect_hash_join_min_key_density": str(_DENSITY),
    }
    config = SessionConfig(settings).with_target_partitions(1 if in_memory else 2)
    runtime = RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(max(memory, LEAST_MEMORY))
    context = SessionContext(config, runtime)
    context.remove_optimizer_rule("push_down_filter")
    return context


def _register(context: SessionContext, name: str, source: LeafSource) -> None:
    if source.is_empty:
        context.register_record_batches(name, [[pa.RecordBatch.from_pylist([], schema=source.schema)]])
    else:
        context.register_dataset(name, source)


def size_of(tasks: Sequence[LeafTask]) -> int:
    """How large leaves are, as far as the manifest knows."""
    return sum(task.leaf.stats.bytes for task in tasks if task.leaf.stats is not None)


def as_shown(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows in the result's own types and names."""
    arrays = [_typed(array, field.type) for array, field in zip(rows.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _typed(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type == wanted:
        return array
    if isinstance(wanted, pa.BaseExtensionType) and array.type == storage_type(wanted):
        return pa.ExtensionArray.from_storage(wanted, array)
    return converted(array, wanted)
