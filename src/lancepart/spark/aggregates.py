"""COUNT, MIN and MAX of one task's rows, so that one row goes to Spark instead of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lancepart.model.aliases import Value

Aggregate: TypeAlias = Mapping[str, str]
Found: TypeAlias = Value
"""A count, or the Arrow scalar that is the least or greatest so far; None while there is none."""


def aggregate_schema(aggregates: Sequence[Aggregate], schema: pa.Schema) -> pa.Schema:
    """The columns of the one row, in the table's types."""
    return pa.schema(
        [
            pa.field(
                f"{each['name']}_{index}", pa.int64() if each["name"] == "count" else schema.field(each["column"]).type
            )
            for index, each in enumerate(aggregates)
        ]
    )


def needed(aggregates: Sequence[Aggregate]) -> tuple[str, ...]:
    """The columns that the aggregates read, each once."""
    return tuple(dict.fromkeys(each["column"] for each in aggregates if "column" in each))


def aggregated(batches: Iterable[pa.RecordBatch], aggregates: Sequence[Aggregate], schema: pa.Schema) -> pa.RecordBatch:
    """The row for some batches; of no rows a count is 0, and there is no least or greatest."""
    values: list[Found] = [0 if each["name"] == "count" else None for each in aggregates]
    for batch in batches:
        for index, each in enumerate(aggregates):
            values[index] = _more(values[index], each, batch)
    kinds = [field.type for field in schema]
    arrays = [pa.array([value], kind) for value, kind in zip(values, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _more(value: Found, aggregate: Aggregate, batch: pa.RecordBatch) -> Found:
    if "column" not in aggregate:
        return value + batch.num_rows
    column = batch.column(aggregate["column"])
    if aggregate["name"] == "count":
        return value + len(column) - column.null_count
    found = pc.min_max(column)[aggregate["name"]]
    if value is None or not found.is_valid:
        return found if found.is_valid else value
    test = pc.less if aggregate["name"] == "min" else pc.greater
    return found if test(found, value).as_py() else value
