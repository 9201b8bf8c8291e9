"""The data source ``lancepart`` for users, and the options that name a table and a snapshot.

Loading a table changes nothing, whatever the options. The jar's requests, some of which change tables, go to the
planning service, or to another data source that users can't name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.maintain.changes import CHANGE
from lancepart.model.snapshot_text import number_or_tag
from lancepart.spark.handover import OPTIONS, PLAN
from lancepart.spark.options import check
from lancepart.spark.planning import Planned, plan
from lancepart.spark.spark_plan import Pickled, pickled
from lancepart.spark.table_messages import ScanRequest
from lancepart.spark.tasks import handed
from lancepart.spark.types import spark_schema
from lancepart.table import PartitionedTable, open_pinned, open_table

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

OWN = "lancepart."
REQUEST = "lancepart.request"
"""A request of the jar where there is no planning service."""
STREAM = "lancepart.stream"
"""What the jar says of a stream: how many tasks a batch may have, how it writes, and the id of its query."""
FEED = "readChangeFeed"
VERSION = "_version"
_STORAGE = "storage."
_WITHOUT_JAR = 8

Options = Mapping[str, str]


def refuse_own(options: Iterable[str]) -> None:
    """Refuse options that only lancepart itself sets, however they are spelled; a plan is data, and is checked."""
    for key in options:
        if key.lower().startswith(OWN) and key.lower() not in OPTIONS:
            raise InvalidInputError(f"option {key!r}: names that begin with {OWN!r} are lancepart's own; leave it out")


def show(options: Options) -> tuple[StructType, Pickled | None]:
    """The columns of a table and a plan that reads it, or those of a plan that was made elsewhere.

    Without the jar Spark pushes nothing down and reads all rows: right, but slow.
    """
    check(options)
    if PLAN in options:
        return handed(options, None)
    table = _open(options)
    if wants_changes(options):
        return spark_schema(feed_schema(table.schema)), None
    return spark_schema(table.schema), plan_columns(options, table.schema.names)


def wants_changes(options: Options) -> bool:
    """Whether a stream reads the change feed."""
    return any(key.lower() == FEED.lower() and value.lower() == "true" for key, value in options.items())


def feed_schema(schema: pa.Schema) -> pa.Schema:
    """A table's columns, and those of the change feed: the kind of change and its snapshot."""
    taken = [name for name in (CHANGE, VERSION) if name in schema.names]
    if taken:
        raise UnsupportedOperationError(
            f"the table has a column {taken[0]!r} of its own: its changes can't be streamed"
        )
    return pa.schema([*schema, pa.field(CHANGE, pa.string()), pa.field(VERSION, pa.int64())])


def plan_columns(options: Options, columns: Sequence[str]) -> Pickled:
    """A plan of all rows, for when there is no jar."""
    table = _open(options)
    request = ScanRequest(version=table.version, columns=tuple(columns), parallelism=_WITHOUT_JAR, partitioning=())
    return plan_bytes(plan(_open(options, request.version), request))


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
        return open_table(root, version=wanted_version(options), storage_options=storage)
    return open_pinned(root, version, storage_options=storage)


def wanted_version(options: Options) -> int | str | datetime | None:
    """The requested snapshot: a number, a tag, or a moment, which is in UTC unless it says otherwise."""
    given = {key.lower(): value for key, value in options.items()}
    version, time = (_either(given, name) for name in ("version", "timestamp"))
    if version is not None and time is not None:
        raise InvalidInputError("give either the option version or the option timestamp, not both")
    if time is not None:
        return moment("timestamp", time)
    return None if version is None else number_or_tag(version)


def refuse_other_version(wanted: int, version: int) -> None:
    """Refuse a version that is given to a scan when its relation is loaded already, as that of a catalog's table is."""
    if wanted != version:
        raise InvalidInputError(
            f"the table was loaded at snapshot {version}: to read another, give versionAsOf or timestampAsOf, or write "
            "VERSION AS OF or TIMESTAMP AS OF in SQL"
        )


def _either(options: Options, name: str) -> str | None:
    """An option under our name or, as users of Delta know it, with AsOf at its end."""
    found = [options[key] for key in (name, f"{name}asof") if key in options]
    if len(set(found)) > 1:
        raise InvalidInputError(f"the options {name} and {name}AsOf say different things: give one of them")
    return found[0] if found else None


def moment(name: str, text: str) -> datetime:
    """The moment that an option names, in UTC unless it says otherwise."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(f"{name} is {text!r}: write it like 2026-01-31T12:00:00Z") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def plan_bytes(planned: Planned) -> Pickled:
    """A plan as bytes: first the tasks with a key each, then those without."""
    return pickled(planned.scan, (*planned.tasks, *planned.unkeyed_tasks))
