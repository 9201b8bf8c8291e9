"""Tables that SQL can read beside partitioned ones: their metadata tables, and plain Lance tables of a warehouse."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancepart.errors import InvalidInputError, TableNotFoundError
from lancepart.layout.columns import AS_BYTES
from lancepart.model.snapshot_text import number_or_tag
from lancepart.plan.pack import pack
from lancepart.read.leaf import ADDRESS, LEAF
from lancepart.spark.spark_plan import Pickled
from lancepart.spark.table_messages import ReadOnlyRequest
from lancepart.storage import leaf_handle, leaf_record
from lancepart.storage.dataset import Dataset, open_dataset
from lancepart.storage.root import Root
from lancepart.storage.translate import MissingError, storage_errors
from lancepart.table import PartitionedTable

KINDS = ("partitions", "snapshots", "fragments", "specs", "indices")
PLAIN = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """What all tasks that read a plain Lance table have in common; a task is some of its fragments.

    Among the columns may be those that identify rows: that of the version, and the row's address.
    """

    root: Root
    location: str
    version: int
    identity: int
    columns: tuple[str, ...]

    def rows(self, fragments: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """The rows of some fragments."""
        handle = leaf_handle.open_leaf(self.root, self.location, self.version)
        chosen = leaf_handle.fragments_of(handle, fragments)
        with storage_errors(f"read the table at {self.location!r}", self.root):
            plain = [name for name in self.columns if name not in (LEAF, ADDRESS)]
            addresses = ADDRESS in self.columns
            scanner = handle.scanner(columns=plain, fragments=chosen, with_row_address=addresses, **AS_BYTES)
            for batch in scanner.to_batches():
                yield self._identified(batch) if len(plain) < len(self.columns) else batch

    def _identified(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows with the columns that identify them."""
        own = {LEAF: pa.repeat(pa.scalar(self.identity, pa.int64()), batch.num_rows)}
        if ADDRESS in self.columns:
            own[ADDRESS] = batch.column("_rowaddr").cast(pa.int64())
        columns = [own[name] if name in own else batch.column(name) for name in self.columns]
        return pa.RecordBatch.from_arrays(columns, names=list(self.columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Rows that travel in the task themselves."""

    columns: tuple[str, ...]

    def rows(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """The rows of the task."""
        yield from table.select(list(self.columns)).to_batches()


def identified(schema: pa.Schema) -> pa.Schema:
    """The columns of a plain Lance table and those that identify its rows."""
    return pa.schema([*schema, *(pa.field(name, pa.int64(), nullable=False) for name in (LEAF, ADDRESS))])


def open_plain(root: Root, location: str, version: str | int | None) -> Dataset:
    """A plain Lance table, at a version or tag if given."""
    wanted = number_or_tag(version) if isinstance(version, str) else version
    try:
        return open_dataset(root, location, wanted)
    except (MissingError, FileNotFoundError):
        what = "has no data yet" if wanted is None else f"has no version {wanted!r}"
        raise TableNotFoundError(f"the table at {location!r} {what}") from None


def plan_plain(root: Root, request: ReadOnlyRequest) -> Pickled:
    """A plan that reads a plain Lance table, in tasks of about one size."""
    handle = open_plain(root, request.table.location, request.table.version)
    columns = tuple(request.columns) or (handle.schema.names[0],)
    identity = leaf_record.identity(handle) if LEAF in columns else 0
    version = int(handle.version)
    work = Plain(root=root, location=request.table.location, version=version, identity=identity, columns=columns)
    sizes = leaf_handle.fragment_sizes(handle)
    numbers = list(sizes)
    tasks = [tuple(numbers[at] for at in bin) for bin in pack(list(sizes.values()), request.parallelism)]
    return pickle.dumps(work), [pickle.dumps(task) for task in tasks if task]


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
