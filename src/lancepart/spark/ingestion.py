"""What the job ``ingest`` reads, and how its rows go into the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lancepart.errors import InvalidInputError
from lancepart.spark.writing import partition_list
from lancepart.table import PartitionedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APPEND, OVERWRITE, UPSERT = MODES = ("append", "overwrite", "upsert")
TABLE = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSource:
    """A path, or the name of a Spark table, and how Spark reads it."""

    name: str
    format: str
    columns: str | None
    options: Mapping[str, str]

    def frame(self, spark: SparkSession) -> DataFrame:
        """Its rows; nothing is read yet."""
        if self.format == TABLE:
            return spark.table(self.name)
        reader = spark.read.options(**self.options)
        reader = reader if self.columns is None else reader.schema(self.columns)
        return reader.format(self.format).load(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingestion:
    """How rows are written; of all runs with one key one commits."""

    mode: str
    on: str
    where: str | None
    key: str | None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidInputError(f"mode is {self.mode!r}: use append, overwrite or upsert")
        if self.mode == APPEND and self.key is None:
            raise InvalidInputError("give an append a --key that names the run, so that a retry adds no row twice")

    def write(self, frame: DataFrame, table: PartitionedTable) -> int | None:
        """Write the rows in one commit; the table's version after it."""
        if self.mode == APPEND:
            return table.append(frame, idempotency_key=self.key)
        if self.mode == OVERWRITE:
            return table.overwrite(frame, self.where, idempotency_key=self.key)
        return table.upsert(frame, partition_list(self.on) if self.on else [], idempotency_key=self.key)
