"""The Python side of ``format("lancepart")``: plans scans for the jar, reads their tasks, and works without it too.

Without the jar Spark neither prunes columns nor pushes filters, and every row is read: right, but slow. A reader that
acted on Spark's own ``pushFilters`` would give wrong rows when a relation is used twice, so this one does not.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from lancepart.errors import InvalidInputError
from lancepart.spark.keys import key_parts, partition_sources
from lancepart.spark.literals import is_exact
from lancepart.spark.planning import Piece, Planned, Question, plan
from lancepart.spark.running import run
from lancepart.spark.types import arrow_schema, as_spark, spark_schema
from lancepart.table import PartitionedTable, open_table

QUESTION = "lancepart.question"
ANSWER = "lancepart.answer"


class LancepartSource(DataSource):
    """A partitioned table at a path."""

    _version: int | None = None
    _planned: Planned | None = None

    @classmethod
    def name(cls) -> str:
        """What the format is called."""
        return "lancepart"

    def schema(self) -> Any:
        """The columns and, when the jar asks, its answer on the first of them; a plan stays in the source itself."""
        question = json.loads(self.options.get(QUESTION, "{}"))
        match question.pop("ask", None):
            case "scan":
                return self._scan(Question(**{key: _frozen(value) for key, value in question.items()}))
            case "table":
                return self._table()
            case _:
                table = self._open(None)
                self._version = table.version
                return spark_schema(table.schema)

    def reader(self, schema: Any) -> DataSourceReader:
        """A reader of the plan, or of everything when there is none; the plan moves there and is not sent twice."""
        planned, self._planned = self._planned, None
        if planned is None:
            table = self._open(self._version)
            planned = plan(table, Question(version=table.version, columns=tuple(schema.names), parallelism=8))
        return LancepartReader(planned, schema)

    def _open(self, version: int | None) -> PartitionedTable:
        prefix = "storage."
        storage = {key.removeprefix(prefix): value for key, value in self.options.items() if key.startswith(prefix)}
        wanted = version if version is not None else _wanted(self.options)
        return open_table(self.options["path"], version=wanted, storage_options=storage)

    def _table(self) -> Any:
        """What the jar must know of a table; all of it at one snapshot, which every scan then names."""
        version = self._open(None).version
        table = self._open(version)
        metadata = table.metadata
        told = {
            "version": version,
            "sources": partition_sources(metadata),
            "exact": [field.name for field in table.schema if is_exact(field.type)],
            "partitioning": [part.to_json() for part in key_parts(metadata, [metadata.spec.id], metadata.schema.names)],
        }
        return _answering(spark_schema(table.schema), told)

    def _scan(self, question: Question) -> Any:
        planned = plan(self._open(question.version), question)
        self._planned = planned
        return _answering(spark_schema(planned.schema), planned.to_json())


class LancepartReader(DataSourceReader):
    """Reads the tasks of a plan; travels to the executors without them."""

    def __init__(self, planned: Planned, schema: Any) -> None:
        self._planned: Planned | None = planned
        self._work = planned.work
        self._schema = schema

    def __getstate__(self) -> dict[str, Any]:
        """All but the tasks, of which each executor is sent its own."""
        return {**self.__dict__, "_planned": None}

    def partitions(self) -> list[InputPartition]:
        """One partition a task."""
        assert self._planned is not None
        return [Task(pieces, self._planned.counted) for pieces in self._planned.tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a task, in the Arrow types in which Spark takes them."""
        _settle()
        if isinstance(partition, Task):
            wanted = arrow_schema(self._schema)
            for batch in run(self._work, partition.pieces, partition.counted):
                yield as_spark(batch, wanted)


class Task(InputPartition):
    """Some leaves, or fragments of them; or the count that is known already."""

    def __init__(self, pieces: tuple[Piece, ...], counted: int | None) -> None:
        self.pieces = pieces
        self.counted = counted


def _wanted(options: Any) -> int | str | datetime | None:
    """Which snapshot is asked for: a number, a tag, or a moment, which is in UTC unless it says otherwise."""
    version, moment = options.get("version"), options.get("timestamp")
    if version is not None and moment is not None:
        raise InvalidInputError("give either the option version or the option timestamp, not both")
    if moment is not None:
        try:
            found = datetime.fromisoformat(moment)
        except ValueError:
            raise InvalidInputError(f"timestamp is {moment!r}: write it like 2026-01-31T12:00:00Z") from None
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return int(version) if version is not None and version.isdigit() else version


def _answering(schema: Any, told: Any) -> Any:
    schema.fields[0].metadata = {ANSWER: json.dumps(told)}
    return schema


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _settle() -> None:
    """Take what a worker has loaded out of the garbage collector's sight: it looks through all of it in each task."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
