"""What a query that fails says: the thing that is wrong, and not the stage of DataFusion that found it."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError

ROWS = pa.table({"id": [1], "name": ["a"], "day": [date(2026, 1, 31)], "inside": [{"a": 1}]})


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT sum(name) FROM t", "sum takes numbers or Duration, not String: CAST it, as in CAST(x AS DOUBLE)"),
        ("SELECT abs(name) FROM t", "abs takes numbers, not String: CAST it"),
        ("SELECT upper(name, name) FROM t", "upper takes 1 arguments, not 2"),
        ("SELECT date_trunc(day) FROM t", "date_trunc takes 2 arguments, not 1"),
        ("SELECT name, count(*) FROM t", "column t.name is in SELECT, and neither in GROUP BY nor in an aggregate"),
        ("SELECT * FROM t LIMIT -1", "LIMIT must be >= 0, '-1' was provided"),
        ("SELECT * FROM t WHERE day = DATE '2026-02-30'", "Cannot cast string '2026-02-30' to value of Date32"),
        ("SELECT * FROM t WHERE name LIKE 5", "Utf8 and Int64 in LIKE"),
        ("SELECT * FROM t WHERE id", "t.id is Int64 and no condition: compare it with a value"),
        ("SELECT inside['b'] FROM t", "there is no field 'b' in the struct"),
    ],
)
def test_the_cause_is_named_and_not_the_stage(query: str, words: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        lp.sql(query, t=ROWS).to_arrow()
    assert words in str(raised.value)
    for inside in ("Optimizer", "type_coercion", "Internal error", "bug in DataFusion", "Arrow error"):
        assert inside not in str(raised.value)
