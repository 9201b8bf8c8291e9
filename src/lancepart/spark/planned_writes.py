"""Planned writes as checked JSON, which travels to Spark's tasks and back to the committer."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa

from lancepart.commit.idempotency import IdempotencyKey
from lancepart.commit.write_job import WriteJob
from lancepart.errors import InvalidInputError
from lancepart.model.predicate_json import predicate_from_json, predicate_to_json
from lancepart.spark.plain_writes import PlainRowWriting, PlainWriting
from lancepart.spark.value_json import ValueJson
from lancepart.spark.writing import RowWriting, TreeWriting, Writing
from lancepart.storage.root import Root

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
    if isinstance(planned, PlainRowWriting) or planned.filter is None or isinstance(planned.filter, str):
        return _WRITES.dumps(_Spelled(write=planned))
    text = json.dumps(predicate_to_json(planned.filter))
    return _WRITES.dumps(_Spelled(write=planned.with_filter(None), where=text, columns=planned.filter_columns()))


def loads(text: bytes) -> PlannedWrite:
    """A planned write from its JSON; anything else is refused."""
    found: object = _WRITES.loads(text)
    if not isinstance(found, _Spelled) or not isinstance(found.write, PlannedWrite):
        raise InvalidInputError(f"a planned write is not understood: it is a {type(found).__name__}")
    if found.where is None:
        return found.write
    assert not isinstance(found.write, PlainRowWriting)
    return found.write.with_filter(predicate_from_json(json.loads(found.where), found.columns))
