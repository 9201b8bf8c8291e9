"""A table as a ``pyarrow.dataset.Dataset``: what pyarrow, DuckDB, DataFusion, pandas and Ray read and prune."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NoReturn, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs

from lancepart.errors import UnsupportedOperationError
from lancepart.model.arrow_filter import translated
from lancepart.model.config import config
from lancepart.model.nested import path_of
from lancepart.plan import planner
from lancepart.plan.planner import Plan
from lancepart.read.scan import Scan

_ROWS = "rows.arrow"
Columns = Sequence[str] | Mapping[str, pc.Expression] | None


class ScannerOptions(TypedDict, total=False):
    """The methods of a scanner that engines call."""

    columns: Columns
    filter: pc.Expression | None
    batch_size: int
    use_threads: bool


class PartitionedDataset(ds.FileSystemDataset):  # type: ignore[misc]
    """The rows of a scan as a dataset; filters are pyarrow expressions, which prune partitions.

    What pyarrow reads without its methods, as unions of datasets do, it reads as one Arrow file made of all rows.
    """

    def __init__(self, scan: Scan, kept: pc.Expression | None = None) -> None:
        self._scan, self._kept = scan, kept
        system, format = pa_fs.PyFileSystem(_RowsAsFile(partial(_all_rows, scan, kept))), ds.IpcFileFormat()
        super().__init__([format.make_fragment(_ROWS, system)], scan.schema, format, system)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._scan.schema

    @property
    def partition_expression(self) -> pc.Expression:
        """A condition that holds for all rows, as pyarrow defines it."""
        return pc.scalar(True)

    def scanner(self, columns: Columns = None, filter: pc.Expression | None = None, **options: object) -> ds.Scanner:
        """Read some columns of the rows that match; only partitions that may hold such rows are opened."""
        where = _both(self._kept, filter)
        named = list(self.schema.names) if columns is None else columns
        found = None if where is None else translated(where, self.schema)
        residual = where if found is not None and not found.exact else None
        needed = _needed(named, self.schema)
        extra = () if found is None or residual is None else sorted(found.columns)
        read = list(dict.fromkeys([*needed, *extra])) or list(self.schema.names[:1])
        scan = _apart(lambda: self._planned(read, None if found is None else found.sql))
        tops = isinstance(named, Sequence) and all(name in self.schema.names for name in named)
        shown = list(named) if tops else dict(_expressions(named, self.schema))
        known = {key: value for key, value in options.items() if key in ("batch_size", "use_threads", "memory_pool")}
        return ds.Scanner.from_batches(scan.to_batches(), schema=scan.schema, columns=shown, filter=residual, **known)

    def _narrowed(self, columns: Sequence[str], where: str | None) -> Scan:
        """The scan of some columns that reads no more than a filter needs."""
        both = " AND ".join(f"({part})" for part in (self._scan.sql, where) if part is not None) or None
        planned = self._scan.planned
        narrowed = replace(self._scan, columns=tuple(columns), where=both, planned=None)
        if planned is None:
            return narrowed
        pruned = planner.narrowed(planned, narrowed.snapshot, narrowed.metadata, narrowed.predicate)
        return replace(narrowed, planned=pruned)

    def _planned(self, columns: Sequence[str], where: str | None) -> Scan:
        scan = self._narrowed(columns, where)
        _ = scan.tasks()
        return scan

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[DatasetFragment]:
        """The partitions that may hold rows that match, in a few runs that can be read at the same time."""
        found = None if filter is None else translated(filter, self.schema)
        leaves = _apart(lambda: self._planned(self.schema.names, None if found is None else found.sql)).plan().leaves
        runs = max(1, min(config.threads, len(leaves)))
        for at in range(runs):
            planned = Plan(version=self._scan.snapshot.version, leaves=tuple(leaves[at::runs]))
            yield DatasetFragment(PartitionedDataset(replace(self._scan, planned=planned), kept=self._kept))

    def count_rows(self, filter: pc.Expression | None = None, **options: object) -> int:
        """How many rows match; without a filter the manifest knows."""
        where = _both(self._kept, filter)
        found = None if where is None else translated(where, self.schema)
        if found is None or found.exact:
            return self._narrowed(self.schema.names, None if found is None else found.sql).count()
        return int(self.scanner(filter=filter).count_rows())

    def head(
        self, num_rows: int, columns: Columns = None, filter: pc.Expression | None = None, **_: object
    ) -> pa.Table:
        """The first rows that match."""
        return self.scanner(columns, filter).head(num_rows)

    def filter(self, expression: pc.Expression) -> PartitionedDataset:
        """The same dataset with only the rows that match."""
        return PartitionedDataset(self._scan, kept=_both(self._kept, expression))

    def sort_by(self, sorting: str | list[tuple[str, str]], **_: object) -> ds.InMemoryDataset:
        """All rows in an order, in memory."""
        return ds.InMemoryDataset(self.to_table().sort_by(sorting))

    def join(self, right_dataset: ds.Dataset, *args: object, **options: object) -> ds.InMemoryDataset:
        """All rows joined with those of another dataset, in memory."""
        return ds.InMemoryDataset(self.to_table()).join(ds.InMemoryDataset(right_dataset.to_table()), *args, **options)

    def join_asof(self, right_dataset: ds.Dataset, *args: object, **options: object) -> ds.InMemoryDataset:
        """All rows joined with the nearest ones of another dataset, in memory."""
        other = ds.InMemoryDataset(right_dataset.to_table())
        return ds.InMemoryDataset(self.to_table()).join_asof(other, *args, **options)

    def replace_schema(self, schema: pa.Schema) -> ds.Dataset:
        """The rows in other columns, as unions of datasets ask for them; those that they lack are NULL."""
        return self if schema.equals(self.schema) else super().replace_schema(schema)

    @property
    def files(self) -> list[str]:
        """None: what is read are the rows of a snapshot, not files."""
        return []

    def __reduce__(
        self,
    ) -> tuple[Callable[[Scan, pc.Expression | None], PartitionedDataset], tuple[Scan, pc.Expression | None]]:
        """Pickle the scan, which another process reads at the same snapshot, and the filter."""
        return PartitionedDataset, (self._scan, self._kept)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"PartitionedDataset({self._scan.root.uri!r}, version={self._scan.snapshot.version})"


class _RowsAsFile(pa_fs.FileSystemHandler):  # type: ignore[misc]
    """A file system of one file, which is made of rows when it is opened."""

    def __init__(self, rows: Callable[[], pa.Table]) -> None:
        self._rows = rows

    def get_type_name(self) -> str:
        return "lancepart"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[pa_fs.FileInfo]:
        return [pa_fs.FileInfo(path, pa_fs.FileType.File) for path in paths]

    def get_file_info_selector(self, selector: pa_fs.FileSelector) -> list[pa_fs.FileInfo]:
        return self.get_file_info([_ROWS])

    def open_input_file(self, path: str) -> pa.NativeFile:
        rows, made = self._rows(), pa.BufferOutputStream()
        with pa.ipc.new_file(made, rows.schema) as file:
            file.write_table(rows)
        return pa.BufferReader(made.getvalue())

    open_input_stream = open_input_file

    def _refuse(self, *_: object) -> NoReturn:
        raise UnsupportedOperationError("the rows of a partitioned table are not written through its dataset")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    move = copy_file = open_output_stream = open_append_stream = _refuse

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__


def _all_rows(scan: Scan, kept: pc.Expression | None) -> pa.Table:
    """The rows of a dataset, read without pyarrow's own threads: one of these waits for them."""
    found = None if kept is None else translated(kept, scan.schema)
    with ThreadPoolExecutor(1) as pool:
        narrowed = PartitionedDataset(scan)._narrowed(scan.schema.names, None if found is None else found.sql)
        rows = pool.submit(narrowed.to_arrow).result()
    return rows if found is None or found.exact else rows.filter(kept)


class DatasetFragment:
    """Some partitions of a dataset, with the methods of ``pyarrow.dataset.Fragment`` that engines call."""

    def __init__(self, dataset: PartitionedDataset) -> None:
        self._dataset = dataset

    @property
    def physical_schema(self) -> pa.Schema:
        """The columns."""
        return self._dataset.schema

    @property
    def partition_expression(self) -> pc.Expression:
        """A condition that holds for all rows, as pyarrow defines it."""
        return self._dataset.partition_expression

    def scanner(self, schema: pa.Schema | None = None, **options: Unpack[ScannerOptions]) -> ds.Scanner:
        """Read some columns of the rows that match."""
        return self._dataset.scanner(**options)

    def to_table(self, schema: pa.Schema | None = None, **options: Unpack[ScannerOptions]) -> pa.Table:
        """The rows that match."""
        return self._dataset.scanner(**options).to_table()

    def to_batches(
        self, schema: pa.Schema | None = None, **options: Unpack[ScannerOptions]
    ) -> Iterator[pa.RecordBatch]:
        """The rows that match, batch by batch."""
        yield from self._dataset.scanner(**options).to_batches()

    def count_rows(self, filter: pc.Expression | None = None) -> int:
        """How many rows match."""
        return self._dataset.count_rows(filter)


def _apart(action: Callable[[], Scan]) -> Scan:
    """Do something on a thread of its own: filters are read by DataFusion, whose own threads must not call it again."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(action).result()


def _both(one: pc.Expression | None, other: pc.Expression | None) -> pc.Expression | None:
    if one is None or other is None:
        return one if other is None else other
    return one & other


def _needed(columns: Sequence[str] | Mapping[str, pc.Expression], schema: pa.Schema) -> list[str]:
    """The columns of the table that are read for others."""
    if isinstance(columns, Mapping):
        found: set[str] = set()
        for expression in columns.values():
            found |= translated(expression.is_valid(), schema).columns
        return [name for name in schema.names if name in found]
    return [(path_of(name, schema) or (name,))[0] for name in columns]


def _expressions(
    columns: Sequence[str] | Mapping[str, pc.Expression], schema: pa.Schema
) -> Iterator[tuple[str, pc.Expression]]:
    if isinstance(columns, Mapping):
        yield from columns.items()
        return
    for name in columns:
        yield name, pc.field(*(path_of(name, schema) or (name,)))
