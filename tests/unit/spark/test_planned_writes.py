"""Planned writes travel as JSON: they come back as they were, and nothing else is made of what came."""

from __future__ import annotations

import base64
import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.commit import distributed_write
from lancepart.commit.idempotency import IdempotencyKey
from lancepart.errors import InvalidInputError
from lancepart.spark.answers import answer
from lancepart.spark.planned_writes import dumps, loads
from lancepart.spark.protocol import Request
from lancepart.spark.sink import Sink
from lancepart.spark.types import spark_schema
from lancepart.spark.writing import RowWriting, TreeWriting, Writing
from lancepart.storage.root import Root

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False, metadata={"comment": "the key"}), ("k", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    return lp.create_table(tmp_path / "t", SCHEMA, ["k"])


def planned(table: lp.PartitionedTable, **given: Any) -> Writing:
    job = distributed_write.plan(table._manifest, **given)
    return Writing(job=job, schema=SCHEMA, made="salt")


class Hostile:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_planned_writes_come_back_as_they_were(table: lp.PartitionedTable) -> None:
    key = IdempotencyKey(key="run 7", sequence=3, additional_keys=("other",))
    writing = planned(table, mode="where", where="k = 1 AND id > 2", idempotency=key)
    root = Root("s3://bucket/t", {"secret_access_key": "x"})
    tree = TreeWriting(root=root, schema=SCHEMA, mode="append", where="k = 1")

    for each in (writing, RowWriting(job=writing.job, schema=SCHEMA), tree):
        found = loads(dumps(each))
        assert found == each
        assert found.schema.equals(SCHEMA, check_metadata=True)
    assert Sink.loads(Sink(writing=writing, key="stream q").dumps()) == Sink(writing=writing, key="stream q")


def test_a_batch_of_a_stream_is_committed_from_its_json(table: lp.PartitionedTable) -> None:
    text = Sink(writing=planned(table), key="stream q").dumps()
    rows = pa.record_batch({"id": [1, 2], "k": [1, 2]}, schema=SCHEMA)
    reports = [Sink.loads(text).write([rows])]

    first = Sink.loads(text).commit(reports, 0)
    again = Sink.loads(text).commit(reports, 0)

    assert first == again == table.version
    assert table.scan().count() == 2


def test_the_service_commits_a_write_over_a_filter_that_travelled(table: lp.PartitionedTable) -> None:
    table.append(pa.table({"id": [1, 2, 3], "k": [1, 1, 2]}, schema=SCHEMA))
    schema = json.loads(spark_schema(SCHEMA).json())
    where = {"name": "=", "children": [{"column": ["k"]}, {"type": "long", "value": "1"}]}
    asked = {"mode": "filter", "schema": schema, "pushed": [where]}
    reply = answer(Request(id=1, op="write", body=asked, options={"path": table.root})).to_json()

    writer = base64.b64decode(reply["writer"])
    report = loads(writer).write([pa.record_batch({"id": [9], "k": [1]}, schema=SCHEMA)])
    body = {"writer": reply["writer"], "reports": [base64.b64encode(report).decode()]}
    committed = answer(Request(id=2, op="commit", body=body)).to_json()

    assert committed["version"] == table.version
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [3, 9]


@pytest.mark.parametrize("op", ["commit", "abort"])
def test_a_pickle_is_not_run_by_the_service(tmp_path: Path, op: str) -> None:
    writer = base64.b64encode(pickle.dumps(Hostile(tmp_path / "run"))).decode()
    request = Request(id=1, op=op, body={"writer": writer, **({"reports": []} if op == "commit" else {})})

    with pytest.raises(InvalidInputError, match="a planned write is not understood"):
        answer(request)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("other", ["7", '["object","Root",["map"]]', '["object","Sink",{}]', '["tuple"]'])
def test_what_is_no_planned_write_is_refused(other: str) -> None:
    with pytest.raises(InvalidInputError, match="not understood"):
        loads(other.encode())
    with pytest.raises(InvalidInputError, match="not understood"):
        Sink.loads(other.encode())


def test_an_object_with_other_fields_is_refused(table: lp.PartitionedTable) -> None:
    text = dumps(planned(table)).decode()
    with pytest.raises(InvalidInputError, match="Writing with the fields"):
        loads(text.replace('"made":', '"command":"x","made":').encode())


def test_a_filter_over_columns_that_the_table_does_not_have_is_refused(table: lp.PartitionedTable) -> None:
    text = dumps(planned(table, mode="where", where="k = 1")).decode()
    with pytest.raises(InvalidInputError, match="not a filter"):
        loads(text.replace('\\"column\\": \\"k\\"', '\\"column\\": \\"other\\"').encode())
