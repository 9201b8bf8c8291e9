"""Sources of imports: Parquet, Delta and Iceberg files, or anything that Spark can read."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.fs as pafs

from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.spark.types import arrow_schema, as_spark, spark_schema

if TYPE_CHECKING:
    from pyarrow.dataset import Fragment
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask
    from pyiceberg.table.metadata import TableMetadata
    from pyspark.sql import DataFrame, SparkSession


PARQUET, DELTA, ICEBERG, SPARK = FORMATS = ("parquet", "delta", "iceberg", "spark")


class Origin(Protocol):
    """A source in parts that never change under their names; ``version`` is what the parts are those of."""

    @property
    def name(self) -> str:
        """What the source is called."""

    @property
    def version(self) -> int | None:
        """The source's own snapshot, if it has such."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""

    @property
    def parts(self) -> Sequence[str]:
        """The names of its parts."""

    def frame(self, spark: SparkSession, parts: Sequence[str]) -> DataFrame:
        """The rows of some parts, as a Spark DataFrame."""

    def count(self, spark: SparkSession, parts: Sequence[str]) -> int:
        """How many rows some parts have, by the source's own reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A Spark table or DataFrame: one part."""

    name: str
    rows: DataFrame
    version: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return arrow_schema(self.rows.schema)

    @property
    def parts(self) -> Sequence[str]:
        """The whole."""
        return ("all",)

    def frame(self, spark: SparkSession, parts: Sequence[str]) -> DataFrame:
        """All rows."""
        return self.rows

    def count(self, spark: SparkSession, parts: Sequence[str]) -> int:
        """How many there are."""
        return int(self.rows.count())


@dataclass(frozen=True, slots=True, kw_only=True)
class Parquet:
    """Parquet files below a path, partitioned by directories or not; a part is a file."""

    name: str
    whole: DataFrame = field(repr=False)
    version: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """The files' columns and those of the directories."""
        return arrow_schema(self.whole.schema)

    @property
    def parts(self) -> Sequence[str]:
        """The files."""
        return tuple(sorted(self.whole.inputFiles()))

    def frame(self, spark: SparkSession, parts: Sequence[str]) -> DataFrame:
        """The rows of some files, in the columns of all."""
        reader = spark.read.schema(self.whole.schema)
        base = reader if self.name.endswith(".parquet") or "*" in self.name else reader.option("basePath", self.name)
        return base.parquet(*parts)

    def count(self, spark: SparkSession, parts: Sequence[str]) -> int:
        """What the files' footers say."""
        return int(self.frame(spark, parts).count())


class OriginFile(Protocol):
    """A file of a source, with what is needed to read it; it pickles, so that an executor can."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows."""

    def count(self) -> int:
        """How many rows it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaFile:
    """A data file of a Delta table."""

    fragment: Fragment
    schema: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows, in the columns of the table."""
        yield from self.fragment.to_batches(schema=self.schema)

    def count(self) -> int:
        """What the file's footer says."""
        return int(self.fragment.count_rows())


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergFile:
    """A data file of an Iceberg table, with its delete files."""

    metadata: TableMetadata
    io: FileIO
    projection: Schema
    row_filter: BooleanExpression
    task: FileScanTask

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows without the deleted ones."""
        from pyiceberg.io.pyarrow import ArrowScan

        return iter(ArrowScan(self.metadata, self.io, self.projection, self.row_filter).to_record_batches([self.task]))

    def count(self) -> int:
        """What the manifest says; a file with delete files is read."""
        if not self.task.delete_files:
            return int(self.task.file.record_count)
        return sum(batch.num_rows for batch in self.batches())


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesOrigin:
    """Files that Python reads on the executors."""

    name: str
    version: int
    schema: pa.Schema
    files: Mapping[str, OriginFile] = field(repr=False)

    @property
    def parts(self) -> Sequence[str]:
        """The files."""
        return tuple(sorted(self.files))

    def frame(self, spark: SparkSession, parts: Sequence[str]) -> DataFrame:
        """The rows of some files, a task a file."""
        packed = [pickle.dumps((self.files[part], spark_schema(self.schema))) for part in parts]

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from lancepart.spark.origins import read

            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from read(packed[number])

        numbers = spark.range(0, len(packed), 1, numPartitions=len(packed))
        return numbers.mapInArrow(run, spark_schema(self.schema))

    def count(self, spark: SparkSession, parts: Sequence[str]) -> int:
        """What the files say, counted on the driver."""
        return sum(self.files[part].count() for part in parts)


def read(packed: bytes) -> Iterator[pa.RecordBatch]:
    """The rows of one file, on the executor that it was sent to."""
    file, schema = pickle.loads(packed)
    wanted = arrow_schema(schema)
    for batch in file.batches():
        yield as_spark(batch, wanted)


def find(
    spark: SparkSession, source: str | DataFrame, *, kind: str | None, name: str | None, version: int | None
) -> Origin:
    """The origin for a path, the name of a Spark table or a DataFrame."""
    if kind is not None and kind not in FORMATS:
        raise InvalidInputError(f"format is {kind!r}: use one of {', '.join(FORMATS)}")
    if not isinstance(source, str):
        if name is None:
            raise InvalidInputError(
                "give a DataFrame a name with name=…: it identifies the import when it is run again"
            )
        return Frame(name=name, rows=source)
    match kind or _guessed(spark, source):
        case "delta":
            return delta(source, version)
        case "iceberg":
            return iceberg(source, version)
        case "spark":
            return Frame(name=name or source, rows=spark.table(source))
        case _:
            return Parquet(name=source, whole=spark.read.parquet(source))


def spelled(source: str) -> str:
    """A source as it is always called, wherever the import runs: a path is absolute and has no slash at its end."""
    if "://" in source or source.startswith("file:"):
        return source.rstrip("/")
    is_path = "/" in source or Path(source).exists()
    return os.path.abspath(os.path.expanduser(source)) if is_path else source


def _guessed(spark: SparkSession, text: str) -> str:
    """The kind of a source: a table of Spark's catalog, or a path with a Delta log or Iceberg metadata."""
    if text.endswith(".metadata.json"):
        return ICEBERG
    if "/" not in text:
        return SPARK if spark.catalog.tableExists(text) else PARQUET
    files, path = _filesystem(text)
    if files.get_file_info(f"{path}/_delta_log").type == pafs.FileType.Directory:
        return DELTA
    return ICEBERG if _metadata_files(files, path) else PARQUET


def _filesystem(text: str) -> tuple[pafs.FileSystem, str]:
    if "://" in text or text.startswith("file:"):
        files, path = pafs.FileSystem.from_uri(text)
    else:
        files, path = pafs.LocalFileSystem(), str(Path(text).absolute())
    return files, path.rstrip("/")


def _metadata_files(files: pafs.FileSystem, path: str) -> list[str]:
    chosen = pafs.FileSelector(f"{path}/metadata", allow_not_found=True)
    return sorted(each.path for each in files.get_file_info(chosen) if each.path.endswith(".metadata.json"))


def delta(path: str, version: int | None) -> FilesOrigin:
    """A Delta table at one of its versions."""
    try:
        from deltalake import DeltaTable
    except ImportError as error:
        raise UnsupportedOperationError(f"{path!r} is a Delta table: pip install deltalake ({error})") from error
    table = DeltaTable(path, version=version)
    dataset = table.to_pyarrow_dataset()
    files = {each.path: DeltaFile(fragment=each, schema=dataset.schema) for each in dataset.get_fragments()}
    return FilesOrigin(name=path, version=table.version(), schema=dataset.schema, files=files)


def iceberg(path: str, version: int | None) -> FilesOrigin:
    """An Iceberg table at one of its snapshots, by its directory or its newest metadata file."""
    try:
        from pyiceberg.table import StaticTable
    except ImportError as error:
        raise UnsupportedOperationError(f"{path!r} is an Iceberg table: pip install pyiceberg ({error})") from error
    table = StaticTable.from_metadata(path if path.endswith(".json") else _newest_metadata(path))
    now = table.current_snapshot()
    chosen = version if version is not None else now.snapshot_id if now is not None else None
    scan = table.scan(snapshot_id=chosen)
    projection = scan.projection()
    files = {
        json.dumps([task.file.file_path, *sorted(each.file_path for each in task.delete_files)]): IcebergFile(
            metadata=table.metadata, io=table.io, projection=projection, row_filter=scan.row_filter, task=task
        )
        for task in scan.plan_files()
    }
    plain = pa.schema([each.remove_metadata() for each in projection.as_arrow()])
    return FilesOrigin(name=path, version=chosen or 0, schema=plain, files=files)


def _newest_metadata(path: str) -> str:
    files, place = _filesystem(path)
    found = _metadata_files(files, place)
    if not found:
        raise InvalidInputError(f"there is no Iceberg table at {path!r}")
    newest = found[-1].removeprefix(place)
    return f"{path.rstrip('/')}{newest}"
