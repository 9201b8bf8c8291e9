"""Tables that SQL can read beside partitioned ones: those that say what a table is made of."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lancepart.errors import InvalidInputError
from lancepart.spark.spark_plan import Pickled
from lancepart.spark.table_messages import ReadOnlyRequest
from lancepart.table import PartitionedTable

KINDS = ("partitions", "snapshots", "fragments", "specs", "indices")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Rows that travel in the task themselves."""

    columns: tuple[str, ...]

    def rows(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """The rows of the task."""
        yield from table.select(list(self.columns)).to_batches()


def inspected(table: PartitionedTable, kind: str) -> pa.Table:
    """One of the metadata tables of a table."""
    if kind not in KINDS:
        raise InvalidInputError(f"there is no metadata table {kind!r}: use one of {', '.join(KINDS)}")
    found = getattr(table.inspect, kind)()
    assert isinstance(found, pa.Table)
    return found


def plan_inspected(table: PartitionedTable, request: ReadOnlyRequest) -> Pickled:
    """A plan of one task, which has the rows with it."""
    found = inspected(table, request.table.kind)
    work = Given(columns=tuple(request.columns) or (found.schema.names[0],))
    return pickle.dumps(work), [pickle.dumps(found)]
