"""What the data source ``lancepart`` answers when Spark asks for a schema: about a table, or about a scan of it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lancepart.errors import InvalidInputError, TableNotFoundError, UnsupportedOperationError
from lancepart.spark import statements
from lancepart.spark.describe import answering, only, partitions_of, told_of
from lancepart.spark.filters import predicate_of
from lancepart.spark.planning import Planned, Question, plan
from lancepart.spark.types import spark_schema
from lancepart.table import PartitionedTable, open_table

QUESTION = "lancepart.question"
_STORAGE = "storage."
_WITHOUT_JAR = 8

Options = Mapping[str, str]
Plan = tuple[bytes, list[bytes]]


def answer(options: Options) -> tuple[Any, Plan | None]:
    """The schema, with the answer on its first column when the jar asks; and the plan, if a scan was planned.

    Without the jar Spark asks no question and reads all columns of all rows: right, but slow.
    """
    question = json.loads(options.get(QUESTION, "{}"))
    match question.pop("ask", None):
        case "table":
            return _table(options), None
        case "exists":
            return only({"exists": _exists(options)}), None
        case "warehouse":
            return statements.respond(options, question), None
        case "side":
            return statements.plan_side(options, question)
        case "partitions":
            return only({"partitions": partitions_of(_open(options, question["version"]))}), None
        case "delete":
            return _deleted(options, question["where"]), None
        case "scan":
            asked = Question(**{key: _frozen(value) for key, value in question.items()})
            planned = plan(_open(options, asked.version), asked)
            return answering(spark_schema(planned.schema), planned.to_json()), _bytes(planned)
        case _:
            table = _open(options)
            return spark_schema(table.schema), plan_columns(options, table.schema.names)


def plan_columns(options: Options, columns: Sequence[str]) -> Plan:
    """A plan of all rows, for when there is no jar."""
    table = _open(options)
    asked = Question(version=table.version, columns=tuple(columns), parallelism=_WITHOUT_JAR, partitioning=())
    return _bytes(plan(_open(options, asked.version), asked))


def _exists(options: Options) -> bool:
    try:
        _open(options)
    except TableNotFoundError:
        return False
    return True


def _table(options: Options) -> Any:
    """What the jar must know of a table; all of it at one snapshot, which every scan then names."""
    version = _open(options).version
    table = _open(options, version)
    return answering(spark_schema(table.schema), told_of(table, version))


def _deleted(options: Options, where: Sequence[Mapping[str, Any]]) -> Any:
    """Rows removed by filters that mean the same here as in Spark."""
    table = _open(options)
    predicate = predicate_of(where, (), table.schema)
    return only({"version": table.delete("true" if predicate is None else predicate.to_sql())})


def location(options: Options) -> tuple[str, dict[str, str]]:
    """Where a table is, and what it takes to get there."""
    storage = {key.removeprefix(_STORAGE): value for key, value in options.items() if key.startswith(_STORAGE)}
    if not options.get("path"):
        raise InvalidInputError("lancepart works on a table at a path: give it to load(path) or save(path)")
    return options["path"], storage


def _open(options: Options, version: int | None = None) -> PartitionedTable:
    """The table at the snapshot that a scan names, or a user; a Hive-style one has none that a scan could name."""
    root, storage = location(options)
    if version is None:
        return open_table(root, version=_wanted(options), storage_options=storage)
    try:
        return open_table(root, version=version, storage_options=storage)
    except UnsupportedOperationError:
        return open_table(root, storage_options=storage)


def _wanted(options: Options) -> int | str | datetime | None:
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


def _bytes(planned: Planned) -> Plan:
    """A plan as bytes: first the tasks with a key each, then those without."""
    return pickle.dumps(planned.work), [pickle.dumps(task) for task in (*planned.tasks, *planned.loose)]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
