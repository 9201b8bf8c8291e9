"""What Spark's partial aggregation would make of a task's rows, computed here, so that a row a group travels.

The columns are those of Spark's aggregation buffers: Spark merges and finishes them itself, so that averages, overflow
and the order of groups are its own. Groups may come more than once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancepart.errors import InvalidInputError
from lancepart.model.aliases import JsonMapping
from lancepart.spark.exact_numbers import Integers, Mask, Numbers, as_decimals, both, evaluated, limbs, together
from lancepart.spark.types import arrow_schema, as_spark, spark_schema

_FEW_ROWS = 1 << 17
_MOST_BYTES = 128 << 20
"""Rows are put together by so many, or by so many bytes where that does not make much fewer rows of them."""
_MUCH_FEWER = 16
_KINDS = {"sum", "is_empty", "count", "min", "max"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialAggregates:
    """The columns that groups are made by, and one column for each part of Spark's buffers.

    A buffer has a ``kind`` and what it is of: ``sum`` (with ``precision`` and ``scale`` for decimals, whose sum of no
    value is 0) and ``is_empty`` a ``value``, ``count`` the ``values`` that must all be there, ``min`` and ``max`` a
    ``column``.
    """

    keys: tuple[str, ...]
    buffers: tuple[JsonMapping, ...]

    @classmethod
    def of(cls, given: JsonMapping) -> PartialAggregates:
        """As the jar spells them."""
        unknown = [each.get("kind") for each in given["buffers"] if each.get("kind") not in _KINDS]
        if unknown:
            raise InvalidInputError(f"there is no partial aggregate {unknown[0]!r}: use the jar inside lancepart")
        return cls(keys=tuple(given["keys"]), buffers=tuple(given["buffers"]))

    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        found = dict.fromkeys(self.keys)
        for each in self.buffers:
            for tree in _values(each):
                found |= dict.fromkeys(_named(tree))
        return tuple(found)

    def schema(self, read: pa.Schema) -> pa.Schema:
        """The columns that Spark is given, in its Arrow types; ``read`` has the table's columns that are read."""
        spark = arrow_schema(spark_schema(read))
        keys = [pa.field(f"key_{at}", spark.field(name).type) for at, name in enumerate(self.keys)]
        found = [pa.field(f"buffer_{at}", _type(each, spark)) for at, each in enumerate(self.buffers)]
        return pa.schema([*keys, *found])

    def of_batches(self, batches: Iterable[pa.RecordBatch], read: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The groups of some rows, a portion of them at a time: a group of several portions comes several times."""
        spark, schema = arrow_schema(spark_schema(read)), self.schema(read)
        parts: list[_Part] = []
        rows, size, most = 0, 0, 0
        for batch in batches:
            if not batch.num_rows:
                continue
            parts.append(_Part.of(self, as_spark(batch, spark)))
            rows += batch.num_rows
            size += parts[-1].size()
            if rows >= _FEW_ROWS and size >= most:
                found = _grouped(self, parts, schema)
                most = 0 if found.num_rows * _MUCH_FEWER <= rows else _MOST_BYTES
                yield found
                parts, rows, size = [], 0, 0
        if rows:
            yield _grouped(self, parts, schema)


def _values(buffer: JsonMapping) -> Sequence[JsonMapping]:
    """The expressions that a buffer is of."""
    if buffer["kind"] == "count":
        return tuple(buffer["values"])
    return (buffer["value"],) if "value" in buffer else ({"column": buffer["column"]},)


def _named(tree: JsonMapping) -> tuple[str, ...]:
    if "op" in tree:
        return _named(tree["left"]) + _named(tree["right"])
    return (tree["column"],) if "column" in tree else ()


def _type(buffer: JsonMapping, spark: pa.Schema) -> pa.DataType:
    match buffer["kind"]:
        case "is_empty":
            return pa.bool_()
        case "min" | "max":
            return spark.field(buffer["column"]).type
        case "sum" if "precision" in buffer:
            return pa.decimal128(buffer["precision"], buffer["scale"])
    return pa.int64()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A batch: its keys, and the numbers, masks and columns that its buffers are of, by the expressions."""

    rows: int
    keys: tuple[pa.Array, ...]
    numbers: dict[str, Numbers]
    valid: dict[str, Mask | None]
    columns: dict[str, pa.Array]

    def size(self) -> int:
        """The bytes that are held."""
        columns = sum(int(each.nbytes) for each in (*self.keys, *self.columns.values()))
        return columns + sum(int(each.values.nbytes) for each in self.numbers.values())

    @classmethod
    def of(cls, plan: PartialAggregates, batch: pa.RecordBatch) -> _Part:
        numbers: dict[str, Numbers] = {}
        valid: dict[str, Mask | None] = {}
        columns: dict[str, pa.Array] = {}
        for each in plan.buffers:
            if each["kind"] in ("sum", "is_empty"):
                key = repr(each["value"])
                found = numbers[key] if key in numbers else _over(evaluated(each["value"], batch), batch.num_rows)
                numbers[key], valid[_counted(each)] = found, found.valid
            elif each["kind"] == "count":
                valid[_counted(each)] = _all_there(each["values"], batch)
            else:
                columns[each["column"]] = batch.column(each["column"])
        keys = tuple(batch.column(name) for name in plan.keys)
        return cls(rows=batch.num_rows, keys=keys, numbers=numbers, valid=valid, columns=columns)


def _over(numbers: Numbers, rows: int) -> Numbers:
    """Numbers with one value a row, those of literals too; what is NULL adds nothing."""
    values = numbers.values if len(numbers.values) == rows else np.broadcast_to(numbers.values, (rows,))
    if numbers.valid is not None:
        values = np.where(numbers.valid, values, 0)
    return replace(numbers, values=values)


def _counted(buffer: JsonMapping) -> str:
    return repr([buffer["value"]] if "value" in buffer else list(buffer["values"]))


def _all_there(values: Sequence[JsonMapping], batch: pa.RecordBatch) -> Mask | None:
    """Where no column of some expressions is NULL."""
    found: Mask | None = None
    for name in {name for tree in values for name in _named(tree)}:
        column = batch.column(name)
        if column.null_count:
            found = both(found, column.is_valid().to_numpy(zero_copy_only=False))
    return found


class _Grouping:
    """Columns that are summed, or whose least or greatest value is taken, in groups or over all rows."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = parts
        self._rows = sum(part.rows for part in parts)
        keys = [pa.chunked_array([part.keys[at] for part in parts]) for at in range(len(parts[0].keys))]
        self._columns = {f"key_{at}": each for at, each in enumerate(keys)}
        self._keys = list(self._columns)
        self._wanted: list[tuple[str, str]] = []
        self._sums: dict[str, list[str]] = {}

    def add_sum(self, name: str, values: Integers, bound: int) -> None:
        """Sum integers, none of which is larger than a bound."""
        if name not in self._sums:
            self._sums[name] = []
            for at, limb in enumerate(limbs(values, bound, self._rows)):
                self._sums[name].append(self._add(f"{name}_{at}", pa.array(limb), "sum"))

    def add_extreme(self, column: str, kind: str) -> None:
        """Take the least or greatest value of a column."""
        values = pa.chunked_array([part.columns[column] for part in self._parts])
        self._add(f"{kind}_{column}", values, kind)

    def _add(self, name: str, values: pa.Array | pa.ChunkedArray, function: str) -> str:
        self._columns[name] = values
        self._wanted.append((name, function))
        return f"{name}_{function}"

    def run(self) -> None:
        """Compute what was added, and how many rows each group has."""
        counted: list[tuple[list[str], str]] = [([], "count_all")]
        if self._keys:
            table = pa.table(self._columns)
            self._found = table.group_by(self._keys, use_threads=False).aggregate([*self._wanted, *counted])
            return
        found = {f"{name}_{kind}": _whole(self._columns[name], kind) for name, kind in self._wanted}
        self._found = pa.table({**found, "count_all": pa.array([self._rows], pa.int64())})

    def keys(self) -> list[pa.Array]:
        """The groups' keys."""
        return [_array(self._found.column(name)) for name in self._keys]

    def sum(self, name: str) -> Integers:
        """The sums of a column."""
        return together([self._found.column(each).to_numpy() for each in self._sums[name]])

    def extreme(self, column: str, kind: str) -> pa.Array:
        """The least or greatest values of a column."""
        return _array(self._found.column(f"{kind}_{column}_{kind}"))

    def count(self, name: str) -> Integers:
        """How many rows of each group there are, or have what a mask says that was summed."""
        return self.sum(name) if name in self._sums else self._found.column("count_all").to_numpy()


def _whole(values: pa.Array | pa.ChunkedArray, kind: str) -> pa.Array:
    found = pc.sum(values, min_count=0) if kind == "sum" else pc.min_max(values)[kind]
    return pa.array([found], found.type)


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _grouped(plan: PartialAggregates, parts: Sequence[_Part], schema: pa.Schema) -> pa.RecordBatch:
    """One row a group of these batches."""
    grouping = _Grouping(parts)
    for each in plan.buffers:
        if each["kind"] in ("min", "max"):
            grouping.add_extreme(each["column"], each["kind"])
            continue
        if each["kind"] == "sum":
            found = [part.numbers[repr(each["value"])] for part in parts]
            values = np.concatenate([number.values for number in found])
            grouping.add_sum(repr(each["value"]), values, max(number.bound for number in found))
        _add_mask(grouping, _counted(each), parts)
    grouping.run()
    arrays = [_buffer(each, grouping, schema.field(f"buffer_{at}").type) for at, each in enumerate(plan.buffers)]
    return pa.RecordBatch.from_arrays([*grouping.keys(), *arrays], schema=schema)


def _add_mask(grouping: _Grouping, name: str, parts: Sequence[_Part]) -> None:
    """Have the rows counted that a mask has, unless that is all of them."""
    masks = [part.valid[name] for part in parts]
    if any(mask is not None for mask in masks):
        whole = [
            np.ones(part.rows, np.bool_) if mask is None else mask for part, mask in zip(parts, masks, strict=True)
        ]
        grouping.add_sum(name, np.concatenate(whole).astype(np.int64), 1)


def _buffer(buffer: JsonMapping, grouping: _Grouping, kind: pa.DataType) -> pa.Array:
    """A buffer's column: of no value a sum of decimals is 0, and one of whole numbers NULL, as Spark has them."""
    if buffer["kind"] in ("min", "max"):
        return grouping.extreme(buffer["column"], buffer["kind"]).cast(kind)
    counts = grouping.count(_counted(buffer))
    if buffer["kind"] == "count":
        return pa.array(counts, pa.int64())
    if buffer["kind"] == "is_empty":
        return pa.array(counts == 0)
    sums = grouping.sum(repr(buffer["value"]))
    return as_decimals(sums, kind) if "precision" in buffer else pa.array(sums, kind, mask=counts == 0)
