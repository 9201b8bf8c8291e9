"""``lance_search`` without Spark: its arguments, and the class that workers run for the rows of another table."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.spark import table_function, table_messages

FLOATS = {"type": "array", "elementType": "float", "containsNull": True}


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("k", pa.string()),
            ("t", pa.string()),
            ("v", pa.list_(pa.float32(), 2)),
            ("s", pa.struct([("m", pa.map_(pa.string(), pa.int32()))])),
        ]
    )
    made = lp.create_table(tmp_path / "t", schema, ["k"])
    rows = [{"id": n, "k": "ab"[n % 2], "t": f"w{n}", "v": [n, 0], "s": {"m": [("a", n)]}} for n in range(10)]
    made.append(pa.Table.from_pylist(rows, schema))
    return made


def planned(table: lp.PartitionedTable, varying: dict[str, Any], **arguments: Any) -> table_messages.SearchReply:
    request = table_messages.SearchRequest(version=table.version, arguments=arguments, varying=varying)
    return table_function.planned(table, request, (table.root, {}))


def test_workers_search_at_the_snapshot_of_the_statement(table: lp.PartitionedTable) -> None:
    reply = planned(table, {"query": FLOATS, "where": "string"}, k=2, columns=["id", "s"])
    table.append([{"id": 100, "k": "a", "v": [4.0, 0.0]}])
    assert reply.function is not None
    function = pickle.loads(reply.function)()
    assert list(function.eval([4.1, 0.0], "k = 'a'")) == [
        (4, ({"a": 4},), pytest.approx(0.01, abs=1e-4)),
        (6, ({"a": 6},), pytest.approx(3.61, abs=1e-4)),
    ]
    assert list(function.eval(None, "k = 'a'")) == []


def test_rows_come_with_the_reply(table: lp.PartitionedTable) -> None:
    assert planned(table, {}, query=[1, 0]).function is None
    request = table_messages.SearchRowsRequest(
        version=table.version, arguments={"query": [1, 0], "k": 2}, columns=("_distance",)
    )
    found = pa.ipc.open_stream(table_function.answered(table, request).rows).read_all()
    assert found.to_pydict() == {"_distance": [0.0, 1.0]}


@pytest.mark.parametrize(
    ("varying", "arguments", "said"),
    [
        ({"k": "long"}, {"query": [1, 0]}, "k of lance_search is not a constant"),
        ({"query": "long"}, {}, "give a vector or a text"),
        ({"text": FLOATS}, {"query": [1, 0]}, "give a text"),
        ({"query": FLOATS}, {"column": "t"}, "'t'"),
        ({}, {"query": [1, 0], "kk": 3}, "no argument 'kk'"),
        ({}, {"query": "w1", "text": "w2", "column": "t"}, "both texts"),
        ({}, {"query": [1, 0], "text_column": "t"}, "text_column names"),
        ({}, {"query": [1, 0], "columns": "id"}, "array of names"),
        ({}, {"query": [1, 0], "where": 3}, "give a text"),
        ({}, {}, "give a query"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    table: lp.PartitionedTable, varying: dict[str, Any], arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInputError, match=said):
        planned(table, varying, **arguments)
