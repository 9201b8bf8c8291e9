"""Tables read as streams: offsets are snapshots, and a batch is the commits after one up to another."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lancepart.errors import InvalidInputError, TableVersionNotFoundError, UnsupportedOperationError
from lancepart.format.names import version_id
from lancepart.format.records import VersionRecord
from lancepart.layout import create
from lancepart.layout.layouts import capabilities
from lancepart.maintain import changes
from lancepart.maintain.changes import CHANGE, DELETE, LeafDelta, Step
from lancepart.model.snapshot_text import number_or_tag
from lancepart.plan.pack import pack
from lancepart.spark.options import check
from lancepart.spark.source import FEED, STREAM, VERSION, feed_schema, location, moment, wants_changes
from lancepart.spark.types import arrow_schema, as_spark, spark_schema
from lancepart.storage import history
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root

Options = Mapping[str, str]
NOTHING = 0
"""The offset before all snapshots: from there all rows that a table has are new."""
_LATEST = "latest"
_TASKS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one Spark task reads: the changes of some leaves, in the columns that the query began with."""

    leaves: tuple[LeafDelta, ...]
    schema: Any
    feed: bool
    versions: Mapping[str, int]
    version: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; with ``feed`` each says what became of it, and when."""
        for leaf in self.leaves:
            for step, kind, batch in leaf.read(self.schema, deletes=self.feed):
                yield self._with_change_columns(leaf, step, kind, batch) if self.feed else batch

    def _with_change_columns(self, leaf: LeafDelta, step: Step, kind: str, batch: Any) -> Any:
        version = self.versions.get(f"{leaf.object_id}${step.number}", self.version)
        marked = batch.append_column(CHANGE, pa.array([kind] * batch.num_rows, pa.string()))
        return marked.append_column(VERSION, pa.array([version] * batch.num_rows, pa.int64()))


def run(task: bytes, schema: Any) -> Iterator[pa.RecordBatch]:
    """The rows of a task, in the Arrow types in which Spark takes them."""
    wanted = arrow_schema(schema)
    for batch in pickle.loads(task).batches():
        yield as_spark(batch, wanted)


class Stream:
    """One run of a query over a table, whose columns stay what they were when it began."""

    def __init__(self, options: Options, schema: Any) -> None:
        check(options)
        self._options = {key.lower(): value for key, value in options.items()}
        self._manifest = Manifest(Root.parse(*location(options)))
        snapshot = self._manifest.snapshot()
        metadata = create.load(snapshot)
        if not capabilities(metadata).version_rows:
            raise UnsupportedOperationError("a stream needs a table with snapshots; lancepart.upgrade makes one")
        self.salt = metadata.salt
        self._feed = wants_changes(self._options)
        self._schema = _columns(metadata, schema, self._feed)

    def initial(self) -> int:
        """The snapshot after which the first batch begins."""
        version, time = self._options.get("startingversion"), self._options.get("startingtimestamp")
        if version is not None and time is not None:
            raise InvalidInputError("give either startingVersion or startingTimestamp, not both")
        if time is not None:
            return history.resolve(self._manifest, moment("startingTimestamp", time)) or NOTHING
        if version is None:
            return NOTHING
        if version.lower() == _LATEST:
            return self.latest()
        return history.resolve(self._manifest, number_or_tag(version)) or NOTHING

    def latest(self) -> int:
        """The newest snapshot."""
        snapshot = self._manifest.snapshot()
        self.refuse_other_table(create.load(snapshot).salt)
        return snapshot.version

    def refuse_other_table(self, salt: Any) -> None:
        """Refuse a snapshot of a table that was here before: this one's have numbers of their own.

        What an older lancepart wrote into a checkpoint does not say which table it is.
        """
        if salt not in (None, self.salt):
            raise self._replaced()

    def _replaced(self) -> InvalidInputError:
        return InvalidInputError(
            f"the stream's checkpoint is of another table, which was at {self._manifest.root.uri!r} before it was "
            "dropped or replaced: start with a new checkpoint"
        )

    def limits(self) -> tuple[int | None, int | None]:
        """The most snapshots, and rows, of a batch."""
        found = [self._limit("maxVersionsPerTrigger"), self._limit("maxRowsPerTrigger")]
        if None not in found:
            raise InvalidInputError("give either maxVersionsPerTrigger or maxRowsPerTrigger, not both")
        return found[0], found[1]

    def refuse_limits(self) -> None:
        """Say that this version of Spark has no limits."""
        if self.limits() != (None, None):
            raise UnsupportedOperationError(
                "maxVersionsPerTrigger and maxRowsPerTrigger need Spark 4.2 or newer: leave them out, or upgrade"
            )

    def _limit(self, name: str) -> int | None:
        text = self._options.get(name.lower())
        if text is not None and (not text.isdigit() or not int(text)):
            raise InvalidInputError(f"{name} is {text!r}: give a whole number from 1 up")
        return None if text is None else int(text)

    def until(self, start: int, target: int, *, versions: int | None = None, most: int | None = None) -> int:
        """Where the next batch ends: at the target, or as far as the limits allow; at least one snapshot is read.

        The rows that a table has when a query begins are one batch.
        """
        if start > target:
            raise self._replaced()
        if start in (NOTHING, target) or (versions is None and most is None):
            return target
        ahead = [number for number in history.versions(self._manifest) if start < number <= target]
        if versions is not None:
            return ahead[min(versions, len(ahead)) - 1]
        end, total = ahead[0], 0
        for number in ahead:
            total += self._size(number)
            if total > (most or 0) and number != ahead[0]:
                break
            end = number
        return end

    def _size(self, version: int) -> int:
        found = [VersionRecord.from_row(row) for row in history.info(self._manifest, version).records]
        counted = [each for each in found if each is not None and each.operation not in changes.ONLY_MOVES]
        return sum((each.added or 0) + ((each.deleted or 0) if self._feed else 0) for each in counted)

    def tasks(self, start: int, end: int) -> list[bytes]:
        """The tasks that read what was committed after one snapshot up to another."""
        if start > end:
            raise self._replaced()
        if start == end:
            return []
        last = history.at(self._manifest, end)
        metadata = create.load(last)
        self.refuse_other_table(metadata.salt)
        if start == NOTHING:
            found = changes.everything(self._manifest, last, metadata)
        else:
            first = self._first(start)
            found = changes.between(self._manifest, first, last, metadata)
        if not self._feed:
            found = [self._appended(leaf) for leaf in found]
        versions = self._versions(start, end) if self._feed and start != NOTHING else {}
        found = [leaf for leaf in found if leaf.steps]
        return [self._task([found[at] for at in group], versions, end) for group in self._packed(found)]

    def _packed(self, found: Sequence[LeafDelta]) -> list[list[int]]:
        stream = json.loads(self._options.get(STREAM, "{}"))
        return pack([leaf.rows for leaf in found], int(stream.get("parallelism", _TASKS))) if found else []

    def _task(self, leaves: Sequence[LeafDelta], versions: Mapping[str, int], end: int) -> bytes:
        names = {version_id(leaf.object_id, step.number) for leaf in leaves for step in leaf.steps}
        own = {name: version for name, version in versions.items() if name in names}
        if versions and len(own) < len(names):
            raise _gone(end)
        return pickle.dumps(Task(leaves=tuple(leaves), schema=self._schema, feed=self._feed, versions=own, version=end))

    def _first(self, start: int) -> Any:
        """The snapshot that a batch begins after, if all that was committed since is still there."""
        try:
            first = history.at(self._manifest, start)
            history.refuse_expired(self._manifest, self._manifest.snapshot(), start)
        except TableVersionNotFoundError:
            raise _gone(start) from None
        return first

    def _versions(self, start: int, end: int) -> dict[str, int]:
        """In which snapshot each version of a leaf was committed."""
        ahead = [number for number in history.versions(self._manifest) if start < number <= end]
        return {row.object_id: number for number in ahead for row in history.info(self._manifest, number).records}

    def _appended(self, leaf: LeafDelta) -> LeafDelta:
        """A leaf's steps that only add rows; of others the options say whether they are passed over or partly read."""
        kept = []
        for step in leaf.steps:
            if not step.deleted:
                kept.append(step)
            elif self._is_set("ignorechanges"):
                kept += [step] if step.added else []
            elif step.operation != DELETE or not self._is_set("ignoredeletes"):
                raise UnsupportedOperationError(
                    f"a commit ({step.operation}) took {step.deleted} rows out of partition {leaf.object_id!r}, and a "
                    f"stream of appended rows can't show that: use .option('{FEED}', 'true') to read all changes, "
                    "'ignoreDeletes' to skip deletions, or 'ignoreChanges' to read what is new in any commit"
                )
        return replace(leaf, steps=tuple(kept))

    def _is_set(self, name: str) -> bool:
        return self._options.get(name, "").lower() == "true"


def _columns(metadata: Any, schema: Any, feed: bool) -> Any:
    """The table's columns that Spark's are, by name once: from here on they are known by their field ids."""
    plain = metadata.plain_schema
    known = {field.name: field.dataType for field in spark_schema(feed_schema(plain) if feed else plain)}
    for field in schema:
        if known.get(field.name) != field.dataType:
            raise UnsupportedOperationError(f"column {field.name!r} changed while the stream began: start it again")
    names = set(schema.names)
    return pa.schema([field for field in metadata.schema if field.name in names])


def _gone(version: int) -> TableVersionNotFoundError:
    return TableVersionNotFoundError(
        f"the stream continues after snapshot {version}, and what was committed since has expired: begin again with a "
        "new checkpoint, and let maintenance.expire keep what the slowest reader still needs"
    )
