"""Planned writes as checked JSON, which travels to Spark's tasks and back to the committer."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pyarrow as pa

from lancepart.commit.idempotency import IdempotencyKey
from lancepart.commit.write_job import WriteJob
from lancepart.errors import InvalidInputError
from lancepart.model.predicate import Filter
from lancepart.model.predicate_json import predicate_from_json, predicate_to_json
from lancepart.spark.plain_writes import PlainRowWriting, PlainWriting
from lancepart.spark.value_json import ValueJson
from lancepart.spark.writing import RowWriting, TreeWriting, Writing
from lancepart.storage.root import Root
from lancepart.table import open_pinned, open_table

PlannedWrite = Writing | RowWriting | TreeWriting | PlainWriting | PlainRowWriting


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spelled:
    """A write whose filter, if it is a tree, stands beside it as JSON, with the columns that it is over."""

    write: PlannedWrite
    where: str | None = None
    columns: pa.Schema | None = None


_WRITES = ValueJson(
    (_Spelled, IdempotencyKey, PlainRowWriting, PlainWriting, Root, RowWriting, TreeWriting, WriteJob, Writing),
    what="a planned write",
)


def dumps(planned: PlannedWrite) -> bytes:
    """A planned write as JSON."""
    where = _where(planned)
    if where is None or isinstance(where, str):
        return _WRITES.dumps(_Spelled(write=planned))
    text = json.dumps(predicate_to_json(where))
    return _WRITES.dumps(_Spelled(write=_with(planned, None), where=text, columns=_columns(planned)))


def loads(text: bytes) -> PlannedWrite:
    """A planned write from its JSON; anything else is refused."""
    found: object = _WRITES.loads(text)
    if not isinstance(found, _Spelled) or not isinstance(found.write, PlannedWrite):
        raise InvalidInputError(f"a planned write is not understood: it is a {type(found).__name__}")
    if found.where is None:
        return found.write
    return _with(found.write, predicate_from_json(json.loads(found.where), found.columns))


def _where(planned: PlannedWrite) -> Filter | None:
    if isinstance(planned, PlainWriting | PlainRowWriting):
        return None
    return planned.where if isinstance(planned, TreeWriting) else planned.job.where


def _with(planned: PlannedWrite, where: Filter | None) -> PlannedWrite:
    if isinstance(planned, TreeWriting):
        return replace(planned, where=where)
    assert not isinstance(where, str)
    assert not isinstance(planned, PlainWriting | PlainRowWriting)
    return replace(planned, job=replace(planned.job, where=where))


def _columns(planned: PlannedWrite) -> pa.Schema:
    """The columns of the table that is written to, which a filter may name."""
    if isinstance(planned, TreeWriting):
        return open_table(planned.root.uri, storage_options=planned.root.storage_options).schema
    assert not isinstance(planned, PlainWriting | PlainRowWriting)
    root = planned.job.root
    return open_pinned(root.uri, planned.job.version, storage_options=root.storage_options).schema
