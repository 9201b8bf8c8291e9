"""Tables that SQL can read beside partitioned ones: their metadata tables, and plain Lance tables of a warehouse."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancepart.errors import InvalidInputError, TableNotFoundError
from lancepart.layout.columns import AS_BYTES
from lancepart.plan.pack import pack
from lancepart.spark.operations import SideRequest
from lancepart.storage import leaf_data
from lancepart.storage.dataset import Dataset, open_dataset
from lancepart.storage.root import Root
from lancepart.storage.translate import MissingError, storage_errors
from lancepart.table import PartitionedTable

KINDS = ("partitions", "snapshots", "fragments", "specs", "indices")
PLAIN = "plain"

Plan = tuple[bytes, list[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """What all tasks that read a plain Lance table have in common; a task is some of its fragments."""

    root: Root
    location: str
    version: int
    columns: tuple[str, ...]

    def rows(self, fragments: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """The rows of some fragments."""
        handle = leaf_data.open_leaf(self.root, self.location, self.version)
        chosen = leaf_data.fragments_of(handle, fragments)
        with storage_errors(f"read the table at {self.location!r}", self.root):
            yield from handle.scanner(columns=list(self.columns), fragments=chosen, **AS_BYTES).to_batches()


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Rows that travel in the task themselves."""

    columns: tuple[str, ...]

    def rows(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """The rows of the task."""
        yield from table.select(list(self.columns)).to_batches()


def open_plain(root: Root, location: str, version: str | int | None) -> Dataset:
    """A plain Lance table, at a version or tag if given."""
    wanted = int(version) if isinstance(version, str) and version.isdigit() else version
    try:
        return open_dataset(root, location, wanted)
    except (MissingError, FileNotFoundError):
        what = "has no data yet" if wanted is None else f"has no version {wanted!r}"
        raise TableNotFoundError(f"the table at {location!r} {what}") from None


def plan_plain(root: Root, request: SideRequest) -> Plan:
    """A plan that reads a plain Lance table, in tasks of about one size."""
    handle = open_plain(root, request.table.location, request.table.version)
    columns = tuple(request.columns) or (handle.schema.names[0],)
    work = Plain(root=root, location=request.table.location, version=int(handle.version), columns=columns)
    sizes = leaf_data.fragment_sizes(handle)
    numbers = list(sizes)
    tasks = [tuple(numbers[at] for at in bin) for bin in pack(list(sizes.values()), request.parallelism)]
    return pickle.dumps(work), [pickle.dumps(task) for task in tasks if task]


def inspected(table: PartitionedTable, kind: str) -> pa.Table:
    """One of the tables that tell what a table is made of."""
    if kind not in KINDS:
        raise InvalidInputError(f"there is no table {kind!r} of a table: use one of {', '.join(KINDS)}")
    found = getattr(table.inspect, kind)()
    assert isinstance(found, pa.Table)
    return found


def plan_inspected(table: PartitionedTable, request: SideRequest) -> Plan:
    """A plan of one task, which has the rows with it."""
    found = inspected(table, request.table.kind)
    work = Given(columns=tuple(request.columns) or (found.schema.names[0],))
    return pickle.dumps(work), [pickle.dumps(found)]
