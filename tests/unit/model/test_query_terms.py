"""Partition functions in whole queries learn the types of their arguments from DataFusion's planner."""

from __future__ import annotations

import pyarrow as pa
import pytest
from datafusion import SessionContext

from lancepart.errors import UnsupportedOperationError
from lancepart.model.query_terms import bind_query, refused_call

TYPES = [
    pa.int8(),
    pa.int64(),
    pa.uint32(),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("ns"),
    pa.timestamp("us", "America/New_York"),
    pa.decimal128(38, 10),
    pa.decimal128(5, 2),
]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_function_is_bound_to_the_type_of_its_argument_in_every_place(kind: pa.DataType) -> None:
    context = SessionContext()
    rows = pa.record_batch([pa.nulls(2, kind), pa.array([1, 2])], names=["a", "b"])
    context.register_record_batches("t", [[rows]])

    query = bind_query(
        context,
        "SELECT bucket(4, x.a) AS k, count(*) FROM (SELECT a, b FROM t) x WHERE x.b IN (SELECT b FROM t "
        "WHERE bucket(8, a) IS NULL) GROUP BY bucket(4, x.a) HAVING count(bucket(4, x.b)) > 0 ORDER BY 1",
    )

    assert len(query.functions) == 3
    assert context.sql(query.text).to_pydict() == {"k": [None], "count(*)": [2]}


def test_words_of_the_planner_that_are_not_known_are_told_as_that() -> None:
    known = "call to 'lancepart_term_3' function: coercion from Int64, Timestamp(us, \"UTC\") to the signature Exact"
    assert refused_call(known) == ("lancepart_term_3", 'Int64, Timestamp(us, "UTC")')
    for changed in (
        "function 'lancepart_term_3' can't coerce Int64",
        "No function matches the given name and argument types 'lancepart_term_3(Int64)'",
    ):
        with pytest.raises(UnsupportedOperationError, match=r"datafusion [\d.]+ does not tell the types.*54\.1"):
            refused_call(changed)


def test_other_errors_of_the_planner_stay_what_they_are() -> None:
    context = SessionContext()
    context.register_record_batches("t", [[pa.record_batch({"a": [1], "b": [2]})]])

    assert refused_call("column lancepart_term_0(t.a) must appear in the GROUP BY clause") is None
    with pytest.raises(Exception, match="nowhere"):
        bind_query(context, "SELECT bucket(4, nowhere) FROM t")
