"""SQL that is no query: each statement is answered by what to use in its place."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError

ROWS = pa.table({"n": [1, 2]})


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("INSERT INTO t VALUES (3)", "table.append"),
        ("insert into t select * from t", "table.append"),
        ("UPDATE t SET n = 1", "table.update"),
        ("DELETE FROM t WHERE n = 1", "table.delete"),
        ("MERGE INTO t USING s ON t.n = s.n WHEN MATCHED THEN DELETE", "table.merge"),
        ("TRUNCATE TABLE t", "table.delete('true')"),
        ("CREATE TABLE u (n INT)", "lp.create_table"),
        ("CREATE TABLE u AS SELECT * FROM t", "lp.create_table"),
        ("CREATE VIEW v AS SELECT 1", "lp.create_table"),
        ("DROP TABLE t", "lp.drop_table"),
        ("ALTER TABLE t ADD COLUMN m INT", "add_column"),
        ("COPY t TO 'x.parquet'", "lp.load"),
        ("SHOW TABLES", "list_tables"),
        ("CALL system.compact('t')", "table.maintenance"),
        ("SET x = 1", "lp.config"),
        ("BEGIN", "table.transaction"),
    ],
)
def test_what_to_use_in_place_of_a_statement(text: str, instead: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        lp.sql(text, t=ROWS, s=ROWS).to_arrow()

    assert instead in str(raised.value)
    assert text.split()[0].upper() in str(raised.value)


@pytest.mark.parametrize("text", ["SELECT n FROM t", "WITH a AS (SELECT n FROM t) SELECT * FROM a", "VALUES (1), (2)"])
def test_queries_are_run(text: str) -> None:
    assert lp.sql(text, t=ROWS).to_arrow().num_rows == 2
