"""Sources of imports: Parquet, Delta and Iceberg files, or anything that Spark can read."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.fs as pafs

from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.spark.types import arrow_schema, as_spark, spark_schema

if TYPE_CHECKING:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Files that a Python reader reads on the executors; each read is a function's arguments, pickled."""

    name: str
    version: int
    schema: pa.Schema
    reads: dict[str, bytes] = field(repr=False)
    counted: Callable[[bytes], int]
    reader: Callable[[bytes], Iterator[pa.RecordBatch]]

    @property
    def parts(self) -> Sequence[str]:
        """The files."""
        return tuple(sorted(self.reads))

    def frame(self, spark: SparkSession, parts: Sequence[str]) -> DataFrame:
        """The rows of some files, a task a file."""
        work = [(self.reader, self.reads[part], spark_schema(self.schema)) for part in parts]
        packed = [pickle.dumps(each) for each in work]

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from lancepart.spark.origins import read

            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from read(packed[number])

        numbers = spark.range(0, len(packed), 1, numPartitions=len(packed))
        return numbers.mapInArrow(run, spark_schema(self.schema))

    def count(self, spark: SparkSession, parts: Sequence[str]) -> int:
        """What the reader says."""
        return sum(self.counted(self.reads[part]) for part in parts)


def read(packed: bytes) -> Iterator[pa.RecordBatch]:
    """The rows of one file, on the executor that it was sent to."""
    reader, file, schema = pickle.loads(packed)
    wanted = arrow_schema(schema)
    for batch in reader(file):
        yield as_spark(batch, wanted)


def find(
    spark: SparkSession, source: str | DataFrame, *, kind: str | None, name: str | None, version: int | None
) -> Origin:
    """The origin that a path, the name of a Spark table or a DataFrame stands for."""
    if kind is not None and kind not in FORMATS:
        raise InvalidInputError(f"format is {kind!r}: use one of {', '.join(FORMATS)}")
    if not isinstance(source, str):
        if name is None:
            raise InvalidInputError("give a DataFrame a name with name=…: by it an import that is run again is known")
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
    """What a text is: a table that Spark knows, or a place with a log of Delta's or metadata of Iceberg's."""
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


def delta(path: str, version: int | None) -> Files:
    """A Delta table at one of its versions."""
    try:
        from deltalake import DeltaTable
    except ImportError as error:
        raise UnsupportedOperationError(f"{path!r} is a Delta table: pip install deltalake ({error})") from error
    table = DeltaTable(path, version=version)
    dataset = table.to_pyarrow_dataset()
    reads = {each.path: pickle.dumps((each, dataset.schema)) for each in dataset.get_fragments()}
    return Files(
        name=path, version=table.version(), schema=dataset.schema, reads=reads, counted=_count_delta, reader=_read_delta
    )


def _read_delta(file: bytes) -> Iterator[pa.RecordBatch]:
    fragment, schema = pickle.loads(file)
    yield from fragment.to_batches(schema=schema)


def _count_delta(file: bytes) -> int:
    fragment, _ = pickle.loads(file)
    return int(fragment.count_rows())


def iceberg(path: str, version: int | None) -> Files:
    """An Iceberg table at one of its snapshots, by its directory or its newest metadata file."""
    try:
        from pyiceberg.table import StaticTable
    except ImportError as error:
        raise UnsupportedOperationError(f"{path!r} is an Iceberg table: pip install pyiceberg ({error})") from error
    table = StaticTable.from_metadata(path if path.endswith(".json") else _newest_metadata(path))
    now = table.current_snapshot()
    chosen = version if version is not None else now.snapshot_id if now is not None else None
    scan = table.scan(snapshot_id=chosen)
    reads = {
        json.dumps([task.file.file_path, *sorted(each.file_path for each in task.delete_files)]): pickle.dumps(
            (table.metadata, table.io, scan.projection(), scan.row_filter, task)
        )
        for task in scan.plan_files()
    }
    plain = pa.schema([each.remove_metadata() for each in scan.projection().as_arrow()])
    return Files(
        name=path, version=chosen or 0, schema=plain, reads=reads, counted=_count_iceberg, reader=_read_iceberg
    )


def _newest_metadata(path: str) -> str:
    files, place = _filesystem(path)
    found = _metadata_files(files, place)
    if not found:
        raise InvalidInputError(f"there is no Iceberg table at {path!r}")
    newest = found[-1].removeprefix(place)
    return f"{path.rstrip('/')}{newest}"


def _read_iceberg(file: bytes) -> Iterator[pa.RecordBatch]:
    from pyiceberg.io.pyarrow import ArrowScan

    metadata, io, schema, row_filter, task = pickle.loads(file)
    return iter(ArrowScan(metadata, io, schema, row_filter).to_record_batches([task]))


def _count_iceberg(file: bytes) -> int:
    *_, task = pickle.loads(file)
    if not task.delete_files:
        return int(task.file.record_count)
    return sum(batch.num_rows for batch in _read_iceberg(file))
