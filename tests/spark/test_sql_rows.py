"""UPDATE, MERGE INTO and DELETE in Spark SQL, against a model in Python."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.spark.warehouse import Sql

ROWS: dict[int, tuple[str | None, int]] = {n: (("US", "FR", None)[n % 3], n * 10) for n in range(30)}


@pytest.fixture
def table(sql: Sql) -> Sql:
    """Thirty rows by country and bucket, in one file a partition."""
    sql("CREATE TABLE @.ns.t (id BIGINT, country STRING, x INT) PARTITIONED BY (country, bucket(2, id))")
    sql.table("ns", "t").append([{"id": n, "country": country, "x": x} for n, (country, x) in ROWS.items()])
    return sql


def check(sql: Sql, model: dict[int, tuple[Any, Any]]) -> None:
    assert sql.rows("@.ns.t") == Counter((n, country, x) for n, (country, x) in model.items())


def last(sql: Sql) -> dict[str, Any]:
    found: dict[str, Any] = sql.table("ns", "t").inspect.snapshots().to_pylist()[-1]
    return found


def test_update_rewrites_the_rows_that_match(table: Sql) -> None:
    before = table.table("ns", "t").inspect.snapshots().num_rows
    table("UPDATE @.ns.t SET x = x + 1, country = upper('jp') WHERE id < 5 AND x % 20 = 0")
    model = ROWS | {n: ("JP", n * 10 + 1) for n in (0, 2, 4)}
    check(table, model)
    assert table.table("ns", "t").inspect.snapshots().num_rows == before + 1
    assert (last(table)["operation"], last(table)["rows_deleted"]) == ("update", 3)
    table("UPDATE @.ns.t SET x = -1 WHERE country IS NULL")
    model |= {n: (None, -1) for n, (country, _) in model.items() if country is None}
    check(table, model)
    table("UPDATE @.ns.t SET x = 7")
    check(table, {n: (country, 7) for n, (country, _) in model.items()})


@pytest.mark.slow
def test_deletes_that_are_no_filter(table: Sql) -> None:
    table("DELETE FROM @.ns.t WHERE id % 7 = 3 AND country = 'US'")
    model = {n: row for n, row in ROWS.items() if not (n % 7 == 3 and row[0] == "US")}
    check(table, model)
    assert last(table)["operation"] == "delete"
    table("DELETE FROM @.ns.t WHERE id IN (SELECT id + 1 FROM range(4))")
    check(table, {n: row for n, row in model.items() if n not in {1, 2, 3, 4}})


@pytest.mark.slow
def test_a_row_that_two_match_is_deleted_once(table: Sql) -> None:
    twice = "SELECT id DIV 2 AS id FROM range(8)"
    table(f"MERGE INTO @.ns.t t USING ({twice}) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    check(table, {n: row for n, row in ROWS.items() if n > 3})
    assert last(table)["rows_deleted"] == 4


@pytest.mark.slow
def test_a_statement_that_changes_no_row_makes_no_commit(table: Sql) -> None:
    before = table.table("ns", "t").version
    table("UPDATE @.ns.t SET x = 0 WHERE x % 10 = 3")
    table("DELETE FROM @.ns.t WHERE x % 10 = 3")
    table("MERGE INTO @.ns.t t USING (SELECT 99 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert table.table("ns", "t").version == before


def test_a_merge_writes_only_the_rows_that_change(table: Sql) -> None:
    source = "SELECT id * 10 AS id, CAST(id AS INT) AS x FROM range(3)"
    table(f"MERGE INTO @.ns.t t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = s.x")
    check(table, ROWS | {n: (ROWS[n][0], n // 10) for n in (0, 10, 20)})
    assert (last(table)["rows_added"], last(table)["rows_deleted"]) == (3, 3)


def test_merge(table: Sql) -> None:
    table("""
        MERGE INTO @.ns.t t USING (SELECT id * 5 AS id, CAST(id AS INT) AS x FROM range(8)) s ON t.id = s.id
        WHEN MATCHED AND s.x = 2 THEN DELETE
        WHEN MATCHED THEN UPDATE SET x = s.x, country = 'JP'
        WHEN NOT MATCHED THEN INSERT (id, country, x) VALUES (s.id, 'NEW', s.x)
        WHEN NOT MATCHED BY SOURCE AND t.id = 29 THEN DELETE
    """)
    model = {n: row for n, row in ROWS.items() if n not in (10, 29)}
    model |= {n * 5: ("JP", n) for n in (0, 1, 3, 4, 5)} | {n * 5: ("NEW", n) for n in (6, 7)}
    check(table, model)
    assert last(table)["operation"] == "merge"


def plan_of_last_merge(sql: Sql) -> str:
    """How the join of the last MERGE ended up, as the UI shows it."""
    runs = sql.spark._jsparkSession.sharedState().statusStore().executionsList()
    plans = [str(runs.apply(at).physicalPlanDescription()) for at in range(runs.size())]
    return next(plan for plan in reversed(plans) if "MergeRows" in plan).split("== Initial Plan ==")[0]


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["", "WHEN NOT MATCHED BY SOURCE AND t.id = 29 THEN DELETE"])
def test_a_merge_that_inserts_holds_a_small_source_in_memory(table: Sql, missing: str) -> None:
    model = {n: row for n, row in ROWS.items() if n != 29 or not missing}

    def merge(base: int) -> str:
        table(f"""
            MERGE INTO @.ns.t t USING (SELECT id * 5 AS id, CAST({base} + id AS INT) AS x FROM range(8)) s
            ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = s.x
            WHEN NOT MATCHED THEN INSERT (id, country, x) VALUES (s.id, 'NEW', s.x)
            {missing}
        """)
        new = {n * 5: (model[n * 5][0] if n < 6 else "NEW", base + n) for n in range(8)}
        check(table, model | new)
        return plan_of_last_merge(table)

    held = merge(100)
    assert "ShuffledHashJoin" in held
    assert "SortMergeJoin" not in held
    table.spark.conf.set("spark.lancepart.hashJoinBytes", "0")
    try:
        assert "SortMergeJoin" in merge(200)
    finally:
        table.spark.conf.unset("spark.lancepart.hashJoinBytes")


@pytest.mark.slow
def test_a_merge_that_inserts_refuses_a_row_that_two_match(table: Sql) -> None:
    twice = "SELECT id DIV 2 + 29 AS id FROM range(4)"
    with pytest.raises(Exception, match=r"(?i)merge.*cardinality"):
        table(f"""
            MERGE INTO @.ns.t t USING ({twice}) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET x = 0 WHEN NOT MATCHED THEN INSERT (id, country, x) VALUES (s.id, 'NEW', 1)
        """)
    check(table, ROWS)


@pytest.mark.slow
def test_a_row_that_two_match_is_refused_and_nothing_changes(table: Sql) -> None:
    twice = "SELECT 1 AS id FROM range(2)"
    with pytest.raises(Exception, match=r"(?i)merge.*cardinality"):
        table(f"MERGE INTO @.ns.t t USING ({twice}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = 0")
    with pytest.raises(Exception, match="broken"):
        table("UPDATE @.ns.t SET x = IF(id = 20, raise_error('broken'), 0)")
    check(table, ROWS)


@pytest.mark.slow
def test_weak_tables_say_what_to_call(sql: Sql) -> None:
    sql("CREATE TABLE @.ns.t (id BIGINT) PARTITIONED BY (bucket(2, id)) TBLPROPERTIES (transactions = 'weak')")
    with pytest.raises(Exception, match=r"table\.update"):
        sql("UPDATE @.ns.t SET id = id + 1")
